# SPDX-License-Identifier: PostgreSQL
# A puller that slept past its leases, with a transaction open and messages waiting, does no harm
# when it wakes up although another puller has got them meanwhile.
use strict;
use warnings;
use Test::More;
use Inbox::Kills;
use Inbox::Scene;
use Inbox::Wait;
use Inbox::Workload;

my $scene = Inbox::Scene->new('own', 'sleep', ms => 300);
my $work = Inbox::Workload->new(count => 30);
my $puller = $scene->puller(options => ['--batch-size=4']);
$work->publish($scene->{service}, 'sleep');
$work->wait_applied($scene->{node}, 20, 2);
$scene->wait_for(q{SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'}, 1, 20);

# Before the first extension, which would make its leases much longer.
Inbox::Kills::freeze($puller);
my $held = $scene->{service}->stats('sleep-sub')->{leased};
cmp_ok($held, '>', 1, 'it holds messages while it sleeps');
wait_until('their leases to end',
    sub { $scene->{service}->stats('sleep-sub')->{leased} == 0 }, 20);
my $other = $scene->puller;
wait_until('another puller to get them',
    sub { grep({ $_ > 1 } values %{ $scene->deliveries }) == $held }, 40);
$puller->signal('CONT');

$work->wait_applied($scene->{node}, 60);
$work->all_acked($scene->{service}, 'sleep-sub', $puller, 'all is acknowledged');
is($other->stop, 0, 'the other stops');
$work->is_exact($scene->{node});
cmp_ok($other->verdicts('duplicate'), '>', 0, 'what had been committed was a duplicate');
cmp_ok($puller->events('lease_lost') + $puller->events('lease_too_short'), '>', 0,
    'what had not been started was forgotten');
done_testing;
