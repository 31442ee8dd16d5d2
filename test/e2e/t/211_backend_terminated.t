# SPDX-License-Identifier: PostgreSQL
# A connection's backend is terminated in the middle of transactions and of commits: nothing is
# lost, nothing applied twice, nothing blamed on a message, nothing acknowledged before its time.
use strict;
use warnings;
use Test::More;
use Inbox::Scene;
use Inbox::Wait;
use Inbox::Workload;

sub no_blame
{
    my ($scene, $puller) = @_;
    is($scene->count('SELECT count(*) FROM inbox_failure'), 0, 'no message is blamed for it');
    is(scalar($puller->events('dead_letter')), 0, 'and none is dead');
}

# Looks from within the server: by the time a psql has started, a transaction may be over.
my $terminate = 'CREATE FUNCTION terminate_one() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	terminated bigint := 0;
BEGIN
	WHILE terminated = 0 LOOP
		PERFORM pg_stat_clear_snapshot(), pg_sleep(0.001);
		SELECT count(pg_terminate_backend(pid)) INTO terminated FROM pg_stat_activity
			WHERE ' . Inbox::Scene::IN_TRANSACTION . ';
	END LOOP;
	RETURN terminated;
END $$;';

subtest 'backends terminated in the middle of a transaction' => sub {
    my $scene = Inbox::Scene->new('own', 'terminate', ms => 5, sql => $terminate);
    my $work = Inbox::Workload->new(count => 1000, twice => 100);
    my $puller = $scene->puller(options => [ '--workers=2', '--batch-size=50' ]);
    my $terminated = 0;
    my @rest = @{ $work->{messages} };
    foreach my $time (1 .. 10)
    {
        my $applied = $work->applied($scene->{node});
        $scene->publish(splice(@rest, 0, 110));
        $terminated += $scene->count("SET statement_timeout = '20s'; SELECT terminate_one()");
        $work->wait_applied($scene->{node}, 30, $applied + 20);
    }
    $work->wait_applied($scene->{node}, 60);
    $work->is_exact($scene->{node});
    cmp_ok($terminated, '>=', 10, 'backends were terminated');
    cmp_ok(scalar(grep { $_->{sqlstate} eq '57P01' } $puller->events('outcome_unknown')), '>=', 5,
        'the puller knows neither outcome');
    no_blame($scene, $puller);
    $work->all_acked($scene->{service}, 'terminate-sub', $puller, 'all is acknowledged');
};

# With a synchronous standby that does not exist every COMMIT waits where it cannot be undone.
subtest 'a backend terminated while it commits' => sub {
    my $scene = Inbox::Scene->new('own', 'commit',
        conf => "wal_level = replica\nmax_wal_senders = 4\n");
    my $work = Inbox::Workload->new(count => 100);
    my $puller = $scene->puller;
    my $committing = q{FROM pg_stat_activity WHERE wait_event = 'SyncRep'};
    $puller->wait_event('db_connected');
    $scene->{node}->safe_psql('postgres', q{ALTER SYSTEM SET synchronous_standby_names = 'nobody'});
    $scene->{node}->reload;
    my @rest = @{ $work->{messages} };
    wait_until('a COMMIT that waits', sub {
        $scene->publish(shift @rest);
        $scene->count("SELECT count(*) $committing");
    }, 20);
    my $acked = $scene->{service}->stats->{counters}{acked};
    is($scene->count("SELECT bool_and(pg_terminate_backend(pid)) $committing"), 't', 'terminated');
    $puller->wait_event('outcome_unknown');
    my $applied = $work->applied($scene->{node});
    is($applied, $acked + 1, 'the commit stands');
    wait_until('another connection to wait', sub { $scene->count("SELECT count(*) $committing") });
    is($scene->{service}->stats->{counters}{acked}, $acked, 'but is not acknowledged');
    $scene->{node}->safe_psql('postgres', 'ALTER SYSTEM RESET synchronous_standby_names');
    $scene->{node}->reload;
    $scene->publish(@rest);
    $work->wait_applied($scene->{node}, 40);
    $work->all_acked($scene->{service}, 'commit-sub', $puller, 'all is acknowledged');
    $work->is_exact($scene->{node});
    is($puller->verdicts('duplicate'), 1, 'what was committed is a duplicate');
    no_blame($scene, $puller);
};
done_testing;
