# SPDX-License-Identifier: PostgreSQL
# A transaction is one round trip to the server, whatever its size, and also when it fails.
use strict;
use warnings;
use Test::More;
use Inbox::Gate;
use Inbox::Ledger;
use Inbox::Proxy;
use Inbox::Scene;
use Inbox::Service;
use Inbox::Wait;

use constant BATCH => 50;

# What is bad "once" among others fails alone no more; sequences count through rollbacks.
my $sql = Inbox::Gate::sql() . <<'SQL';
CREATE SEQUENCE in_trouble;
CREATE FUNCTION gated(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF wait_at_gate(key) THEN
		RETURN;
	END IF;
	PERFORM apply_payment(key, payload);
	IF key = 'once' AND nextval('in_trouble') = 1 THEN
		RAISE EXCEPTION 'the first time only';
	END IF;
END $$;
SQL

my ($scene, $proxy, $puller);

# Round trips that this takes, until the log shows that many more events of the name.
sub round_trips
{
    my ($event, $filter, @messages) = @_;
    my $before = $proxy->stats->{roundTrips};
    my $seen = grep { $filter->($_) } $puller->events($event);
    $scene->publish(@messages);
    wait_until("$event in the log",
        sub { (grep { $filter->($_) } $puller->events($event)) - $seen >= @messages });
    return $proxy->stats->{roundTrips} - $before;
}

sub check_single
{
    my $applied = sub { ($_[0]->{verdict} // '') eq 'applied' };
    is(round_trips('message', $applied, Inbox::Ledger::payment('small', 1, 1)),
        1, 'one message: one round trip');
    is(round_trips('message', $applied,
            { data => '{"account": 1, "amount": 1, "note": "' . 'x' x 300_000 . '"}',
                attributes => { idempotency_key => 'large' } }),
        1, 'a large message: one round trip');
    is(round_trips('message_failed', sub { 1 }, Inbox::Ledger::payment('bad', 999, 1)),
        2, 'a message that fails: one round trip to run it, one to record that');
    $scene->count(q{SELECT inbox_discard(id, 'seen') FROM inbox_failure});
    $puller->wait_event('message', sub { $_[0]{verdict} eq 'duplicate' });
}

# Messages that are ready together: round trips and COMMITs from when the connection was held up, and
# transactions that applied them. Asking how many are ready may take a transaction of the puller's own.
sub run_together
{
    my (@keys) = @_;
    Inbox::Gate::close($scene, $puller);
    my $before = $proxy->stats;
    $scene->publish(map { Inbox::Ledger::payment($_, 1, 1) } @keys);
    Inbox::Gate::open($scene, $puller, scalar @keys);
    my $list = join ', ', map { "'$_'" } @keys;
    $scene->wait_for("SELECT count(*) FROM effect WHERE key IN ($list)", scalar @keys);
    wait_until('the puller to hold nothing', sub { Inbox::Gate::held($puller) == 0 });
    my $after = $proxy->stats;
    return ($after->{roundTrips} - $before->{roundTrips}, $after->{commits} - $before->{commits},
        $scene->count("SELECT count(DISTINCT xmin::text) FROM effect WHERE key IN ($list)"));
}

sub check_batches
{
    my $grown = Inbox::Gate::grow($scene, BATCH);
    my ($trips, $commits, $transactions) = run_together(map { "k$_" } 1 .. BATCH);
    is($transactions, 1, BATCH . ' messages that are ready are one transaction');
    is($trips, $commits, 'of one round trip');
    ($trips, $commits, $transactions) =
      run_together(map({ "before $_" } 1 .. BATCH / 2), 'once', map { "behind $_" } 1 .. BATCH / 2);
    cmp_ok($commits, '>=', $transactions + 1, 'a batch that fails is a transaction more');
    is($trips, $commits, 'of one round trip, too');
    return 2 + $grown + BATCH + BATCH + 1;
}

foreach my $kind (Inbox::Service::kinds())
{
    subtest $kind => sub {
        $scene = Inbox::Scene->new($kind, 'round', sql => $sql);
        # Slow enough that what one side sends at once arrives in one piece of the count.
        $proxy = Inbox::Proxy->before_node($scene->{node}, '--latency', '100');
        $puller = $scene->puller(dbname => $proxy->connstr, handler => 'gated',
            options => [ Inbox::Gate::OPTIONS ]);
        $puller->wait_event('db_connected');
        check_single();
        my $count = check_batches();
        is($puller->stop, 0, 'stops cleanly');
        is(Inbox::Ledger::summary($scene->{node}), "$count $count 0 0", 'the ledger is exact');
        $scene->{node}->stop;
    };
}
done_testing();
