# SPDX-License-Identifier: PostgreSQL
# A transaction is one round trip to the server, whatever its size, and also when it fails.
use strict;
use warnings;
use Test::More;
use Inbox::Ledger;
use Inbox::Proxy;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

my $node = Inbox::Ledger->start('one_round_trip');
my $service = Inbox::Service->start('own');
# Slow enough that what one side sends at once arrives in one piece of the count.
my $proxy = Inbox::Proxy->before_node($node, '--latency', '100');
my $user = $node->safe_psql('postgres', 'SELECT current_user');

$service->create_topic('pay');
$service->create_subscription('pay-sub', 'pay');
my $puller = Inbox::Puller->start(service => $service, dbname => $proxy->connstr($user),
    subscription => $service->subscription('pay-sub'), handler => 'apply_payment');
$puller->wait_event('db_connected');

# Round trips that this takes, until the log shows "$count" more events of the name.
sub round_trips
{
    my ($event, $filter, @messages) = @_;
    my $before = $proxy->stats->{roundTrips};
    my $seen = grep { $filter->($_) } $puller->events($event);
    $service->publish('pay', @messages);
    wait_until("$event in the log",
        sub { (grep { $filter->($_) } $puller->events($event)) - $seen >= @messages });
    return $proxy->stats->{roundTrips} - $before;
}

my $applied = sub { ($_[0]->{verdict} // '') eq 'applied' };
is(round_trips('message', $applied, Inbox::Ledger::payment('small', 1, 1)),
    1, 'one message: one round trip');
is(round_trips('message', $applied,
        { data => '{"account": 1, "amount": 1, "note": "' . 'x' x 300_000 . '"}',
            attributes => { idempotency_key => 'large' } }),
    1, 'a large message: one round trip');
is(round_trips('message_failed', sub { 1 }, Inbox::Ledger::payment('bad', 999, 1)),
    2, 'a message that fails: one round trip to run it, one to record that');

is($puller->stop, 0, 'stops cleanly');
is(Inbox::Ledger::summary($node), '2 2 0 0', 'the ledger is exact');

$proxy->stop;
$service->stop;
$node->stop;
done_testing();
