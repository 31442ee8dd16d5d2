#!/usr/bin/perl
# SPDX-License-Identifier: PostgreSQL
# Every fault on demand: what the client sees of it, and what the server did.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PubSub;
use File::Temp qw(tempdir);
use IO::Socket::INET;
use JSON::PP;
use Test::More;
use Time::HiRes qw(time);

my $dir = tempdir(CLEANUP => 1);
open(my $script, '>', "$dir/faults.json") or die $!;
print $script
    '[{"on":"publish","nth":2,"do":"status","code":503,"retryAfter":7,"message":"not now"}]';
close($script);

our $server = PubSub->start('--faults', "$dir/faults.json", '--long-poll', 1);
$server->topic('orders');
$server->subscription('sub', 'orders', ackDeadlineSeconds => 60);

# A script of the command line.
my $message = { messages => [{ data => 'YQ==' }] };
is($server->call('POST', 'topics/orders:publish', $message)->{status},
    200, 'the first publish succeeds');
my $response = $server->call('POST', 'topics/orders:publish', $message);
is(PubSub::problem($response),          '503 UNAVAILABLE', 'the second fails, as the script says');
is($response->{headers}{'retry-after'}, '7',               'with Retry-After');
is($response->{json}{error}{message},   'not now',         'and the message');
is($server->call('POST', 'topics/orders:publish', $message)->{status}, 200, 'the third succeeds');
is($server->counts('sub')->{ready}, 2, 'and the second was not executed');

# What the bytes of an answer are, as far as they come, and how the connection ends.
sub raw
{
    my ($path, $body, $seconds) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => $server->host, Timeout => 5)
        or return ('', 'refused');
    print $socket "POST /v1/projects/p/$path HTTP/1.1\r\nHost: x\r\nContent-Length: "
        . length($body)
        . "\r\nConnection: close\r\n\r\n$body";
    my $got = '';
    while (1)
    {
        my $ready = '';
        vec($ready, fileno($socket), 1) = 1;
        return ($got, 'silence') if !select($ready, undef, undef, $seconds || 5);
        my $len = sysread($socket, $got, 65536, length $got);
        return ($got, 'reset') if !defined $len;
        return ($got, 'end')   if !$len;
    }
}

# The body's length as announced, the body, and how it ended.
sub outcome
{
    my ($bytes, $end)  = raw(@_);
    my ($head,  $body) = split(/\r\n\r\n/, $bytes, 2);
    return (undef, '', $end) if !defined $body;
    my ($announced) = $head =~ /^Content-Length: (\d+)/mi;
    return ($announced, $body, $end);
}

my $pull = ['subscriptions/sub:pull', '{"maxMessages":1}'];

sub with
{
    my ($rule, @call) = @_;
    $server->clear_faults;
    $server->faults($rule);
    return outcome(@call);
}

my ($announced, $body, $end) = with({ on => 'pull', nth => 1, do => 'reset' }, @$pull);
is("$body $end",                    ' reset', 'reset: the connection is reset without an answer');
is($server->counts('sub')->{ready}, 2,        'before the request was executed');
($announced, $body, $end) =
    with({ on => 'pull', nth => 1, do => 'reset', when => 'after' }, @$pull);
is("$body $end",                     ' reset', 'reset after: no answer either');
is($server->counts('sub')->{leased}, 1,        'but the message is leased');
($announced, $body, $end) =
    with({ on => 'get', nth => 1, do => 'stall' }, 'topics/none:publish', '{}');
isnt($end, 'silence', 'a rule about another event does nothing');
($announced, $body, $end) = with({ on => 'pull', nth => 1, do => 'stall' }, @$pull, 0.5);
is("$body $end",                    ' silence', 'stall: no answer');
is($server->counts('sub')->{ready}, 1,          'and nothing executed');
($announced, $body, $end) = with({ on => 'pull', nth => 1, do => 'cut', bytes => 20 }, @$pull);
cmp_ok($announced, '>', 200, 'cut: a whole body is announced');
is(length $body, 20, 'and 20 bytes come');
isnt($end, 'silence', 'before the connection ends');
$server->publish('orders', 'x') foreach 1 .. 4;
($announced, $body, $end) = with({ on => 'pull', nth => 1, do => 'half' }, @$pull);
is($announced, length $body, 'half: a complete response');
unlike($body, qr/\}\s*\z/, 'with half a document');
($announced, $body, $end) = with({ on => 'pull', nth => 1, do => 'garbage' }, @$pull);
is($announced, length $body, 'garbage: a complete response');
ok(!eval { decode_json($body) }, 'that is no JSON');
my $start = time;
with({ on => 'pull', nth => 1, do => 'delay', ms => 300 }, @$pull);
cmp_ok(time - $start, '>=', 0.29, 'delay: the answer is slow');
$start = time;
with({ on => 'publish', nth => 1, do => 'delay', ms => 300 },
    'topics/orders:publish', '{"messages":[{"data":"YQ=="}]}');
