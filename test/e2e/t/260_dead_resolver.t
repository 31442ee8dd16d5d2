# SPDX-License-Identifier: PostgreSQL
# A resolver that never answers holds nothing up: the loop turns, signals are obeyed, leases are
# extended; and when it answers again all goes on.
use strict;
use warnings;
use Test::More;
use Time::HiRes qw(time sleep);
use Inbox::Puller;
use Inbox::Scene;
use Inbox::Service;
use Inbox::Wait;
use Inbox::Workload;

my $dir = PostgreSQL::Test::Utils::tempdir();
my $dead = "$dir/dead";
my $blocked = "$dir/blocked";
foreach my $library (qw(dead_resolver blocked_turn))
{
    my @compile = ($ENV{CC} // 'cc', '-shared', '-fPIC', '-o', "$dir/$library.so",
        "$ENV{INBOX_ROOT}/test/e2e/lib/$library.c", '-ldl');
    system(@compile) == 0 or BAIL_OUT("could not run @compile");
}
my %preload = (LD_PRELOAD => "$dir/dead_resolver.so:$dir/blocked_turn.so", DEAD_RESOLVER => $dead,
    BLOCKED_TURNS => $blocked);

my $scene = Inbox::Scene->new('own', 'resolver', ms => 3000,
    conf => "listen_addresses = '127.0.0.1'\n");
my $tcp = 'port=' . $scene->{node}->port . ' dbname=postgres';
my ($pubsub) = $scene->{service}->host =~ /:(\d+)$/;

sub kill_resolver { PostgreSQL::Test::Utils::append_to_file($dead, '') }
sub revive_resolver { unlink $dead }

# Of each turn since the last question, with the one that a stopping puller is in.
sub never_blocked
{
    my ($what) = @_;
    my $turns = PostgreSQL::Test::Utils::slurp_file($blocked);
    unlink $blocked;
    is($turns, "watched\n", "$what: no turn of the loop was blocked for 100 ms");
}

sub ends_at_once
{
    my ($puller, $what) = @_;
    my $start = time;
    is($puller->stop, 0, "$what: SIGTERM ends it");
    cmp_ok(time - $start, '<', 2, "$what: at once");
    never_blocked($what);
}

# Seconds of processor time so far.
sub cpu
{
    my ($puller) = @_;
    open(my $fh, '<', "/proc/$puller->{pid}/stat") or die "the puller is gone: $!\n";
    my @fields = split / /, <$fh> =~ s/^.*\) //r;
    return ($fields[11] + $fields[12]) / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

sub start
{
    my (%args) = @_;
    return $scene->puller(
        dbname => "host=$args{database} $tcp", options => $args{options} // [],
        env => { %preload, PUBSUB_EMULATOR_HOST => "$args{pubsub}:$pubsub" });
}

kill_resolver();
subtest 'dead for Pub/Sub' => sub {
    my $puller = start(database => '127.0.0.1', pubsub => 'pubsub.test');
    $puller->wait_event('db_connected');
    my $event = $puller->wait_event('subscription_failed', undef, 20);
    like($event->{err}, qr/resolv/i, "it is said: $event->{err}");
    ends_at_once($puller, 'dead for Pub/Sub');
};

subtest 'dead for the database' => sub {
    my $puller = start(database => 'database.test', pubsub => '127.0.0.1', options => ['--workers=4']);
    $puller->wait_event('started');
    my $before = cpu($puller);
    sleep(3);
    cmp_ok(cpu($puller) - $before, '<', 0.5, 'it waits without working');
    ends_at_once($puller, 'dead for the database');
};
revive_resolver();

subtest 'dies at work' => sub {
    my $work = Inbox::Workload->new(count => 4);
    my $puller = start(database => 'database.test', pubsub => 'pubsub.test');
    $puller->wait_event('subscription');
    $work->publish($scene->{service}, 'resolver');
    $scene->wait_for(q{SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'}, 1, 20);
    my $start = time;
    kill_resolver();
    # The new connection has to be looked up.
    $scene->count(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'});
    $puller->wait_event('outcome_unknown');
    my $held = $scene->{service}->stats('resolver-sub')->{leased};
    cmp_ok($held, '>=', 2, 'messages are held');
    wait_until('the leases they came with to be over', sub { time > $start + 11 }, 20);
    is($scene->{service}->stats->{counters}{expired}, 0, 'no lease is lost');
    is($puller->events('db_connected'), 1, 'while the connection is still being made');
    revive_resolver();
    $work->wait_applied($scene->{node}, 40);
    $work->is_exact($scene->{node});
    $work->all_acked($scene->{service}, 'resolver-sub', $puller, 'all is acknowledged');
    is_deeply([ values %{ $scene->deliveries } ], [ (1) x 4 ], 'each was delivered once');
    is($puller->stop, 0, 'it stops');
    never_blocked('dies at work');
};
done_testing;
