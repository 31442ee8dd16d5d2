# SPDX-License-Identifier: PostgreSQL
# A message that is at work each time the server is stopped at once is not buried for it; a message
# that ends its backend each time is.
use strict;
use warnings;
use Test::More;
use Inbox::Ledger;
use Inbox::Scene;
use Inbox::Wait;
use Inbox::Workload;

# More often than a message may fail.
use constant STOPS => 7;

my $sql = <<'SQL';
CREATE TABLE pace (seconds int);
INSERT INTO pace VALUES (20);
CREATE FUNCTION paced_payment(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	RAISE WARNING 'nobody needs to hear this';
	PERFORM pg_sleep(seconds) FROM pace;
	PERFORM apply_payment(key, payload);
END $$;
SQL

my $scene = Inbox::Scene->new('own', 'fault', sql => $sql);
my $work = Inbox::Workload->new(count => 1);
my $puller = $scene->puller(handler => 'paced_payment');
$work->publish($scene->{service}, 'fault');
foreach my $stop (1 .. STOPS)
{
    $scene->wait_for(q{SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'}, 1, 30);
    $scene->{node}->stop('immediate');
    $scene->{node}->start;
}
$scene->{node}->safe_psql('postgres', 'UPDATE pace SET seconds = 0');
$scene->count(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'});
$work->wait_applied($scene->{node}, 60);
$work->is_exact($scene->{node});
is(scalar($puller->events('dead_letter')), 0, 'it is not buried');
is($scene->count('SELECT count(*) FROM inbox_failure'), 0, 'and no failure is left');
$work->all_acked($scene->{service}, 'fault-sub', $puller, 'it is acknowledged');
done_testing;
