#!/usr/bin/perl
# SPDX-License-Identifier: PostgreSQL
# Pulls, leases, acknowledgements and deadlines of plain subscriptions.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PubSub;
use JSON::PP;
use Test::More;
use Time::HiRes qw(time);

my $server = PubSub->start('--long-poll', 2);
$server->topic('orders');
$server->subscription('sub', 'orders');

# Pulls wait, and wake at the first message.
my $start = time;
is($server->pull('sub', 10), 0, 'a pull of nothing');
cmp_ok(time - $start, '>=', 1.9, 'waits');
my $patient = PubSub->start('--long-poll', 60);
$patient->topic('orders');
$patient->subscription('sub', 'orders');
my $pull = $patient->background('pull', 'sub', 10);
PubSub::wait_for('the pull to wait', sub { $patient->counts('sub')->{waitingPulls} == 1 });
$start = time;
$patient->publish('orders', 'a', 'b');
is(join(' ', map { $_->{message}{data} } $pull->()),
    'a b', 'a waiting pull gets all that is published together');
cmp_ok($patient->{finished} - $start, '<', 5, 'at once');
my @pulls = map { $patient->background('pull', 'sub', 10) } 1 .. 2;
PubSub::wait_for('two pulls to wait', sub { $patient->counts('sub')->{waitingPulls} == 2 });
$patient->publish('orders', 1 .. 5);
PubSub::wait_for('one pull to be answered', sub { $patient->counts('sub')->{waitingPulls} == 1 });
$patient->publish('orders', 6);
is(join(' ', sort map { scalar @{ [$_->()] } } @pulls), '1 5', 'of two waiting pulls one gets all');
$server->publish('orders', 'a', 'b');
my @received = $server->pull('sub', 10);
is($server->data_now('sub'), '', 'leased messages do not come again');

# Acknowledging.
like($received[0]{ackId}, qr/^[A-Za-z0-9_-]{176}$/, 'ack ids are opaque and long');
is($server->ack('sub', $received[0])->{status}, 200, 'acknowledged');
is($server->ack('sub', $received[0])->{status}, 200, 'again: no error');
is(PubSub::problem($server->ack('sub')), '400 INVALID_ARGUMENT', 'refused: no id');
is( PubSub::problem($server->ack('sub', $received[1], 'garbage')),
    '400 INVALID_ARGUMENT',
    'refused: a malformed id');
is($server->counts('sub')->{leased}, 1, 'then nothing of the request is done');
(my $changed = $received[1]{ackId}) =~ tr/A-Za-z/B-ZAb-za/;
is($server->ack('sub', $changed)->{status}, 400, 'refused: a changed id');
$server->subscription('other', 'orders');
is($server->ack('other', $received[1])->{status}, 400, 'refused: an id of another subscription');
is( $server->ack('sub', ('x' x 200) x 2700)->{json}{error}{message},
    'Request payload size exceeds the limit: 524288 bytes.',
    'refused: a request that is too large');

# Deadlines.
is( PubSub::problem($server->modack('sub', $_, $received[1])),
    '400 INVALID_ARGUMENT',
    "refused: $_ seconds") foreach (-1, 601);
$start = time;
$server->modack('sub', 1, $received[1]);
my @again = $server->pull('sub', 10);
cmp_ok(time - $start, '>=', 0.9, 'a deadline can be shortened');
is($again[0]{message}{messageId}, $received[1]{message}{messageId}, 'and the message comes again');
isnt($again[0]{ackId}, $received[1]{ackId}, 'under another id');
ok(!exists $again[0]{deliveryAttempt}, 'without a count, since there is no dead-letter policy');
is($server->ack('sub', $received[1])->{status},       200, 'the old id is not refused');
is($server->counts('sub')->{leased},                  1,   'but does nothing');
is($server->modack('sub', 0, $received[1])->{status}, 200, 'nor to give it back');
is($server->counts('sub')->{leased},                  1,   'does it anything');
$server->modack('sub', 0, $again[0]);
is($server->data_now('sub'), 'b', 'given back, it comes again');
my $last = $server->{last}[0];
$server->modack('sub', 1, $last);
PubSub::wait_for('the lease to end', sub { $server->counts('sub')->{ready} == 1 });
is($server->modack('sub', 60, $last)->{status}, 200, 'extending an expired lease is not refused');
is($server->counts('sub')->{ready},             1,   'but does nothing');
is($server->ack('sub', $last)->{status},        200, 'acknowledging it');
is($server->counts('sub')->{ready},             0,   'works until it is delivered again');

