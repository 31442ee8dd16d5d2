# SPDX-License-Identifier: PostgreSQL
# Handlers that lock the same rows in different orders: after a deadlock or a lock timeout batches
# run one at a time, across the pullers of a lock group, until sharing is tried again; no message is
# blamed.
use strict;
use warnings;
use Test::More;
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Scene;
use Inbox::Service;
use Inbox::Wait;

use constant COUNT => 300;

# Each run notes when it began and ended, and whether its transaction held the lock alone.
my $sql = <<'SQL';
CREATE TABLE run (key text, xid bigint DEFAULT txid_current(), alone bool, began timestamptz,
	ended timestamptz);
CREATE FUNCTION cross_rows(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	began timestamptz := clock_timestamp();
BEGIN
	UPDATE account SET balance = balance - 1 WHERE id = (payload->>'from')::int;
	PERFORM pg_sleep(0.005);
	UPDATE account SET balance = balance + 1 WHERE id = (payload->>'to')::int;
	INSERT INTO run (key, alone, began, ended)
		VALUES (key, EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory'
			AND pid = pg_backend_pid() AND mode = 'ExclusiveLock'), began, clock_timestamp());
END $$;
SQL

# The transactions that held the lock alone while another one was running.
my $overlaps = <<'SQL';
WITH t AS (SELECT xid, alone, min(began) AS began, max(ended) AS ended FROM run GROUP BY 1, 2)
SELECT count(*) FROM t a JOIN t b ON a.alone AND a.xid <> b.xid
	AND a.began < b.ended AND b.began < a.ended
SQL

sub crossing
{
    my ($name) = @_;
    return map {
        my $from = 1 + int(rand(4));
        my $to = 1 + ($from + int(rand(3))) % 4;
        { data => qq({"from": $from, "to": $to}), attributes => { idempotency_key => "$name $_" } }
    } 1 .. COUNT;
}

sub check
{
    my ($kind) = @_;
    my $scene = Inbox::Scene->new($kind, 'crossing', sql => $sql);
    my $service = $scene->{service};
    $service->create_topic('other');
    $service->create_subscription('other-sub', 'other');

    my @options = (options => [ '--workers=3', '--batch-size=20', '--lock-group=rows' ],
        handler => 'cross_rows');
    $scene->publish(crossing('one'));
    $service->publish('other', crossing('other'));
    my @pullers = ($scene->puller(@options),
        $scene->puller(@options, subscription => $service->subscription('other-sub')));

    $scene->wait_for('SELECT count(*), count(DISTINCT key) FROM run', join('|', (2 * COUNT) x 2), 180);
    is($scene->count('SELECT sum(balance) FROM account'), 0, 'all are applied once');
    cmp_ok(scalar(map { $_->events('contention') } @pullers), '>=', 1, 'they met in their rows');
    is($scene->count('SELECT count(DISTINCT lock_key) FROM inbox_source'), 1,
        'both sources have one lock');
    cmp_ok($scene->count('SELECT count(DISTINCT xid) FROM run WHERE alone'), '>=', 2,
        'then batches ran alone');
    is($scene->count($overlaps), 0, 'really alone, across both pullers');
    is($scene->count('SELECT count(*) FROM inbox_failure'), 0, 'no message is blamed');
    is(scalar(map { ($_->events('message_failed'), $_->events('dead_letter')) } @pullers), 0,
        'nor said to have failed');

    # One at a time, so that nothing meets any more.
    my $number = 0;
    wait_until('the lock to be shared again', sub {
        my $key = 'later ' . ++$number;
        $scene->publish({ data => '{"from": 1, "to": 2}', attributes => { idempotency_key => $key } });
        $scene->wait_for("SELECT count(*) FROM run WHERE key = '$key'", 1, 30);
        $scene->count("SELECT alone FROM run WHERE key = '$key'") eq 'f';
    }, 150);
    pass('sharing is tried again');
    is($_->stop, 0, 'stops with status 0') foreach @pullers;
    $scene->{node}->stop;
}

foreach my $kind (Inbox::Service::kinds())
{
    subtest $kind => sub { check($kind) };
}
done_testing;
