# SPDX-License-Identifier: PostgreSQL
# The database is restored to an earlier point in time, and the subscription is sought back to
# before it: what was acknowledged since is applied again, and what was applied before is a duplicate.
use strict;
use warnings;
use Test::More;
use PostgreSQL::Test::Cluster;
use Inbox::Failover;
use Inbox::Puller;
use Inbox::Scene;
use Inbox::Wait;
use Inbox::Workload;

my $primary = Inbox::Failover::primary('pitr_primary', '', has_archiving => 1);
my $scene = Inbox::Scene->new('own', 'pitr', node => $primary, ms => 1,
    fields => { retainAckedMessages => JSON::PP::true });
my $service = $scene->{service};
my $work = Inbox::Workload->new(count => 400, twice => 40);
my @messages = @{ $work->{messages} };
$primary->backup('base');
my $copy = PostgreSQL::Test::Cluster->new('pitr_copy');
my $puller = $scene->puller(dbname => Inbox::Failover::dbname($primary, $copy),
    options => ['--workers=2']);

sub unacked { $service->stats('pitr-sub')->{unacked} }

# Some before the moment, some between it and the point of the restore, some after.
$scene->publish(splice(@messages, 0, 150));
wait_until('the first to be acknowledged', sub { unacked() == 0 }, 40);
my $moment = Inbox::Failover::now($primary);
$scene->publish(splice(@messages, 0, 100));
wait_until('the next to be acknowledged', sub { unacked() == 0 }, 40);
$primary->safe_psql('postgres', q{SELECT pg_create_restore_point('before')});
my $at_point = $work->applied($primary);
$scene->publish(splice(@messages, 0, 150));
wait_until('those after to be acknowledged', sub { unacked() == 0 }, 40);
my $had = $work->applied($primary);
my $file = $primary->safe_psql('postgres', 'SELECT pg_walfile_name(pg_switch_wal())');
$scene->wait_for("SELECT last_archived_wal >= '$file' FROM pg_stat_archiver", 't', 30);

$primary->stop('fast');
$copy->init_from_backup($primary, 'base', has_restoring => 1, standby => 0);
$copy->append_conf('postgresql.conf',
    "recovery_target_name = 'before'\nrecovery_target_action = 'promote'");
$copy->start;
ok($copy->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()'), 'the copy is writable');
my $event = $puller->wait_event('database_changed');
isnt($event->{timeline_now}, $event->{timeline_before}, 'the puller sees another timeline');
like($event->{hint}, qr/seek the subscription back/, 'and says what to do');
is($work->applied($copy), $at_point, 'the copy is as the database was');
cmp_ok($at_point, '<', $had, 'and acknowledged payments are missing');

Inbox::Failover::seek($service, 'pitr-sub', $moment);
$scene->publish(@messages);
$work->wait_applied($copy, 60);
wait_until('all to be acknowledged', sub { unacked() == 0 }, 60);
is($puller->stop, 0, 'after the seek all is acknowledged');
$work->is_exact($copy, 'after the seek');
cmp_ok($puller->verdicts('duplicate'), '>=', 100, 'what was there already was a duplicate');
is($copy->safe_psql('postgres', 'SELECT count(*) FROM inbox_failure'), 0, 'no message is blamed');
done_testing;
