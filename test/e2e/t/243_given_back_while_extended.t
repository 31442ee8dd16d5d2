# SPDX-License-Identifier: PostgreSQL
# A message fails while the extension of its lease is still on its way. Requests may overtake each
# other: given back before the extension has arrived, it would be away for a whole minute.
use strict;
use warnings;
use Test::More;
use Time::HiRes qw(time);
use Inbox::Proxy;
use Inbox::Scene;
use Inbox::Workload;

my $sql = <<'SQL';
-- It looks at inbox_failure, which no puller may.
CREATE FUNCTION late_payment(key text, payload jsonb) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM inbox_failure f WHERE f.key = late_payment.key) THEN
		PERFORM pg_sleep(5);
		RAISE EXCEPTION 'not yet';
	END IF;
	PERFORM apply_payment(key, payload);
END $$;
SQL

my $scene = Inbox::Scene->new('own', 'late', sql => $sql);
my $work = Inbox::Workload->new(count => 1);
# The first extension is due after a third of the deadline of 10 s, so this is its arrival after
# 5.5 s; the message is given back after 5 s, for a second or two.
my $proxy = Inbox::Proxy->start(to => $scene->{service}->host, protocol => 'http', options =>
      [ '--trigger', 'on=request path=modifyAckDeadline nth=1 do=delay ms=2200' ]);
my $puller = $scene->puller(handler => 'late_payment',
    env => { PUBSUB_EMULATOR_HOST => "$proxy->{host}:$proxy->{port}" });
$work->publish($scene->{service}, 'late');
$puller->wait_event('message_failed');
my $start = time;
$work->wait_applied($scene->{node}, 30);
cmp_ok(time - $start, '<', 20, 'it comes again after its backoff');
is($proxy->stats->{triggers}[0]{fired}, 1, 'an extension was held up');
my @steps = map { $_->{seconds} } $scene->{service}->history('modack');
is($steps[0], 60, 'it had been extended');
cmp_ok($steps[1], '<=', 2, 'before it was given back');
$work->is_exact($scene->{node});
$work->all_acked($scene->{service}, 'late-sub', $puller, 'all is acknowledged');
done_testing;
