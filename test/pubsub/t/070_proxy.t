#!/usr/bin/perl
# SPDX-License-Identifier: PostgreSQL
# The proxy in front of plain TCP and of the Pub/Sub server.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PubSub;
use Proxy;
use IO::Select;
use IO::Socket::INET;
use Test::More;
use Time::HiRes qw(time);

# A server that says what it got, and how the connection ended.
my $listener = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1:0') or die $!;
my $proxy    = Proxy->start('--to', '127.0.0.1:' . $listener->sockport);

# Bytes from the socket until they are so many, it ends, or nothing comes for a while.
sub take
{
    my ($socket, $bytes, $seconds) = @_;
    my $got = '';
    while (length $got < $bytes)
    {
        return "$got|silence" if !IO::Select->new($socket)->can_read($seconds || 5);
        my $len = sysread($socket, $got, $bytes - length $got, length $got);
        return "$got|reset" if !defined $len;
        return "$got|end"   if !$len;
    }
    return $got;
}

sub pair
{
    my $client = IO::Socket::INET->new("127.0.0.1:$proxy->{port}") or return;
    my $server = $listener->accept;
    return ($client, $server);
}

my ($client, $server) = pair();
syswrite($client, 'hello');
is(take($server, 5), 'hello', 'bytes go to the server');
syswrite($server, 'world');
is(take($client, 5), 'world', 'and back');
shutdown($client, 1);
is(take($server, 1), '|end', 'the end too');
syswrite($server, 'rest');
is(take($client, 4), 'rest', 'of one direction alone');
close($server);
is(take($client, 1), '|end', 'and of the other');

# Every byte.
foreach my $at (0 .. 5)
{
    $proxy->triggers("on=client-byte at=$at nth=1 do=cut");
    ($client, $server) = pair();
    syswrite($client, 'hello');
    is(take($server, 6), substr('hello', 0, $at) . '|end', "cut after $at bytes of the client");

    # Who writes to a reset connection learns of it by that, and reads nothing but its end.
    like(take($client, 1), $at == 0 ? qr/^\|(?:reset|end)/ : qr/^\|reset/, 'whom it resets');
}
$proxy->triggers('on=server-byte at=3 nth=1 do=cut');
($client, $server) = pair();
syswrite($server, 'world');
is(take($client, 6), 'wor|reset', 'cut after three bytes of the server');
$proxy->triggers('on=client-byte at=2 nth=2 do=cut');
($client, $server) = pair();
syswrite($client, 'hello');
is(take($server, 5), 'hello', 'the first connection passes');
($client, $server) = pair();
syswrite($client, 'hello');
is(take($server, 5), 'he|end', 'the second is cut');
$proxy->triggers('on=connect every=2 do=cut');
is( join(' ', map { ($client, $server) = pair(); syswrite($server, 'x'); take($client, 1) } 1 .. 4),
    'x |reset x |reset',
    'every second connection');
$proxy->triggers('on=client-byte at=2 nth=1 do=cut-client');
($client, $server) = pair();
syswrite($client, 'hello');
is(take($client, 1), '|reset', 'only the client is cut');
is(take($server, 5, 0.3), 'he|silence', 'the server does not know');
$proxy->triggers('on=client-byte at=2 nth=1 do=cut-server');
($client, $server) = pair();
syswrite($client, 'hello');
is(take($server, 5), 'he|end', 'only the server is cut');
is(take($client, 1, 0.3), '|silence', 'the client does not know');

# Stalls and delays.
$proxy->triggers('on=client-byte at=2 nth=1 do=stall');
($client, $server) = pair();
syswrite($client, 'hello');
is(take($server, 5, 0.3), 'he|silence', 'stalled after two bytes');
syswrite($server, 'world');
is(take($client, 5, 0.3), '|silence', 'in both directions');
$proxy->command('resume');
is(take($server, 3) . take($client, 5), 'lloworld', 'until it is resumed');
$proxy->triggers('on=client-byte at=2 nth=1 do=delay ms=300');
($client, $server) = pair();
my $start = time;
syswrite($client, 'hello');
is(take($server, 5), 'hello', 'delayed after two bytes');
cmp_ok(time - $start, '>=', 0.29, 'for as long as it was told');
$proxy->triggers;
$proxy->command('latency 100');
$start = time;
syswrite($client, 'ping');
take($server, 4);
syswrite($server, 'pong');
is(take($client, 4), 'pong', 'with latency');
cmp_ok(time - $start, '>=', 0.19, 'each direction takes longer');
$proxy->command('latency 0');

