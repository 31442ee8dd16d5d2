#!/usr/bin/perl
# SPDX-License-Identifier: PostgreSQL
# Exactly-once delivery, dead letters, retry policies, filters, seek and snapshots.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PubSub;
use JSON::PP;
use Test::More;
use Time::HiRes qw(time);

my $server    = PubSub->start('--long-poll', 20);
my $permanent = 'PERMANENT_FAILURE_INVALID_ACK_ID';

sub failures
{
    my ($response) = @_;
    my ($detail)   = @{ $response->{json}{error}{details} || [] };
    return $detail ? $detail->{metadata} : {};
}

# Exactly-once.
$server->topic('once');
$server->subscription('once-sub', 'once', enableExactlyOnceDelivery => JSON::PP::true);
$server->publish('once', 'a', 'b');
$server->data_now('once-sub');
my ($a, $b) = @{ $server->{last} };
$server->modack('once-sub', 0, $a);
$server->data_now('once-sub');
my ($again) = @{ $server->{last} };
my $response = $server->ack('once-sub', $a, $b, 'garbage');
is( PubSub::problem($response),
    '400 INVALID_ARGUMENT',
    'exactly-once: one failure fails the request');
is_deeply(
    failures($response),
    { $a->{ackId} => $permanent, garbage => $permanent },
    'but only what failed is named');
is($response->{json}{error}{details}[0]{reason}, 'EXACTLY_ONCE_ACKID_FAILURE', 'with the reason');
is($server->counts('once-sub')->{leased},        1, 'and the rest is done');
is_deeply(
    failures($server->modack('once-sub', 60, $b)),
    { $b->{ackId} => $permanent },
    'extending what is gone fails');
$server->modack('once-sub', 1, $again);
PubSub::wait_for('the lease to end', sub { $server->counts('once-sub')->{ready} == 1 });
is_deeply(
    failures($server->ack('once-sub', $again)),
    { $again->{ackId} => $permanent },
    'an expired id fails even if the message was not delivered again');
$server->data_now('once-sub');
is($server->ack('once-sub', @{ $server->{last} })->{status}, 200, 'the newest id works');
is($server->ack('once-sub', @{ $server->{last} })->{status}, 400, 'once');

# Dead letters.
$server->topic('orders');
$server->topic('dead');
$server->subscription('dead-sub', 'dead');
$server->subscription('sub', 'orders',
    deadLetterPolicy => { deadLetterTopic => 'projects/p/topics/dead', maxDeliveryAttempts => 5 });
$server->publish('orders', { data => 'poison', attributes => { k => 'v' } });
for my $attempt (1 .. 5)
{
    my ($message) = $server->pull('sub', 1);
    is($message->{deliveryAttempt}, $attempt, "delivery attempt $attempt");

    # An expired lease counts like a nack.
    $server->modack('sub', $attempt == 2 ? 1 : 0, $message);
}
PubSub::wait_for('the dead letter', sub { $server->counts('dead-sub')->{ready} == 1 });
is($server->counts('sub')->{unacked}, 0, 'after the fifth failure the message is gone');
my ($dead) = $server->pull('dead-sub', 1);
my ($published) =
    grep { ($_->{bytes} || 0) == 8 && !$_->{deadLetterOf} } $server->history('publish');
my $attributes = $dead->{message}{attributes};
is($dead->{message}{data}, 'poison', 'to the dead-letter topic');
isnt($dead->{message}{messageId}, $published->{messageId}, 'under another id');
is($attributes->{k},                                              'v',   'with its attributes');
is($attributes->{CloudPubSubDeadLetterSourceDeliveryCount},       '5',   'the number of attempts');
is($attributes->{CloudPubSubDeadLetterSourceSubscription},        'sub', 'the subscription');
is($attributes->{CloudPubSubDeadLetterSourceSubscriptionProject}, 'p',   'its project');
like($attributes->{CloudPubSubDeadLetterSourceTopicPublishTime},
    qr/^\d{4}-.*Z$/, 'and when it was published');

# Without its topic nothing is forwarded.
$server->subscription('lost', 'orders',
    deadLetterPolicy => { deadLetterTopic => 'projects/p/topics/none' });
$server->publish('orders', 'x');
for (1 .. 6)
{
    $server->data_now('lost');
    $server->modack('lost', 0, @{ $server->{last} });
}
is($server->data_now('lost'), 'x', 'without its topic a dead letter comes on and on');

# Retry policy.
$server->topic('retried');
$server->subscription('retry', 'retried',
    retryPolicy => { minimumBackoff => '0.4s', maximumBackoff => '0.6s' });
$server->publish('retried', 'y');
my @waits;
for (1 .. 3)
{
    $server->modack('retry', 0, $server->pull('retry', 1));
    my $start = time;
    PubSub::wait_for('the backoff', sub { $server->counts('retry')->{ready} == 1 });
    push @waits, time - $start;
}
cmp_ok($waits[0], '>', 0.35, 'the first nack waits for the minimum');
cmp_ok($waits[1], '>', 0.55, 'then longer');
cmp_ok($waits[2], '<', 1.55, 'up to the maximum');

# Filters.
my @filters = (
    ['attributes:a',                                              'ab a az'],
    ['NOT attributes:a',                                          'none b'],
    ['-attributes:a',                                             'none b'],
    ['attributes.a = "1"',                                        'ab a'],
    ['attributes.a != "1"',                                       'none b az'],
    ['hasPrefix(attributes.a, "z")',                              'az'],
    ['attributes:a AND attributes:b',                             'ab'],
    ['attributes:a OR attributes:b',                              'ab a b az'],
    ['attributes:b OR (attributes:a AND NOT attributes.a = "1")', 'ab b az'],
    ['attributes:"b"',                                            'ab b'],
    ['attributes.a="\x7a\145\u0064"',                             '']);
