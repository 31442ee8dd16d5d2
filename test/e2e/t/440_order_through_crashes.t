# SPDX-License-Identifier: PostgreSQL
# Messages of one ordering key take effect in the order of their publication, whichever puller gets
# them: across failures that pass, batches that are cut, and pullers that are killed.
use strict;
use warnings;
use JSON::PP;
use Test::More;
use Inbox::Ledger;
use Inbox::Scene;
use Inbox::Wait;

use constant { LANES => 25, LENGTH => 60, RUN => 10, PULLERS => 3, KILLS => 6 };

# Every thirteenth message of a lane fails the first two times; sequences count through rollbacks.
my $sql = <<'SQL';
CREATE FUNCTION in_order(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM apply_payment(key, payload);
	PERFORM pg_sleep(0.01);
	IF to_regclass('tried_' || key) IS NOT NULL THEN
		IF nextval(to_regclass('tried_' || key)) <= 2 THEN
			RAISE EXCEPTION 'not yet';
		END IF;
	END IF;
END $$;
SQL

# Published in runs, since a request may hold messages of one ordering key only.
my @messages;
foreach my $run (0 .. LENGTH / RUN - 1)
{
    foreach my $lane (1 .. LANES)
    {
        my @keys = map { "l${lane}_$_" } $run * RUN + 1 .. ($run + 1) * RUN;
        push @messages,
          map { Inbox::Ledger::payment($_, $lane, 1, orderingKey => "lane $lane") } @keys;
    }
}
$sql .= "CREATE SEQUENCE tried_$_;\n"
  foreach map { $messages[ $_ * 13 ]{attributes}{idempotency_key} } 0 .. @messages / 13 - 1;
my $count = @messages;
my $scene = Inbox::Scene->new('own', 'order', sql => $sql,
    fields => { enableMessageOrdering => JSON::PP::true });
my @options = (handler => 'in_order', options => [ '--workers=3', '--batch-size=20' ]);
my @pullers = map { $scene->puller(@options) } 1 .. PULLERS;
$scene->publish(@messages);

# What a killed puller held comes again at once and not when its leases end; so does what the
# others hold.
my $seen = 0;
sub end_leases
{
    my @delivered = map { $_->{ackId} } $scene->{service}->history('deliver');
    my @ids = splice(@delivered, $seen);
    $seen += @ids;
    while (my @some = splice(@ids, 0, 1000))
    {
        $scene->{service}->call('POST', '/v1/' . $scene->{service}->subscription($scene->{name})
              . ':modifyAckDeadline', { ackIds => \@some, ackDeadlineSeconds => 0 });
    }
}

foreach my $kill (1 .. KILLS)
{
    my $wanted = int($count * $kill / (KILLS + 2));
    wait_until("$wanted to be applied",
        sub { $scene->count('SELECT count(*) FROM effect') >= $wanted }, 90, 0.02);
    (shift @pullers)->kill9;
    end_leases();
    push @pullers, $scene->puller(@options);
}
wait_until('all to be acknowledged',
    sub { $scene->{service}->stats($scene->{name})->{unacked} == 0 }, 150);
is($_->stop, 0, 'stops with status 0') foreach @pullers;
is(Inbox::Ledger::summary($scene->{node}), "$count $count 0 0", 'every payment is there once');
is($scene->count(<<'SQL'), '', 'each lane in its order');
SELECT string_agg(key || ' after ' || previous, ', ')
FROM (SELECT key, lag(key) OVER (PARTITION BY account ORDER BY n) AS previous FROM effect) t
WHERE split_part(key, '_', 2)::int <> split_part(previous, '_', 2)::int + 1
SQL
is($scene->count('SELECT count(*) FROM inbox_failure'), 0, 'no failure is left');
cmp_ok(scalar(grep { $_ > 1 } values %{ $scene->deliveries }), '>', KILLS,
    'what the killed ones held was delivered again');
done_testing;