cmp_ok(time - $start, '>=', 0.29, 'to other requests too');
$server->clear_faults;
$server->faults({ on => 'connect', nth => [1, 2], do => 'refuse' });
($announced, $body, $end) = outcome(@$pull);
isnt($end, 'silence', 'refuse: the connection ends');
is($body, '', 'without an answer');
outcome(@$pull);
($announced, $body, $end) = outcome(@$pull);
like($body, qr/receivedMessages/, 'the third connection is served');

my %status = (
    401 => 'UNAUTHENTICATED',
    403 => 'PERMISSION_DENIED',
    404 => 'NOT_FOUND',
    409 => 'ABORTED',
    429 => 'RESOURCE_EXHAUSTED',
    500 => 'INTERNAL',
    502 => 'UNKNOWN',
    503 => 'UNAVAILABLE',
    504 => 'DEADLINE_EXCEEDED');

foreach my $code (sort keys %status)
{
    $server->clear_faults;
    $server->faults({ on => 'request', nth => 1, do => 'status', code => $code });
    is( PubSub::problem($server->call('GET', 'topics/orders')),
        "$code $status{$code}",
        "status $code");
}

# Faults of acknowledgements.
sub fresh
{
    $server->clear_faults;
    $server->must('POST', 'subscriptions/sub:seek', { time => '2100-01-01T00:00:00Z' });
    $server->publish('orders', @_);
    $server->data_now('sub');
    return @{ $server->{last} };
}
my @held = fresh('a');
$server->faults({ on => 'ack', nth => 1, do => 'ignore' });
is($server->ack('sub', @held)->{status}, 200, 'ignore: a success');
is($server->counts('sub')->{leased},     1,   'and nothing done');
@held = fresh('a');
$server->faults({ on => 'modack', nth => 1, do => 'ignore' });
$server->modack('sub', 0, @held);
is($server->counts('sub')->{leased}, 1, 'of extensions too');
@held = fresh('a', 'b');
$server->faults({ on => 'ack_id', nth => 2, do => 'redeliver' });
is($server->ack('sub', @held)->{status}, 200, 'redeliver: a success');
is($server->data_now('sub'),             'b', 'and the message comes again');
@held = fresh('a');
$server->faults({ on => 'ack', nth => 1, do => 'stall' });
my $ack = $server->background(
    'call', 'POST',
    'subscriptions/sub:acknowledge',
    { ackIds => PubSub::ids(@held) });
PubSub::wait_for('the swallowed request',
    sub { $server->must('GET', '/control/faults')->{rules}[0]{fired} });
is($server->counts('sub')->{leased}, 1, 'stall: the acknowledgement is swallowed');

# Faults of deliveries.
@held = fresh('a');
$server->ack('sub', @held);

sub delivered
{
    my ($rule, @data) = @_;
    $server->must('POST', 'subscriptions/sub:seek', { time => '2100-01-01T00:00:00Z' });
    $server->clear_faults;
    $server->faults($rule);
    $server->publish('orders', @data);
    return $server->data_now('sub');
}
is(delivered({ on => 'deliver', nth => 1, do => 'duplicate' }, 'a', 'b'),
    'a b a', 'duplicate: twice in one answer');
my ($first, undef, $second) = @{ $server->{last} };
is($first->{message}{messageId}, $second->{message}{messageId}, 'the same message');
isnt($first->{ackId}, $second->{ackId}, 'under two ids');
$server->ack('sub', $first);
is($server->counts('sub')->{leased}, 2, 'of which the first does nothing');
$server->ack('sub', $second);
is($server->counts('sub')->{leased}, 1, 'and the second acknowledges');
is(delivered({ on => 'deliver', nth => 1, do => 'share' }, 'a', 'b'), 'a b',
    'share: in one answer');
is($server->data_now('sub'),                                           'a',   'and in the next');
is(delivered({ on => 'deliver', nth => 2, do => 'expire' }, 'a', 'b'), 'a b', 'expire: delivered');
is($server->data_now('sub'),                                        'b',   'and given up at once');
is(delivered({ on => 'pull', nth => 2, do => 'expire' }, 'a', 'b'), 'a b', 'expire on a pull');
is($server->data_now('sub'),                                        'a b', 'ends every lease');
is( join(' ', sort split(/ /, delivered({ on => 'pull', nth => 1, do => 'reorder' }, 1 .. 9))),
    join(' ', 1 .. 9),
    'reorder: all messages come');