$server->topic('filtered');
$server->subscription("filter$_", 'filtered', filter => $filters[$_][0]) foreach 0 .. $#filters;
$server->publish(
    'filtered',
    { data => 'ab', attributes => { a => '1', b => '2' } },
    { data => 'none' },
    { data => 'a',  attributes => { a => '1' } },
    { data => 'b',  attributes => { b => '' } },
    { data => 'az', attributes => { a => 'zed!' } });
is($server->data_now("filter$_"), $filters[$_][1], "filter $filters[$_][0]") foreach 0 .. $#filters;
foreach my $wrong (
    'attributes',
    'attributes.a',
    'attributes.a = 1',
    'attributes.a = "1',
    'x = "1"',
    '(attributes:a',
    'attributes:a attributes:b',
    'attributes:a AND',
    'hasPrefix(attributes.a)',
    'attributes:a AND attributes:b OR attributes:c',
    'attributes:' . 'a' x 250)
{
    is( PubSub::problem($server->call(
            'PUT', 'subscriptions/wrong',
            { topic => 'projects/p/topics/filtered', filter => $wrong })),
        '400 INVALID_ARGUMENT',
        "no filter: $wrong");
}

# Seek.
$server->topic('log');
$server->subscription('log-sub', 'log', retainAckedMessages => JSON::PP::true);
$server->subscription('forget', 'log');
$server->publish('log', 'one', 'two');
$server->data_now('log-sub');
$server->ack('log-sub', @{ $server->{last} });
$server->data_now('forget');
$server->ack('forget', @{ $server->{last} });
my $middle = $server->{last}[1]{message}{publishTime};
PubSub::wait_for(
    'the clock to go on',
    sub {
        $server->publish('log', 'three');
        $server->data_now('forget');
        $server->{last}[-1]{message}{publishTime} gt $middle;
    });
sub seek_to { return $server->call('POST', "subscriptions/$_[0]:seek", $_[1]); }
my @held = @{ $server->{last} };
is(seek_to('log-sub', { time => '2000-01-01T00:00:00Z' })->{status}, 200, 'seek into the past');
like($server->data_now('log-sub'), qr/^one two( three)+$/, 'brings everything again that was kept');
is(seek_to('log-sub', { time => '2100-01-01T00:00:00+01:00' })->{status},
    200, 'seek into the future');
is($server->data_now('log-sub'), '', 'acknowledges everything');
seek_to('log-sub', { time => $held[-1]{message}{publishTime} });
is($server->data_now('log-sub'), 'three',
    'seek to a moment brings what was published from then on');
seek_to('forget', { time => '2000-01-01T00:00:00Z' });
unlike($server->data_now('forget'), qr/one/, 'what was not kept does not come again');
is(PubSub::problem(seek_to('log-sub', $_)), '400 INVALID_ARGUMENT', 'no seek: ' . encode_json($_))
    foreach (
    {},
    { time => 'noon' },
    { time => '2000-01-01T00:00:00Z', snapshot => 'projects/p/snapshots/snap' });

# Snapshots.
$server->topic('shots');
$server->subscription('shots-sub', 'shots');
$server->publish('shots', 1 .. 4);
$server->data_now('shots-sub', 2);
$server->ack('shots-sub', @{ $server->{last} });
my $snapshot = $server->must('PUT', 'snapshots/snap',
    { subscription => 'projects/p/subscriptions/shots-sub', labels => { a => 'b' } });
is($snapshot->{topic}, 'projects/p/topics/shots', 'a snapshot is made');
is( PubSub::problem(
        $server->call(
            'PUT', 'snapshots/snap', { subscription => 'projects/p/subscriptions/shots-sub' })),
    '409 ALREADY_EXISTS',
    'once');
$server->data_now('shots-sub');
$server->ack('shots-sub', @{ $server->{last} });
$server->publish('shots', 5);
$server->subscription('fresh', 'shots');
is(seek_to('shots-sub', { snapshot => 'projects/p/snapshots/snap' })->{status}, 200, 'seek to it');
is($server->data_now('shots-sub'),
    '3 4 5', 'brings what was unacknowledged then, and what came later');
seek_to('fresh', { snapshot => 'projects/p/snapshots/snap' });
is($server->data_now('fresh'), '3 4', 'into another subscription of the topic too');
is( PubSub::problem(seek_to('sub', { snapshot => 'projects/p/snapshots/snap' })),
    '400 INVALID_ARGUMENT',
    'not of another topic');
is( PubSub::problem(seek_to('sub', { snapshot => 'projects/p/snapshots/none' })),
    '404 NOT_FOUND',
    'not what does not exist');
is_deeply(
    $server->must('GET', 'topics/shots/snapshots'),
    { snapshots => ['projects/p/snapshots/snap'] },
    'the topic lists it');
is($server->must('GET', 'snapshots')->{snapshots}[0]{labels}{a}, 'b', 'so does the project');
is( $server->must(
        'PATCH', 'snapshots/snap',
        { snapshot => { labels => { a => 'c' } }, updateMask => 'labels' })->{labels}{a},
    'c',
    'its labels can be changed');
$server->must('DELETE', 'snapshots/snap');
is(PubSub::problem($server->call('GET', 'snapshots/snap')), '404 NOT_FOUND', 'deleted, it is gone');

# What the topic keeps.
$server->topic('kept', messageRetentionDuration => '3600s');
$server->publish('kept', 'early');
$server->subscription('late', 'kept');
is($server->data_now('late'), '', 'a subscription has nothing from before it was made');
seek_to('late', { time => '2000-01-01T00:00:00Z' });
is($server->data_now('late'), 'early', 'but can seek to what its topic keeps');

done_testing();
