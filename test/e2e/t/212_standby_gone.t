# SPDX-License-Identifier: PostgreSQL
# A synchronous standby goes away: COMMIT waits. When somebody cancels that wait the server
# commits here with no more than a warning, and nothing of it may be acknowledged until the
# standby has it.
use strict;
use warnings;
use List::Util qw(first);
use Test::More;
use Inbox::Failover;
use Inbox::Kills;
use Inbox::Puller;
use Inbox::Scene;
use Inbox::Service;
use Inbox::Wait;
use Inbox::Workload;

my $primary = Inbox::Failover::primary('primary');
my $standby = Inbox::Failover::standby($primary, 'standby');

my $sql = <<'SQL';
CREATE TABLE pace (held boolean);
INSERT INTO pace VALUES (false);
CREATE FUNCTION paced_payment(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	RAISE WARNING 'not one of the COMMIT';
	WHILE (SELECT held FROM pace)
	LOOP
		PERFORM pg_sleep(0.2);
	END LOOP;
	PERFORM apply_payment(key, payload);
END $$;
SQL
my $scene = Inbox::Scene->new('own', 'standby', node => $primary, sql => $sql,
    service => [ '--lookup-standby', $standby->connstr('postgres') ]);
my $committing = q{FROM pg_stat_activity WHERE wait_event = 'SyncRep'};
my $work = Inbox::Workload->new(count => 200, twice => 20);
my @messages = @{ $work->{messages} };
my $puller = $scene->puller(handler => 'paced_payment', options => ['--workers=2']);

sub key { $_[0]{attributes}{idempotency_key} }
sub acked { $scene->{service}->stats->{counters}{acked} }

$primary->safe_psql('postgres', q{ALTER SYSTEM SET synchronous_standby_names = 'standby'});
$primary->reload;
my @published = splice(@messages, 0, 100);
$scene->publish(@published);
wait_until('all to be acknowledged', sub { acked() == 100 }, 30);
is($primary->safe_psql('postgres', 'SELECT sync_state FROM pg_stat_replication'), 'sync',
    'a synchronous standby');
is($puller->events('outcome_unknown'), 0, "a handler's own warning is none of the COMMIT");

# The puller sleeps meanwhile, so that it reads the whole answer at once: the end of the statement,
# the warning and the end of the COMMIT.
$standby->stop;
my $before = acked();
my $applied = $scene->count('SELECT count(*) FROM effect');
$primary->safe_psql('postgres', 'SET synchronous_commit = local; UPDATE pace SET held = true');
# Not a copy: its handler would not run.
my %known = map { key($_) => 1 } @published;
$scene->publish(splice(@messages, (first { !$known{ key($messages[$_]) } } keys @messages), 1));
$scene->wait_for(q{SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'}, 1, 20);
Inbox::Kills::freeze($puller);
$primary->safe_psql('postgres', 'SET synchronous_commit = local; UPDATE pace SET held = false');
$scene->wait_for("SELECT count(*) $committing", 1, 20);
$scene->count("SELECT pg_cancel_backend(pid) $committing");
$scene->wait_for("SELECT count(*) $committing", 0, 20);
$puller->signal('CONT');
$puller->wait_event('outcome_unknown');
is(acked(), $before, 'a warning read in one piece with all the rest: nothing is acknowledged');

$scene->publish(splice(@messages, 0, 10));
$scene->wait_for("SELECT count(*) > 0 $committing", 't', 20);
is(acked(), $before, 'the standby is gone: COMMIT waits, nothing is acknowledged');
is($puller->events('outcome_unknown'), 1, 'and nothing is given up');

# Once for each transaction that waits; those that follow wait too.
$scene->count("SELECT pg_cancel_backend(pid) $committing");
my $unknown = wait_until('the outcome to be unknown', sub { ($puller->events('outcome_unknown'))[1] });
my ($warning) = grep { $_->{err} =~ /canceling wait for synchronous replication/ }
  $puller->events('db_warning');
ok($warning, 'the wait is cancelled: the server warns');
is(acked(), $before, 'its messages are not acknowledged');
is($scene->count("SELECT count(*) > $applied FROM effect"), 't', 'although they are applied here');
ok(!$unknown->{sqlstate}, 'which is neither a success nor an error');

# They come again when their lease ends: their verdict is "duplicate", and its COMMIT waits too.
wait_until('the messages to come again', sub {
    grep { $_ > 1 } values %{ $scene->deliveries } }, 90);
$scene->wait_for("SELECT count(*) > 0 $committing", 't', 30);
is(acked(), $before, 'a duplicate is not acknowledged before the standby has what it repeats');

$standby->start;
$scene->publish(@messages);
$work->wait_applied($primary, 60);
$work->all_acked($scene->{service}, 'standby-sub', $puller, 'the standby is back');
$work->is_exact($primary);
cmp_ok($puller->verdicts('duplicate'), '>', 20, 'what came again was a duplicate');
$primary->wait_for_catchup($standby, 'replay');
is($standby->safe_psql('postgres', 'SELECT count(DISTINCT key) FROM effect'), 200,
    'every acknowledged payment is on the standby');
is($scene->count('SELECT count(*) FROM inbox_failure'), 0, 'no message is blamed');
done_testing;