# Commands.
$proxy->command('refuse');
ok(!IO::Socket::INET->new("127.0.0.1:$proxy->{port}"), 'refused');
syswrite($client, 'x');
is(take($server, 1), 'x', 'who is connected stays');
$proxy->command('accept');
($client, $server) = pair();
ok($server, 'accepted again');
$proxy->command('stall');
syswrite($client, 'x');
is(take($server, 1, 0.3), '|silence', 'all are stalled');
$proxy->command('resume');
is(take($server, 1), 'x', 'and resumed');
$proxy->command('cut');
is(take($client, 1), '|reset', 'all are cut');
($client, $server) = pair();
kill('USR1', $proxy->{pid});
is(take($client, 1), '|reset', 'by a signal too');
my $other = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1:0') or die $!;
$proxy->command('to 127.0.0.1:' . $other->sockport);
$client = IO::Socket::INET->new("127.0.0.1:$proxy->{port}");
$server = $other->accept;
syswrite($client, 'x');
is(take($server, 1), 'x', 'new connections go to another server');
$other->close;
close($_) foreach $client, $server;
$client = IO::Socket::INET->new("127.0.0.1:$proxy->{port}");
is(take($client, 1), '|reset', 'without a server the client is reset');

foreach my $wrong (
    'dance',
    'trigger',
    'trigger on=never do=cut',
    'trigger on=connect do=sing',
    'trigger on=connect',
    'trigger on=connect do=cut nth=x',
    'trigger on=connect do=cut colour=red')
{
    ok(!eval { $proxy->command($wrong); 1 }, "refused: $wrong");
}
ok($proxy->stop, 'the proxy ends as it should');

# HTTP.
my $pubsub = PubSub->start('--long-poll', 1);
$pubsub->topic('orders');
$pubsub->subscription('sub', 'orders');
$pubsub->publish('orders', map { "message $_" } 1 .. 9);
$proxy = Proxy->start('--protocol', 'http', '--to', $pubsub->host, '--trigger',
    'on=request path=:pull nth=1 do=cut');
my $through = PubSub->at("http://127.0.0.1:$proxy->{port}");
is($through->call('GET', 'topics/orders')->{status}, 200, 'http: a request passes');
is($through->call('POST', 'subscriptions/sub:pull', { maxMessages => 1 })->{status},
    599, 'the first pull is cut');
is($pubsub->counts('sub')->{leased}, 0, 'before it comes to the server');
my @received = $through->pull('sub', 1);
is(scalar @received, 1, 'the second passes');
$proxy->triggers('on=response path=:acknowledge nth=1 do=cut');
is($through->ack('sub', @received)->{status}, 599, 'the answer to an acknowledgement is cut');
is($pubsub->counts('sub')->{unacked},         8,   'which has taken effect');
$proxy->triggers('on=request-sent path=:pull nth=1 do=cut');
is($through->call('POST', 'subscriptions/sub:pull', { maxMessages => 1 })->{status},
    599, 'cut behind a pull');
PubSub::wait_for('the abandoned pull', sub { $pubsub->counts('sub')->{leased} == 1 });
pass('which eats its message');
$proxy->triggers('on=response nth=1 offset=40 do=cut');
is($through->call('POST', 'subscriptions/sub:pull', { maxMessages => 1 })->{status},
    599, 'cut in the middle of an answer');
$proxy->triggers('on=response-sent path=:pull nth=1 do=cut');
is(scalar $through->pull('sub', 1), 1,                 'cut behind an answer: the client has it');
is($proxy->stats->{roundTrips},     7,                 'requests are counted');
is($proxy->stats->{fired},          1 + 1 + 1 + 1 + 1, 'and deeds');

done_testing();
