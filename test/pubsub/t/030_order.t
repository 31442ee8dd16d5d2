#!/usr/bin/perl
# SPDX-License-Identifier: PostgreSQL
# Ordering keys: one outstanding run per key, and redelivery in order from the failed message on.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PubSub;
use JSON::PP;
use Test::More;

my $server = PubSub->start('--long-poll', 5);
my $number = 0;

# A new ordered subscription with the messages, whose first letter is their key; - is none.
sub ordered
{
    my ($settings, @data) = @_;
    $number++;
    $server->topic("topic$number");
    $server->subscription(
        "sub$number", "topic$number",
        enableMessageOrdering => JSON::PP::true,
        %$settings);
    $server->publish("topic$number", { data => $_, /^-/ ? () : (orderingKey => substr($_, 0, 1)) })
        foreach @data;
    return "sub$number";
}

my $sub = ordered({}, qw(A0 A1 B0 A2 -0 B1));
is($server->data_now($sub, 2), 'A0 A1', 'consecutive messages of a key come together');
my @run = @{ $server->{last} };
is($server->data_now($sub, 10),
    'B0 B1 -0', 'others go on, but no more of a key that is outstanding');
is($server->data_now($sub, 10), '', 'to nobody');
$server->ack($sub, $run[0]);
is($server->data_now($sub, 10), '', 'a part of the run is not enough');
my $pull = $server->background('pull', $sub, 10);
PubSub::wait_for('the pull to wait', sub { $server->counts($sub)->{waitingPulls} == 1 });
$server->ack($sub, $run[1]);
is(join(' ', map { $_->{message}{data} } $pull->()),
    'A2', 'once all are acknowledged, the rest comes at once');

$sub = ordered({}, map { "A$_" } 0 .. 4);
is($server->data_now($sub, 3), 'A0 A1 A2', 'three of five');
@run = @{ $server->{last} };
$server->modack($sub, 0, $run[0]);
is( $server->data_now($sub, 10),
    'A0 A1 A2 A3 A4',
    'after a nack of the first all come again, in order');
$server->ack($sub, $run[1]);
is($server->counts($sub)->{leased}, 5, 'the leases of those behind it are void');

$sub = ordered({}, map { "A$_" } 0 .. 3);
$server->data_now($sub, 3);
@run = @{ $server->{last} };
$server->ack($sub, @run[1, 2]);
is(scalar(grep { $_->{outcome} eq 'done' } $server->history('ack')), 4,
    'acknowledged out of order');
$server->modack($sub, 1, $run[0]);
is(join(' ', map { $_->{message}{data} } $server->pull($sub, 10)),
    'A0 A1 A2 A3', 'after the first expired even acknowledged ones come again');
is(scalar $server->history('ack-undone'), 2, 'which the history tells');

$sub = ordered({}, map { "A$_" } 0 .. 3);
$server->data_now($sub, 3);
@run = @{ $server->{last} };
$server->ack($sub, @run[2, 1, 0]);
is($server->data_now($sub, 10), 'A3', 'acknowledged in any order they are gone once the first is');

$sub = ordered({}, map { "A$_" } 0 .. 2);
$server->data_now($sub, 3);
@run = @{ $server->{last} };
$server->modack($sub, 0, $run[1]);
is($server->data_now($sub, 10),
    '', 'after a nack in the middle the one before it is still outstanding');
$server->ack($sub, $run[0]);
is($server->data_now($sub, 10), 'A1 A2', 'then the rest comes in order');

$sub = ordered({ retryPolicy => { minimumBackoff => '3s', maximumBackoff => '3s' } }, qw(A0 A1 B0));
$server->data_now($sub, 10);
$server->modack($sub, 0, $server->{last}[0]);
is($server->data_now($sub, 10), '', 'a key waits as long as its first message is held back');
is(join(' ', map { $_->{message}{data} } $server->pull($sub, 10)),
    'A0 A1', 'and comes in order after it');

$server->topic('dead');
$server->subscription('dead-sub', 'dead', enableMessageOrdering => JSON::PP::true);
$sub = ordered(
    {   deadLetterPolicy =>
            { deadLetterTopic => 'projects/p/topics/dead', maxDeliveryAttempts => 5 } },
    qw(A0 A1));
for my $attempt (1 .. 5)
{
    $server->data_now($sub, 10);
    is($server->{last}[0]{deliveryAttempt}, $attempt, "attempt $attempt");
    is($server->{last}[1]{deliveryAttempt}, 1,        'counts for the failed message alone');
    $server->modack($sub, 0, $server->{last}[0]);
}
is($server->data_now($sub,       10), 'A1', 'behind a dead letter the key goes on');
is($server->data_now('dead-sub', 10), 'A0', 'which is in the dead-letter topic');
is($server->{last}[0]{message}{orderingKey}, 'A', 'with its ordering key');

# Exactly-once and ordered.
$sub = ordered({ enableExactlyOnceDelivery => JSON::PP::true }, qw(A0 A1));
$server->data_now($sub, 10);
@run = @{ $server->{last} };
my $response = $server->ack($sub, $run[1]);
is( $response->{json}{error}{details}[0]{metadata}{ $run[1]{ackId} },
    'TRANSIENT_FAILURE_UNORDERED_ACK_ID',
    'exactly-once: out of order is a transient failure');
is($server->ack($sub, @run)->{status}, 200, 'and in order it works, in one request');

# An ordering key without an ordered subscription is only a text.
$server->subscription('unordered', "topic$number");
$server->publish("topic$number", { data => "C$_", orderingKey => 'C' }) foreach 0 .. 1;
is($server->data_now('unordered', 1) . ' ' . $server->data_now('unordered', 1),
    'C0 C1', 'no order, no waiting');

done_testing();
