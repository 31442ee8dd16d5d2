# SPDX-License-Identifier: PostgreSQL
# The primary dies at work, again and again acknowledged from, and its synchronous standby takes its
# place: whatever was acknowledged is there, and the rest follows, without anybody's doing.
use strict;
use warnings;
use Test::More;
use Inbox::Check;
use Inbox::Failover;
use Inbox::Puller;
use Inbox::Scene;
use Inbox::Wait;
use Inbox::Workload;

my $primary = Inbox::Failover::primary('sync_primary', '');
my $standby = Inbox::Failover::standby($primary, 'sync_standby');
my $scene = Inbox::Scene->new('own', 'sync', node => $primary, ms => 5,
    service => [ '--lookup-standby', $standby->connstr('postgres') ]);
$primary->safe_psql('postgres',
    q{ALTER SYSTEM SET synchronous_standby_names = 'sync_standby'; SELECT pg_reload_conf()});
$scene->wait_for(q{SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'}, 1, 20);
my ($standbys) = Inbox::Check->run(dbname => $primary->connstr('postgres'))->facts('standbys');
is_deeply([ @$standbys{qw(ok value)} ], [ JSON::PP::true, 'COMMIT waits for sync_standby' ],
    '--check sees the standby');
my $work = Inbox::Workload->new(count => 600, twice => 60);
$work->publish($scene->{service}, $scene->{topic});
my @pullers = map {
    $scene->puller(dbname => Inbox::Failover::dbname($primary, $standby),
        options => ['--workers=2'])
} 1 .. 2;

$work->wait_applied($primary, 60, 200);
cmp_ok($scene->{service}->stats->{counters}{acked}, '>', 0, 'some are acknowledged');
Inbox::Failover::promote($primary, $standby);
cmp_ok($work->applied($standby), '<', 600, 'the primary died in the middle');
$work->wait_applied($standby, 90);
foreach my $puller (@pullers)
{
    my $event = $puller->wait_event('database_changed');
    isnt($event->{timeline_now}, $event->{timeline_before}, 'the puller sees another timeline');
    is($puller->stop, 0, 'and ends well') if $puller != $pullers[-1];
}
wait_until('acks', sub { $scene->{service}->stats('sync-sub')->{unacked} == 0 }, 40);
is($pullers[-1]->stop, 0, 'all is acknowledged');
my $lookup = wait_until('lookups', sub {
    my $side = $scene->{service}->stats->{lookup}{standby};
    $side->{pending} == 0 ? $side : undef;
}, 30);
is($lookup->{lost}, 0, 'nothing that was acknowledged is missing on the standby');
$work->is_exact($standby, 'on the standby');
is($standby->safe_psql('postgres', 'SELECT count(*) FROM inbox_failure'), 0,
    'no message is blamed');
done_testing;
