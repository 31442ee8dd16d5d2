#!/usr/bin/perl
# SPDX-License-Identifier: PostgreSQL
# The resources: how they are made, named, listed, changed and deleted, and what is refused.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PubSub;
use JSON::PP;
use Test::More;

my $server = PubSub->start;

# Topics.
is_deeply(
    $server->topic('orders', labels => { a => 'b' }),
    { name => 'projects/p/topics/orders', labels => { a => 'b' }, state => 'ACTIVE' },
    'a topic is made');
is(PubSub::problem($server->call('PUT', 'topics/orders', {})), '409 ALREADY_EXISTS', 'once');
is($server->must('GET', 'topics/orders')->{labels}{a}, 'b', 'a topic is there');
is($server->must('GET', 'topics/or%64ers')->{name}, 'projects/p/topics/orders',
    'names are decoded');
is(PubSub::problem($server->call('GET', 'topics/none')), '404 NOT_FOUND', 'or not');
is(PubSub::problem($server->call('PUT', "topics/$_", {})), '400 INVALID_ARGUMENT', "no name: $_")
    foreach ('ab', '1ab', 'googab', 'a' x 256);
is($server->call('GET', '/v2/projects/p/topics/orders')->{status},
    404, 'an unknown path is not found');
is( $server->must(
        'PATCH',
        'topics/orders',
        {   topic      => { messageRetentionDuration => '600s' },
            updateMask => 'messageRetentionDuration' })->{messageRetentionDuration},
    '600s',
    'a topic is changed');

# Subscriptions.
my $subscription = $server->subscription('plain', 'orders');
is_deeply(
    $subscription,
    {   name                          => 'projects/p/subscriptions/plain',
        topic                         => 'projects/p/topics/orders',
        state                         => 'ACTIVE',
        ackDeadlineSeconds            => 10,
        messageRetentionDuration      => '604800s',
        pushConfig                    => {},
        expirationPolicy              => { ttl => '2678400s' },
        topicMessageRetentionDuration => '600s' },
    'a subscription is made with the defaults');
$subscription = $server->must(
    'PUT',
    'subscriptions/full',
    {   topic                     => 'projects/p/topics/orders',
        ack_deadline_seconds      => '60',
        retainAckedMessages       => JSON::PP::true,
        messageRetentionDuration  => '1200.5s',
        labels                    => { x => 'y' },
        enableMessageOrdering     => JSON::PP::true,
        expirationPolicy          => {},
        filter                    => 'attributes:a',
        enableExactlyOnceDelivery => JSON::PP::true,
        deadLetterPolicy          =>
            { deadLetterTopic => 'projects/p/topics/dead', maxDeliveryAttempts => 7 },
        retryPolicy => { minimumBackoff => '1s' } });
is($subscription->{ackDeadlineSeconds}, 60, 'snake_case and a number as a string are understood');
is($subscription->{messageRetentionDuration}, '1200.500s', 'a duration with a fraction');
is_deeply(
    $subscription->{deadLetterPolicy},
    { deadLetterTopic => 'projects/p/topics/dead', maxDeliveryAttempts => 7 },
    'dead-letter policy');
is_deeply(
    $subscription->{retryPolicy},
    { minimumBackoff => '1s', maximumBackoff => '600s' },
    'retry policy');
is_deeply($subscription->{expirationPolicy}, {}, 'never expires');

my %refused = (
    'a deadline of 9'               => { ackDeadlineSeconds       => 9 },
    'a deadline of 601'             => { ackDeadlineSeconds       => 601 },
    'a deadline that is no number'  => { ackDeadlineSeconds       => 'x' },
    'a retention under ten minutes' => { messageRetentionDuration => '599s' },
    'a duration without unit'       => { messageRetentionDuration => '600' },
    'an expiration under a day'     => { expirationPolicy         => { ttl            => '100s' } },
    'a backoff over 600 s'          => { retryPolicy              => { maximumBackoff => '601s' } },
    'a field that does not exist'   => { fooBar                   => 1 },
    'an invalid filter'             => { filter                   => 'attributes' },
    'a label that is no string'     => { labels                   => { a => {} } });
