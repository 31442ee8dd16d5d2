# SPDX-License-Identifier: PostgreSQL
# Messages of one ordering key are applied in the order in which they were published, although the
# puller is killed in the middle.
use strict;
use warnings;
use Test::More;
use Inbox::Steps;
use Inbox::Workload;

my $scene = Inbox::Steps::scene('own', 'kill');
Inbox::Steps::publish($scene);
foreach my $life (1 .. 2)
{
    my $puller = Inbox::Steps::start($scene);
    Inbox::Steps::wait_taken($scene, Inbox::Steps::taken($scene) + 30);
    $puller->kill9;
}
my $last = Inbox::Steps::start($scene);
Inbox::Steps::wait_taken($scene, Inbox::Steps::COUNT);
Inbox::Steps::in_order($scene);
Inbox::Workload->all_acked($scene->{service}, 'kill-sub', $last, 'all is acknowledged');
is($scene->count('SELECT count(*) FROM inbox_failure'), 0, 'no failure is left');
done_testing;
