# SPDX-License-Identifier: PostgreSQL
# The puller built with the address and undefined behaviour sanitizers, through everything at once:
# failures, garbage, a service that misbehaves and a database that is killed. No report, no leak.
use strict;
use warnings;
use Test::More;
use Inbox::Scene;
use Inbox::Wait;
use Inbox::Workload;

my $sql = <<'SQL';
CREATE FUNCTION moody_payment(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_sleep(0.001);
	IF key ~ '[37]7$' AND coalesce((SELECT attempts FROM inbox_failure f
			WHERE f.key = moody_payment.key), 0) < 1 THEN
		RAISE EXCEPTION 'not yet';
	END IF;
	PERFORM apply_payment(key, payload);
END $$;
SQL

my @bad = (
    { data => '{"account": 1, "amount": 1}' },
    { data => "no JSON", attributes => { idempotency_key => 'bad1' } },
    { data => "{\"account\": 1, \"amount\": 1, \"\xff\": 0}", attributes => { idempotency_key => 'bad2' } },
    { data => '{"account": 999, "amount": 1}', attributes => { idempotency_key => 'bad3' } },
    { data => '{"account": 1, "amount": 1}', attributes => { idempotency_key => "bad\0four" } },
);
my @faults = (
    { on => 'request', do => 'status', code => 503, probability => 0.03 },
    { on => 'request', do => 'reset', probability => 0.02 },
    { on => 'request', do => 'reset', when => 'after', probability => 0.02 },
    { on => 'pull', do => 'garbage', every => 15 },
    { on => 'pull', do => 'half', every => 17 },
    { on => 'pull', do => 'cut', bytes => 500, every => 19 },
    { on => 'ack_id', do => 'redeliver', probability => 0.02 },
    { on => 'deliver', do => 'duplicate', probability => 0.02 },
    { on => 'ack_id', do => 'ignore', probability => 0.01 },
);

my $scene = Inbox::Scene->new('own', 'sane', sql => $sql);
my $work = Inbox::Workload->new(count => 2000, twice => 200);
# The faults are the puller's: what publishes here would meet them, too.
$work->publish($scene->{service}, 'sane');
$scene->publish(@bad);
$scene->{service}->call('POST', '/control/faults', { rules => \@faults, seed => 1 });
my $reports = PostgreSQL::Test::Utils::tempdir() . '/report';
my $puller = $scene->puller(handler => 'moody_payment',
    program => "$ENV{INBOX_ROOT}/build/puller-san/inbox-puller",
    options => [ '--workers=3', '--batch-size=40' ],
    env => { ASAN_OPTIONS => "log_path=$reports:detect_leaks=1:exitcode=99",
        UBSAN_OPTIONS => "log_path=$reports:print_stacktrace=1:halt_on_error=1:exitcode=98" });
foreach my $share (300, 900)
{
    $work->wait_applied($scene->{node}, 60, $share);
    $scene->{node}->stop('immediate');
    $scene->{node}->start;
}
$work->wait_applied($scene->{node}, 60, 1500);
$scene->count('SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE '
      . Inbox::Scene::IN_TRANSACTION);
$puller->signal('HUP');
$work->wait_applied($scene->{node}, 60);
$scene->{service}->clear_faults;
$scene->wait_for(q{SELECT count(*) FROM inbox_failure WHERE status = 'dead'}, scalar(@bad), 60);
$work->is_exact($scene->{node});
is($scene->count(q{SELECT count(*) FROM inbox_failure WHERE status <> 'dead'}), 0,
    'what cannot be applied is a dead letter, and nothing else');
wait_until('acks', sub { $scene->{service}->stats('sane-sub')->{unacked} == 0 }, 30);
is($puller->stop, 0, 'stops with status 0, so without a leak');
is(join("\n", map { PostgreSQL::Test::Utils::slurp_file($_) } glob("$reports*")), '', 'no report');
unlike($puller->slurp_log, qr/Sanitizer|runtime error/, 'nor in the log');
done_testing;
