# SPDX-License-Identifier: PostgreSQL
# A database that accepts a connection and says nothing, one that stops answering in a transaction,
# and a standby: leases are kept, what is the matter is said, and all goes on by itself.
use strict;
use warnings;
use Test::More;
use Time::HiRes qw(time);
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

my $node = Inbox::Ledger->start('silent', init => { allows_streaming => 1 });
my $service = Inbox::Service->start('own');

sub start
{
    my ($name, %args) = @_;
    $service->create_topic($name);
    $service->create_subscription($name, $name);
    return Inbox::Puller->start(service => $service, handler => 'apply_payment',
        subscription => $service->subscription($name), node => $node, %args);
}

sub payments
{
    my ($prefix, $count) = @_;
    return map { Inbox::Ledger::payment("$prefix$_", 1 + $_ % 50, 1) } 1 .. $count;
}

sub wait_for_effects
{
    my ($prefix, $count, $where) = @_;
    Inbox::Ledger::wait_for($where // $node,
        "SELECT count(*), count(DISTINCT key) FROM effect WHERE key LIKE '$prefix%'",
        "$count|$count", 40);
    pass("$prefix: $count payments, each applied once");
}

# Accepted by a backend that then waits for a lock before it answers the first question.
my $busy = Inbox::Ledger->start('busy');
$busy->safe_psql('postgres', 'CREATE DATABASE quiet');
my $holder =
  Inbox::Ledger::hold($busy, 'LOCK TABLE pg_extension IN ACCESS EXCLUSIVE MODE', 'quiet');
my $waiting = start('waiting', dbname => $busy->connstr('quiet'));
$service->publish('waiting', payments('waiting', 3));

subtest 'a backend that stops in the middle' => sub {
    my $puller = start('stalling', node => $busy, options => [ '--batch-size', '1' ]);
    $puller->wait_event('db_connected');
    my $backend = Inbox::Ledger::count($busy,
        "SELECT pid FROM pg_stat_activity "
          . "WHERE query LIKE '%inbox_serve%' AND pid <> pg_backend_pid()");
    kill('STOP', $backend);
    $service->publish('stalling', payments('stalling', 5));
    wait_until('the first to be pulled', sub { $service->stats('stalling')->{leased} });
    my $start = time;
    wait_until('the lease of the delivery to be over', sub { time > $start + 11 }, 20);
    my $stats = $service->stats('stalling');
    my $held = $stats->{leased};
    cmp_ok($held, '<=', 2, 'no more is pulled than can be run: one, and one ahead');
    is($stats->{unacked}, 5, 'nothing is acknowledged');
    is($service->stats->{counters}{expired}, 0, 'no lease has ended');
    cmp_ok($service->stats->{counters}{extended}, '>=', $held, 'because they were extended');
    kill('CONT', $backend);
    wait_for_effects('stalling', 5, $busy);
    wait_until('all to be acknowledged', sub { $service->stats('stalling')->{unacked} == 0 });
    is($service->stats->{counters}{delivered}, 5, 'nothing was delivered twice');
    is($puller->stop, 0, 'stops with status 0');
};

subtest 'a standby' => sub {
    $node->backup('base');
    my $standby = PostgreSQL::Test::Cluster->new('standby');
    $standby->init_from_backup($node, 'base', has_streaming => 1);
    $standby->start;
    my $puller = start('standby', node => $standby);
    $service->publish('standby', payments('standby', 10));
    my $event = $puller->wait_event('db_refused');
    is($event->{err}, 'the server is a standby and cannot write', 'a standby is refused');
    like($event->{hint}, qr/connect to the primary.*target_session_attrs=read-write/,
        'with the remedy');
    ok($service->is_untouched('standby'), 'nothing is pulled for it');
    $standby->promote;
    wait_for_effects('standby', 10, $standby);
    is($puller->stop, 0, 'stops with status 0');
};

subtest 'a failover while it runs' => sub {
    my $standby = PostgreSQL::Test::Cluster->new('second');
    $standby->init_from_backup($node, 'base', has_streaming => 1);
    $standby->start;
    $node->append_conf('postgresql.conf', "synchronous_standby_names = '*'");
    $node->reload;
    $node->poll_query_until('postgres', "SELECT sync_state = 'sync' FROM pg_stat_replication")
      or die 'the standby does not become synchronous';
    my $hosts = join(',', map { $_->host } $node, $standby);
    my $ports = join(',', map { $_->port } $node, $standby);
    my $puller = start('failover', node => undef, dbname => "host=$hosts port=$ports "
          . 'dbname=postgres target_session_attrs=read-write');
    $puller->wait_event('db_connected');
    $service->publish('failover', payments('failover', 2000));
    wait_until('some to be applied', sub { $puller->verdicts('applied') > 100 });
    $node->stop('immediate');
    $standby->promote;
    my $event = $puller->wait_event('database_changed');
    isnt($event->{timeline_before}, $event->{timeline_now}, 'a change of timeline is noticed');
    like($event->{hint}, qr/failover or a restore.*seek the subscription back/,
        'and said, with the remedy');
    wait_for_effects('failover', 2000, $standby);
    wait_until('all to be acknowledged', sub { $service->stats('failover')->{unacked} == 0 });
    is($puller->stop, 0, 'stops with status 0');
    $node->start;
};

subtest 'a backend that says nothing to the first question' => sub {
    my $event = $waiting->wait_event('db_silent', undef, 40);
    like("$event->{err}; " . ($event->{hint} // ''), qr/said nothing; .+/,
        'is given up, with a word');
    ok($service->is_untouched('waiting'), 'nothing was pulled for it');
    is($waiting->stop(5), 0, 'stops with status 0, and soon');
};
is_deeply([ Inbox::Puller->leaks(Inbox::Ledger::MEMO) ], [], 'no log shows a payload');
done_testing;
