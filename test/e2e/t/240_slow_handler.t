# SPDX-License-Identifier: PostgreSQL
# A message is not delivered again while it is held, however slow its handler is and however long
# it waits for its turn.
use strict;
use warnings;
use Test::More;
use Inbox::Scene;
use Inbox::Workload;

# Three run for longer than the deadline of 10 s, three wait for longer than that before they run;
# on all services at the same time.
my @scenes = map { Inbox::Scene->new($_, 'slow', ms => 11500) } Inbox::Service::kinds();
foreach my $scene (@scenes)
{
    $scene->{work} = Inbox::Workload->new(count => 6);
    $scene->{puller} = $scene->puller(options => ['--workers=3']);
    $scene->{work}->publish($scene->{service}, 'slow');
}
foreach my $scene (@scenes)
{
    subtest $scene->{kind} => sub {
        my ($work, $puller) = @$scene{qw(work puller)};
        $work->wait_applied($scene->{node}, 60);
        $work->is_exact($scene->{node});
        $work->all_acked($scene->{service}, 'slow-sub', $puller, 'all is acknowledged');
        my ($end) = $puller->events('stopped');
        is_deeply([ @$end{qw(pulled applied duplicate acks_lost)} ], [ 6, 6, 0, 0 ],
            'each was delivered once');
        return if $scene->{kind} ne 'own';
        is_deeply([ values %{ $scene->deliveries } ], [ (1) x 6 ], 'the service says so too');
        my @steps = grep { $_->{seconds} > 0 } $scene->{service}->history('modack');
        cmp_ok(scalar(@steps), '>=', 6, 'leases were extended');
        is(scalar(grep { $_->{seconds} != 60 } @steps), 0, 'by 60 s each time');
    };
}
done_testing;