is( PubSub::problem($server->call(
        'PUT', 'subscriptions/bad', { topic => 'projects/p/topics/orders', %{ $refused{$_} } })),
    '400 INVALID_ARGUMENT',
    "refused: $_") foreach sort keys %refused;
is( PubSub::problem($server->call(
        'PUT',
        'subscriptions/bad',
        {   topic            => 'projects/p/topics/orders',
            deadLetterPolicy =>
                { deadLetterTopic => 'projects/p/topics/dead', maxDeliveryAttempts => 4 } })),
    '400 OUT_OF_RANGE',
    'refused: four delivery attempts');
is( PubSub::problem($server->call(
        'PUT',
        'subscriptions/bad',
        {   topic      => 'projects/p/topics/orders',
            pushConfig => { pushEndpoint => 'http://127.0.0.1/' } })),
    '501 UNIMPLEMENTED',
    'refused: push');
is( PubSub::problem(
        $server->call('PUT', 'subscriptions/bad', { topic => 'projects/p/topics/none' })),
    '404 NOT_FOUND',
    'refused: a topic that does not exist');

sub patch
{
    my ($mask, %fields) = @_;
    return $server->call('PATCH', 'subscriptions/plain',
        { subscription => \%fields, updateMask => $mask });
}
is( patch('ackDeadlineSeconds,retry_policy', ackDeadlineSeconds => 30, retryPolicy => {})
        ->{json}{ackDeadlineSeconds},
    30,
    'a subscription is changed');
is($server->must('GET', 'subscriptions/plain')->{retryPolicy}{minimumBackoff},
    '10s', 'in all the mask names');
is( PubSub::problem(patch('', ackDeadlineSeconds => 30)),
    '400 INVALID_ARGUMENT',
    'refused: an empty mask');
is( PubSub::problem(patch('filter', filter => '')),
    '400 INVALID_ARGUMENT',
    'refused: a field that stays');
is( PubSub::problem(
        patch('labels,ackDeadlineSeconds', labels => { a => 'b' }, ackDeadlineSeconds => 5)),
    '400 INVALID_ARGUMENT',
    'refused: a wrong value');
ok(!$server->must('GET', 'subscriptions/plain')->{labels}, 'and then nothing is changed');

# Lists.
$server->subscription("more$_", 'orders') foreach 1 .. 3;
my $page = $server->must('GET', 'subscriptions?pageSize=2');
is(scalar @{ $page->{subscriptions} }, 2, 'a page');
my @names = map { $_->{name} } @{ $page->{subscriptions} };
while ($page->{nextPageToken})
{
    $page = $server->must('GET', "subscriptions?pageSize=2&pageToken=$page->{nextPageToken}");
    push @names, map { $_->{name} } @{ $page->{subscriptions} };
}
is(join(' ', sort map { m{([^/]*)$} } @names), 'full more1 more2 more3 plain',
    'all pages have all');
is(scalar @{ $server->must('GET', 'topics/orders/subscriptions')->{subscriptions} },
    5, 'of a topic');
is_deeply($server->must('GET', '/v1/projects/other/topics'), {}, 'nothing of another project');

# Deleting.
$server->must('DELETE', 'subscriptions/more1');
is( PubSub::problem($server->call('POST', 'subscriptions/more1:pull', { maxMessages => 1 })),
    '404 NOT_FOUND',
    'a deleted subscription is gone');
$server->publish('orders', 'left behind');
$server->must('DELETE', 'topics/orders');
is($server->must('GET', 'subscriptions/plain')->{topic},
    '_deleted-topic_', 'its topic can go before it');
is($server->data_now('plain'), 'left behind', 'and what it has stays');
is( PubSub::problem(
        $server->call('POST', 'topics/orders:publish', { messages => [{ data => 'YQ==' }] })),
    '404 NOT_FOUND',
    'but nothing comes any more');
$server->must('POST', 'subscriptions/plain:detach', {});
is( PubSub::problem($server->call('POST', 'subscriptions/plain:pull', { maxMessages => 1 })),
    '400 FAILED_PRECONDITION',
    'a detached subscription cannot be pulled from');

# Publishing.
$server->topic('limits');
$server->subscription('limits-sub', 'limits');

