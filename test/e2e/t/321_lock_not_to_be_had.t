# SPDX-License-Identifier: PostgreSQL
# The wait for the lock of the lock group ends by a limit of its own. That is no contention: batches go
# on sharing the lock, no message is blamed, and all are applied once the lock is free.
use strict;
use warnings;
use Test::More;
use Inbox::Ledger;
use Inbox::Scene;
use Inbox::Service;
use Inbox::Wait;
use Inbox::Workload;

my $sql = <<'SQL';
CREATE TABLE run (key text, alone bool);
CREATE FUNCTION note_lock(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO run SELECT note_lock.key, bool_or(mode = 'ExclusiveLock') FROM pg_locks
		WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND granted;
	PERFORM apply_payment(key, payload);
END $$;
SQL

sub check
{
    my ($kind) = @_;
    my $scene = Inbox::Scene->new($kind, 'lock', sql => $sql);
    my $puller = $scene->puller(handler => 'note_lock', options => [ '--workers=2',
            '--handler-timeout=3s', '--batch-time=1s', '--lock-timeout=1s' ]);
    my $work = Inbox::Workload->new(count => 100);
    my @limits = qw(55P03 57014);

    $scene->publish(Inbox::Ledger::payment('first', 1, 0));
    $scene->wait_for('SELECT count(*) FROM run', 1);
    # Twice the handler's limit is that of the wait.
    my $holder = Inbox::Ledger::hold($scene->{node},
        'SELECT pg_advisory_xact_lock(lock_key) FROM inbox_source');
    $work->publish($scene->{service}, 'lock');
    wait_until('the wait to end several times', sub { $puller->events('transaction_failed') >= 3 }, 90);
    is(scalar($work->applied($scene->{node})), 0, 'nothing is applied without the lock');
    Inbox::Ledger::release($holder);
    $work->wait_applied($scene->{node}, 90);

    my %limit = map { $_->{sqlstate} => 1 } $puller->events('transaction_failed');
    is(scalar(grep { my $state = $_; !grep { $_ eq $state } @limits } keys %limit), 0,
        'by a limit, and nothing else failed: ' . join(' ', sort keys %limit));
    is(scalar($puller->events('contention')), 0, 'it is no contention');
    is($scene->count('SELECT count(*) FROM run WHERE alone'), 0, 'the lock is shared as before');
    is(scalar(map { $puller->events($_) } qw(message_failed dead_letter suspect_tried)), 0,
        'no message is blamed');
    is($scene->count('SELECT count(*) FROM inbox_failure'), 0, 'or has a row');
    is(Inbox::Ledger::summary($scene->{node}), '101 101 0 0', 'every payment is there once');
    Inbox::Workload->all_acked($scene->{service}, $scene->{name}, $puller, 'all is acknowledged');
    $scene->{node}->stop;
}

foreach my $kind (Inbox::Service::kinds())
{
    subtest $kind => sub { check($kind) };
}
done_testing;
