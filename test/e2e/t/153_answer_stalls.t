# SPDX-License-Identifier: PostgreSQL
# The answer of a pull begins and does not go on, on a connection that lives. It is the only pull, and
# its messages are leased: it is not waited for as long as for one that has not been answered yet.
use strict;
use warnings;
use Test::More;
use Inbox::Proxy;
use Inbox::Scene;
use Inbox::Workload;

my $scene = Inbox::Scene->new('own', 'stalls');
my $work = Inbox::Workload->new(count => 3);
my $proxy = Inbox::Proxy->start(to => $scene->{service}->host, protocol => 'http', options =>
      [ '--trigger', 'on=response path=:pull nth=1 offset=400 do=stall' ]);
my $puller = $scene->puller(env => { PUBSUB_EMULATOR_HOST => "$proxy->{host}:$proxy->{port}" });
$work->publish($scene->{service}, 'stalls');
my $event = $puller->wait_event('pull_failed', undef, 60);
like("$event->{outcome} $event->{err}", qr/^transient .*too slow/i, 'it is given up for being silent');
is($proxy->stats->{triggers}[0]{fired}, 1, 'in the middle of its answer');
$work->wait_applied($scene->{node}, 30);
$work->is_exact($scene->{node});
$work->all_acked($scene->{service}, 'stalls-sub', $puller, 'all is acknowledged');
is($puller->stop, 0, 'stops with status 0');
done_testing;