isnt(
    join(' ', map { $_->{message}{data} } @{ $server->{last} }),
    join(' ', 1 .. 9),
    'in another order');
$server->clear_faults;
$server->must('POST', 'subscriptions/sub:seek', { time => '2100-01-01T00:00:00Z' });
$server->faults({ on => 'deliver', nth => 1, do => 'raw', json => '{"data":"\\ud800"}' });
$server->publish('orders', 'a');
like(
    $server->call('POST', 'subscriptions/sub:pull', { maxMessages => 1 })->{content},
    qr/"message": \{"data":"\\ud800"\}/,
    'raw: any text in the place of a message');

# Exactly-once.
$server->clear_faults;
$server->subscription('once', 'orders', enableExactlyOnceDelivery => JSON::PP::true);
$server->publish('orders', 'a', 'b');
$server->data_now('once');
$server->faults(
    {   on           => 'ack_id',
        subscription => 'once',
        nth          => 2,
        do           => 'fail',
        reason       => 'TRANSIENT_FAILURE_OTHER' });
$response = $server->ack('once', @{ $server->{last} });
is_deeply(
    $response->{json}{error}{details}[0]{metadata},
    { $server->{last}[1]{ackId} => 'TRANSIENT_FAILURE_OTHER' },
    'fail: one ack id fails for the reason given');
is($server->ack('once', $server->{last}[1])->{status}, 200, 'and succeeds the next time');

# When rules fire.
sub pattern
{
    my ($rule, $calls) = @_;
    $server->clear_faults;
    $server->faults({ on => 'get', do => 'status', code => 500, %$rule });
    return join('',
        map { $server->call('GET', 'topics/orders')->{status} == 500 ? 'x' : '.' } 1 .. $calls);
}
is(pattern({ nth => [2, 5] },          6), '.x..x.',    'nth');
is(pattern({ every => 3 },             9), '..x..x..x', 'every');
is(pattern({ every => 2, after => 4 }, 9), '.....x.x.', 'every, after');
is(pattern({ every => 2, times => 2 }, 9), '.x.x.....', 'times');

sub draw
{
    # Rules are numbered on and on, and the number is a part of what is drawn from.
    my $fresh = PubSub->start('--seed', $_[0]);
    local $server = $fresh;
    return pattern({ probability => 0.5 }, 40);
}
my $drawn = draw(1);
like($drawn, qr/x.*\..*x/, 'probability');
isnt(draw(2), $drawn, 'another seed draws otherwise');
is(draw(1), $drawn, 'the same seed draws the same');
my $other    = PubSub->start('--seed', 3, '--fault-rate', 0.3);
my @statuses = map { $other->call('GET', 'topics/none')->{status} } 1 .. 60;
my $rules =
    PubSub::wait_for('the rules', sub { $other->call('GET', '/control/faults')->{json} })->{rules};
cmp_ok(scalar @$rules, '>=', 15, 'every kind of fault can be drawn from a seed');
like("@statuses", qr/599.*500|500.*599/, 'resets and errors among them');

# Rules that make no sense are refused, with the reason.
$server->clear_faults;
foreach my $case (
    [{ on => 'pull', do => 'reset' },                            qr/nth/],
    [{ on => 'dinner', nth => 1, do => 'reset' },                qr/dinner/],
    [{ on => 'pull', nth => 1, do => 'sing' },                   qr/sing/],
    [{ on => 'pull', nth => 0, do => 'reset' },                  qr/from 1 on/],
    [{ on => 'pull', nth => 1, do => 'share' },                  qr/cannot be done/],
    [{ on => 'pull', nth => 1, do => 'cut' },                    qr/needs "bytes"/],
    [{ on => 'pull', nth => 1, do => 'status', code => 200 },    qr/between/],
    [{ on => 'pull', nth => 1, do => 'reset', when => 'now' },   qr/before or after/],
    [{ on => 'pull', nth => 1, do => 'reset', colour => 'red' }, qr/colour/])
{
    $response = $server->call('POST', '/control/faults',
        { rules => [{ on => 'get', nth => 1, do => 'reset' }, $case->[0]] });
    is($response->{status}, 400, 'refused: ' . encode_json($case->[0]));
    like($response->{json}{error}{message}, $case->[1], 'with the reason');
}
is_deeply($server->must('GET', '/control/faults')->{rules},
    [], 'and nothing of the request is kept');

# The history tells each fault.
my ($fault) = $server->history('fault');
is($fault->{rule},       1,         'the history has the number of the rule');
is($fault->{on},         'publish', 'the event');
is($fault->{do},         'status',  'what was done');
is($fault->{occurrence}, 2,         'and to which of them');
ok($server->stop, 'the server stops with a request that was never answered');
eval { $ack->() };

done_testing();
