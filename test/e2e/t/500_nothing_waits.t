# SPDX-License-Identifier: PostgreSQL
# What can go on goes on in the same turn of the puller's loop, whatever else is slow; and a loop
# with nothing to do sleeps.
use strict;
use warnings;
use Test::More;
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

my $node = Inbox::Ledger->start('waits');
my $service = Inbox::Service->start('own');

# One connection and batches of one: the second of two messages needs the next batch. Its
# transaction must not wait until the service has answered the first one's acknowledgement. The
# messages before them open the connections to the service, for one that is made wakes the loop.
sub next_batch
{
    my $name = 'slowack';
    my @payments = map { Inbox::Ledger::payment("$name$_", $_, 1) } 1 .. 22;
    my $applied = "SELECT count(*) FROM effect WHERE key LIKE '$name%'";

    $service->create_topic($name);
    $service->create_subscription($name, $name, ackDeadlineSeconds => 60);
    $service->publish($name, @payments[ 0 .. 19 ]);
    my $puller = Inbox::Puller->start(service => $service, node => $node,
        handler => 'apply_payment', subscription => $service->subscription($name),
        options => [ '--workers=1', '--batch-size=1' ]);
    wait_until('the first to be acknowledged', sub { $service->stats($name)->{unacked} == 0 });
    $service->add_faults({ on => 'ack', subscription => $name, do => 'delay', ms => 8000, nth => 1 });
    $service->publish($name, @payments[ 20, 21 ]);
    Inbox::Ledger::wait_for($node, $applied, 22, 30);
    is($service->stats($name)->{unacked}, 1, 'both are applied before the service answers');
    is($puller->stop, 0, 'the puller stops');
}

next_batch();
done_testing();