sub publish
{
    return PubSub::problem($server->call('POST', 'topics/limits:publish', { messages => [@_] }));
}
my %attributes = map { ("k$_" => 'v') } 1 .. 101;
is(publish(),                   '400 INVALID_ARGUMENT', 'refused: no message');
is(publish({}),                 '400 INVALID_ARGUMENT', 'refused: an empty message');
is(publish({ data => '' }),     '400 INVALID_ARGUMENT', 'refused: empty data alone');
is(publish({ data => '!!!!' }), '400 INVALID_ARGUMENT', 'refused: data that are not base64');
is( publish({ attributes => { a => 1 } }),
    '400 INVALID_ARGUMENT',
    'refused: an attribute that is a number');
is(publish({ attributes => \%attributes }), '400 INVALID_ARGUMENT', 'refused: 101 attributes');
is( publish({ attributes => { 'k' x 257, 'v' } }),
    '400 INVALID_ARGUMENT',
    'refused: a name of 257 bytes');
is( publish({ attributes => { k => 'v' x 1025 } }),
    '400 INVALID_ARGUMENT',
    'refused: a value of 1025 bytes');
is(publish({ attributes => { goog => 'v' } }), '400 INVALID_ARGUMENT', 'refused: a reserved name');
is( publish({ data => 'YQ==', orderingKey => 'k' x 1025 }),
    '400 INVALID_ARGUMENT',
    'refused: a key of 1025 bytes');
is( publish({ data => 'YQ==', orderingKey => 'a' }, { data => 'YQ==', orderingKey => 'b' }),
    '400 INVALID_ARGUMENT',
    'refused: two ordering keys in a request');
is(publish(map { { data => 'YQ==' } } 1 .. 1001), '400 INVALID_ARGUMENT', 'refused: 1001 messages');
is(publish({ data => 'YWFh' x 3_333_334 }), '400 INVALID_ARGUMENT',
    'refused: a message over 10 MB');
is( publish(map { { data => 'YWFh' x 1_700_000 } } 1 .. 2),
    '400 INVALID_ARGUMENT',
    'refused: a request over 10 MB');
is($server->call('POST', 'topics/limits:publish', $_)->{status}, 400, "refused: $_")
    foreach (
    '[]',                '{"messages":',
    '{"messages":[]} x', '{"messages":[{"data":"YQ==","x":1}]}',
    "{\"a\":\"\xff\"}");
is($server->counts('limits-sub')->{ready}, 0, 'and nothing of all that was published');

my @ids = (
    $server->publish('limits', { data       => 'x' x 10_000_000 }),
    $server->publish('limits', { attributes => { '' => "a\x{0}b", '\x{fc}' => '' } }));
like($_, qr/^\d{17}$/, 'an id has 17 digits') foreach @ids;
cmp_ok($ids[0], '<', $ids[1], 'ids grow');
my ($data) =
    $server->call('POST', 'subscriptions/limits-sub:pull', { maxMessages => 10 })->{content} =~
    /"data": "([^"]*)"/;
is(length $data, 13_333_336, 'a message of 10 MB comes');
my @received = $server->pull('limits-sub', 10);
is($received[0]{message}{attributes}{''},
    "a\x{0}b", 'and one with attributes alone, U+0000 in them');
ok(!exists $received[0]{message}{data}, 'it has no data');
like(
    $received[0]{message}{publishTime},
    qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
    'a publish time');
$server->must('POST', 'topics/limits:publish',
    { messages => [{ data => '-__-' }, { data => 'YQ' }] });
my $answer = $server->must('POST', 'subscriptions/limits-sub:pull', { max_messages => '10' });
is(join(' ', map { $_->{message}{data} } @{ $answer->{receivedMessages} }),
    '+//+ YQ==', 'base64 comes in the standard form');

# Printing.
like(
    $server->call('GET', 'topics/limits')->{content},
    qr/\A\{\n  "name": /,
    'answers are laid out for people');
like($server->call('GET', 'topics/limits?prettyPrint=false')->{content},
    qr/\A\{"name":/, 'unless asked not to');
ok($server->stop, 'the server stops as it should');

done_testing();
