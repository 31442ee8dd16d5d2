# SPDX-License-Identifier: PostgreSQL
# An asynchronous standby that was behind takes the primary's place: acknowledged payments are gone,
# which no client can see. The puller says so and sends no acknowledgement any more that rests on
# the old primary's word; a seek to before the switch brings all back, and doubles none.
use strict;
use warnings;
use Test::More;
use Inbox::Failover;
use Inbox::Puller;
use Inbox::Scene;
use Inbox::Wait;
use Inbox::Workload;

my $primary = Inbox::Failover::primary('async_primary', '');
my $standby = Inbox::Failover::standby($primary, 'async_standby');
my $scene = Inbox::Scene->new('own', 'async', node => $primary, ms => 1,
    fields => { retainAckedMessages => JSON::PP::true });
my $service = $scene->{service};
my $work = Inbox::Workload->new(count => 300, twice => 30);
my @messages = @{ $work->{messages} };
my $puller = $scene->puller(dbname => Inbox::Failover::dbname($primary, $standby));

sub unacked { $service->stats('async-sub')->{unacked} }

$scene->publish(splice(@messages, 0, 110));
wait_until('the first to be acknowledged', sub { unacked() == 0 }, 40);
$primary->wait_for_catchup($standby, 'replay');

# From here on the standby gets nothing.
my $moment = Inbox::Failover::now($primary);
$standby->safe_psql('postgres', q{ALTER SYSTEM SET primary_conninfo = ''; SELECT pg_reload_conf()});
$scene->wait_for('SELECT count(*) FROM pg_stat_replication', 0, 20);
$scene->publish(splice(@messages, 0, 110));
wait_until('the next to be acknowledged', sub { unacked() == 0 }, 40);

# These are committed, and their acknowledgements do not get through.
$service->add_faults({ on => 'ack', do => 'status', code => 503, probability => 1 });
my @held = splice(@messages, 0, 20);
$scene->publish(@held);
$puller->wait_event('ack_failed');
wait_until('all to be committed', sub {
    $puller->verdicts('applied') + $puller->verdicts('duplicate') >= 240 }, 30);
is(unacked(), 20, 'committed and not acknowledged');

my $had = $work->applied($primary);
Inbox::Failover::promote($primary, $standby);
my $event = $puller->wait_event('database_changed');
isnt($event->{timeline_now}, $event->{timeline_before}, 'the puller sees another timeline');
is($event->{level}, 'error', 'it is an error');
like($event->{hint}, qr/seek the subscription back/, 'and it says what to do');
cmp_ok($work->applied($standby), '<', $had, 'payments that were committed are gone');

$service->clear_faults;
wait_until('the rest to come again', sub { unacked() == 0 }, 60);
my %keys = map { $_->{attributes}{idempotency_key} => 1 } @held;
my $in = join ',', map { "'$_'" } keys %keys;
is($standby->safe_psql('postgres', "SELECT count(DISTINCT key) FROM effect WHERE key IN ($in)"),
    scalar(keys %keys), 'what was not acknowledged is applied anew');
cmp_ok($work->applied($standby), '<', $had, 'what was acknowledged is not');

Inbox::Failover::seek($service, 'async-sub', $moment);
$scene->publish(@messages);
$work->wait_applied($standby, 60);
wait_until('all to be acknowledged', sub { unacked() == 0 }, 60);
is($puller->stop, 0, 'after the seek all is acknowledged');
$work->is_exact($standby, 'after the seek');
done_testing;
