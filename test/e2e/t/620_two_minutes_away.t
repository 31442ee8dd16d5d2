# SPDX-License-Identifier: PostgreSQL
# The database is away for two minutes: a liveness probe sees nothing of it, so nobody restarts the
# puller; /healthz tells; the leases of what is held are kept; and then all goes on.
use strict;
use warnings;
use HTTP::Tiny;
use Test::More;
use Time::HiRes qw(time sleep);
use Inbox::Puller;
use Inbox::Scene;
use Inbox::Wait;

use constant { AWAY => 120, EVERY => 0.5 };

my $scene = Inbox::Scene->new('own', 'away', sql => <<'SQL');
CREATE FUNCTION apply_slowly(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM apply_payment(key, payload);
	PERFORM pg_sleep(0.3);
END $$;
SQL
my $puller = $scene->puller(handler => 'apply_slowly', log_level => 'info',
    options => [ '--listen=0', '--db-grace=180s', '--batch-size=5' ]);
my $url = 'http://' . $puller->wait_event('listening')->{address};
my $pid = $puller->{pid};

sub ask
{
    my ($path) = @_;
    my $start = time;
    my $status = HTTP::Tiny->new(timeout => 10)->get("$url/$path")->{status};
    return ($status, time - $start);
}

$scene->publish(map { Inbox::Ledger::payment("k$_", 1 + $_ % 50, 1) } 1 .. 40);
$scene->wait_for('SELECT count(*) > 2 FROM effect', 't', 30);
wait_until('/healthz to be well', sub { (ask('healthz'))[0] == 200 });
$scene->{node}->stop('immediate');
wait_until('/healthz to tell', sub { (ask('healthz'))[0] == 503 }, 10);

# A lease of this subscription lasts 10 s, so that each had to be extended many times.
my (%livez, %healthz, %readyz);
my ($slowest, $fewest) = (0, 1e9);
my $end = time + AWAY;
while (time < $end)
{
    my ($status, $took) = ask('livez');
    $livez{$status}++;
    $slowest = $took if $took > $slowest;
    $healthz{ (ask('healthz'))[0] }++;
    $readyz{ (ask('readyz'))[0] }++;
    my $leased = $scene->{service}->stats('away-sub')->{leased};
    $fewest = $leased if $leased < $fewest;
    sleep(EVERY);
}
is_deeply([ keys %livez ], [200], '/livez: 200 throughout');
is_deeply([ keys %healthz ], [503], '/healthz: 503 throughout');
is_deeply([ keys %readyz ], [503], '/readyz: 503 throughout');
cmp_ok($slowest, '<', 2, "an answer took $slowest s at most");
cmp_ok($fewest, '>', 0, "what was held stayed leased: $fewest messages at least");
ok($puller->is_running && $puller->{pid} == $pid, 'the puller runs on');
is(scalar(map { $puller->events($_) } qw(lease_lost db_grace_over)), 0, 'and has lost no lease');

$scene->{node}->start;
$scene->wait_for('SELECT count(DISTINCT key) FROM effect', 40, 60);
is(Inbox::Ledger::summary($scene->{node}), '40 40 0 0', 'every payment is there once');
wait_until('/healthz to be well again', sub { (ask('healthz'))[0] == 200 }, 30);
is($puller->stop, 0, 'stops with status 0');
done_testing;