# Lease of the subscription.
$server->must('PATCH', 'subscriptions/sub',
    { subscription => { ackDeadlineSeconds => 600 }, updateMask => 'ackDeadlineSeconds' });
$server->publish('orders', 'c');
$server->data_now('sub');
my ($deliver) = grep { $_->{lease} == 600 } $server->history('deliver');
ok($deliver, 'the lease is as long as the subscription says');
$server->ack('sub', @{ $server->{last} });

# Sizes of pulls.
is( PubSub::problem($server->call('POST', 'subscriptions/sub:pull', $_)),
    '400 INVALID_ARGUMENT',
    'refused: maxMessages ' . encode_json($_)
) foreach ({}, { maxMessages => 0 }, { maxMessages => -1 });
for my $i (1 .. 3)
{
    $server->publish('orders', map { "$i-$_" } 1 .. 500);
}
is(scalar(@received = $server->pull('sub', 5000)), 1000, 'at most 1000 messages come');
$server->ack('sub', @received);
is(scalar(@received = $server->pull('sub', 5000)), 500, 'and then the rest');
$server->ack('sub', @received);
$server->publish('orders', 'x' x 6_000_000) foreach 1 .. 2;
for (1 .. 2)
{
    my $answer = $server->call('POST', 'subscriptions/sub:pull', { maxMessages => 10 })->{content};
    my @ids    = $answer =~ /"ackId": "([^"]*)"/g;
    is(scalar @ids, 1, 'at most 10 MB come');
    $server->ack('sub', @ids);
}
is_deeply(
    $server->counts('sub'),
    {   acked        => 0,
        backoff      => 0,
        leased       => 0,
        ready        => 0,
        unacked      => 0,
        waiting      => 0,
        waitingPulls => 0 },
    'nothing is left');

# A pull that its client gave up takes messages all the same, as in the real service.
my $response =
    HTTP::Tiny->new(timeout => 0.5)->post($server->url . '/v1/projects/p/subscriptions/sub:pull',
    { content => '{"maxMessages":10}', headers => { 'Content-Type' => 'application/json' } });
is($response->{status}, 599, 'a client gives up');
$server->publish('orders', 'eaten');
is($server->data_now('sub'),         '', 'its pull takes the message');
is($server->counts('sub')->{leased}, 1,  'which is leased to nobody');

# A deleted subscription.
$patient->subscription('gone', 'orders');
$pull = $patient->background('call', 'POST', 'subscriptions/gone:pull', { maxMessages => 10 });
PubSub::wait_for('the pull to wait',
    sub { $patient->counts('gone')->{waitingPulls} == 1 });
$patient->must('DELETE', 'subscriptions/gone');
my ($answer) = $pull->();
is(PubSub::problem($answer), '404 NOT_FOUND', 'a pull ends when its subscription is deleted');

# The history has it all, in order.
my @history = $server->history;
is( join(',', map { $_->{seq} } @history),
    join(',', 1 .. @history),
    'the history is numbered without a gap');
my %events = map { $_->{event} => 1 } @history;
is(join(' ', sort keys %events), 'ack deliver expire modack publish',
    'and has every kind of event');
my $stats = $server->stats->{counters};
is($stats->{delivered}, scalar $server->history('deliver'), 'the counts agree with it');
is( $stats->{acked},
    scalar(grep { $_->{outcome} eq 'done' } $server->history('ack')),
    'in acknowledgements too');

done_testing();
