# SPDX-License-Identifier: PostgreSQL
# A message that waits for its turn for longer than --max-lease is given back; until then its lease
# is extended, whatever it waits for.
use strict;
use warnings;
use Test::More;
use Time::HiRes qw(time);
use Inbox::Scene;
use Inbox::Wait;
use Inbox::Workload;

my $scene = Inbox::Scene->new('own', 'patience', ms => 5000);
my $work = Inbox::Workload->new(count => 2);
my $puller = $scene->puller(options => [ '--max-lease=1min', '--db-grace=1h' ]);
$work->publish($scene->{service}, 'patience');
wait_until('both to be held', sub { $scene->{service}->stats('patience-sub')->{leased} == 2 }, 20);
my $start = time;
$scene->{node}->stop('immediate');

wait_until('one to be given back', sub { $scene->{service}->history('modack') > 0
          && grep { $_->{seconds} == 0 } $scene->{service}->history('modack') }, 80, 0.5);
my $took = time - $start;
ok($took > 55 && $took < 65, "after a minute, not before its time and not much later ($took s)");
is(scalar(grep { $_->{event} eq 'expire' } $scene->{service}->history), 0,
    'until then no lease ended');
wait_until('the other', sub { $scene->{service}->stats('patience-sub')->{ready} == 2 }, 5);
is(scalar($puller->events('max_lease_over')), 2, 'both are given back, and it is said');

$scene->{node}->start;
$work->wait_applied($scene->{node}, 30);
$work->all_acked($scene->{service}, 'patience-sub', $puller, 'they come again');
$work->is_exact($scene->{node});
done_testing;
