# SPDX-License-Identifier: PostgreSQL
# Exactly-once delivery with ordering keys, where acknowledgements are refused one by one for now, for
# longer than the ack deadline: they are sent again while the leases are extended, so that nothing
# is delivered twice. The same with and without the permission to read the subscription.
use strict;
use warnings;
use JSON::PP;
use Test::More;
use Inbox::Ledger;
use Inbox::Scene;
use Inbox::Wait;

my %denied = (readable => [], unreadable => ['pubsub.subscriptions.get']);
my ($count, $deadline) = (12, 10);
my (%scene, %puller, %out, $node);

foreach my $name (sort keys %denied)
{
    my $scene = $scene{$name} = Inbox::Scene->new('own', $name, $node ? (node => $node) : (),
        fields => { enableExactlyOnceDelivery => JSON::PP::true,
            enableMessageOrdering => JSON::PP::true });
    $node //= $scene->{node};
    $scene->{service}->call('POST', '/control/permissions', { denied => $denied{$name} });
    $scene->{service}->add_faults({ on => 'ack_id', do => 'fail', every => 1,
        reason => 'TRANSIENT_FAILURE_UNORDERED_ACK_ID' });
    $scene->publish(map { Inbox::Ledger::payment("$name $_", $_, 1, orderingKey => 'o' . $_ % 3) }
          1 .. $count);
    $puller{$name} = $scene->puller(handler => 'apply_payment');
}
$_->wait_event('ack_failed') foreach values %puller;
my $start = time;
foreach my $name (sort keys %denied)
{
    my $scene = $scene{$name};
    wait_until('refusals for longer than the ack deadline',
        sub { time > $start + $deadline + 1 && $puller{$name}->events('ack_failed') }, 40);
    $out{$name} = join ' ', sort keys %{ $scene->deliveries };
    $scene->{service}->clear_faults;
}
foreach my $name (sort keys %denied)
{
    my ($scene, $puller) = ($scene{$name}, $puller{$name});
    wait_until('all to be acknowledged',
        sub { $scene->{service}->stats($scene->{name})->{unacked} == 0 }, 40);
    is($puller->stop, 0, "$name: it ends well");
    my ($end) = $puller->events('stopped');
    is("$end->{applied} $end->{duplicate} $end->{acks_lost}", "$count 0 0", "$name: nothing was lost");
    is(scalar(grep { $_ > 1 } values %{ $scene->deliveries }), 0, "$name: nothing came twice");
    my %extended = map { $_->{messageId} => 1 }
      grep { $_->{seconds} == 60 } $scene->{service}->history('modack');
    is(join(' ', sort keys %extended), $out{$name},
        "$name: what was refused was extended, by no less than such subscriptions ask for");
}
is(scalar(() = $puller{unreadable}->events('subscription_not_readable')), 1,
    'not being able to read is said once');
is(Inbox::Ledger::summary($node), join(' ', 2 * $count, 2 * $count, 0, 0), 'the ledger is exact');
done_testing;
