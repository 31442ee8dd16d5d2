# SPDX-License-Identifier: PostgreSQL
# Messages of one ordering key are applied in the order in which they were published, with several
# workers, also when one fails and comes again.
use strict;
use warnings;
use Test::More;
use Inbox::Service;
use Inbox::Steps;
use Inbox::Workload;

my @scenes = map { Inbox::Steps::scene($_, 'order') } Inbox::Service::kinds();
foreach my $scene (@scenes)
{
    $scene->{puller} = Inbox::Steps::start($scene);
    Inbox::Steps::publish($scene);
}
foreach my $scene (@scenes)
{
    subtest $scene->{kind} => sub {
        my $puller = $scene->{puller};
        Inbox::Steps::wait_taken($scene, Inbox::Steps::COUNT);
        Inbox::Steps::in_order($scene);
        is(scalar($puller->events('message_failed')), Inbox::Steps::FAILURES,
            'some had failed twice');
        Inbox::Workload->all_acked($scene->{service}, 'order-sub', $puller, 'all is acknowledged');
        is($scene->count('SELECT count(*) FROM inbox_failure'), 0, 'no failure is left');
    };
}
done_testing;
