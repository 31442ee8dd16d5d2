# SPDX-License-Identifier: PostgreSQL
# Whoever asks cannot slow the puller down: slow, many, large and senseless requests. And what it
# answers to sensible ones.
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use Test::More;
use Time::HiRes qw(time);
use Inbox::Ledger;
use Inbox::StatusPage;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

my $node = Inbox::Ledger->start('hostile');
my $service = Inbox::Service->start('own');
$service->create_topic('pay');
$service->create_subscription('ledger', 'pay');
my $puller = Inbox::Puller->start(service => $service, node => $node, handler => 'apply_payment',
    log_level => 'info', subscription => $service->subscription('ledger'),
    options => [ '--listen=0', '--label=attribute:event_type' ]);
my $url = Inbox::StatusPage::url($puller);
my ($port) = $url =~ /:(\d+)$/;
my $sent = 0;

sub dial
{
    my ($bytes) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port)
      or die "no connection: $!\n";
    $socket->syswrite($bytes) if defined $bytes;
    return $socket;
}

# All that comes until the other side closes, or the time is over: then undef.
sub read_all
{
    my ($socket, $seconds) = @_;
    my ($all, $end) = ('', time + ($seconds // 15));
    while (IO::Select->new($socket)->can_read($end - time))
    {
        return $all unless sysread($socket, $all, 65536, length $all);
    }
    return undef;
}

# Seconds until payments that are published now are applied.
sub pace
{
    my $start = time;
    my $from = $sent + 1;
    $sent += 200;
    $service->publish('pay', map { my $payment = Inbox::Ledger::payment("k$_", 1 + $_ % 50, 1);
        $payment->{attributes}{event_type} = "type $_"; $payment } $from .. $sent);
    Inbox::Ledger::wait_for($node, 'SELECT count(*) FROM effect', $sent, 30);
    return time - $start;
}

pace();

subtest 'what it answers' => sub {
    like($url, qr/127\.0\.0\.1/, 'a port alone is one of the loopback address');
    my %expected = ('/livez' => 200, '/readyz' => 200, '/healthz' => 200, '/metrics' => 200,
        '/status.json' => 200, '/' => 200, '/nothing' => 404, '/../etc/passwd' => 404,
            '/livez/' => 404);
    foreach my $path (sort keys %expected)
    {
        my $answer = Inbox::StatusPage::get("$url$path");
        is($answer->{status}, $expected{$path}, "$path: $expected{$path}");
        like($answer->{headers}{'content-security-policy'}, qr/^default-src 'none'/,
            "$path: runs nothing of others");
    }
    my $page = Inbox::StatusPage::get("$url/");
    unlike($page->{content}, qr{(?:src|href)="(?:https?:)?//}, 'the page asks nobody else');
    foreach my $method (qw(POST PUT DELETE OPTIONS TRACE))
    {
        is(HTTP::Tiny->new->request($method, "$url/")->{status}, 405, "$method: not allowed");
    }
    is(HTTP::Tiny->new->head("$url/metrics")->{status}, 200, 'HEAD: 200');
};

subtest 'metrics' => sub {
    my $answer = Inbox::StatusPage::get("$url/metrics");
    like($answer->{headers}{'content-type'}, qr{^text/plain; version=0\.0\.4},
        'have their content type');
    my $metrics = Inbox::StatusPage::metrics($url);
    is(Inbox::StatusPage::sum($metrics, 'inbox_messages_total', 'verdict="applied"'), $sent,
        'all messages are counted');
    is(scalar(grep { /^inbox_messages_total\{verdict="applied",event_type="type / } keys %$metrics), 50,
        'fifty values are told apart');
    is($metrics->{'inbox_messages_total{verdict="applied",event_type="other"}'}, $sent - 50,
        'and the rest is one');
    is($metrics->{inbox_publish_to_commit_seconds_count}, $sent, 'each has an age');
    is($metrics->{'inbox_acks_total{result="ok"}'} + 0,
        wait_until('the acknowledgements', sub {
            my $acked = Inbox::StatusPage::metrics($url)->{'inbox_acks_total{result="ok"}'};
            $metrics = Inbox::StatusPage::metrics($url);
            $acked == $sent && $acked }), 'and is acknowledged');
  SKIP:
    {
        skip 'promtool is not on this machine (the Debian package prometheus)', 1
          if system('promtool --version >/dev/null 2>&1') != 0;
        open(my $file, '>', "$PostgreSQL::Test::Utils::tmp_check/metrics") or die "no file: $!\n";
        print $file Inbox::StatusPage::get("$url/metrics")->{content};
        close($file);
        my $out = `promtool check metrics <$PostgreSQL::Test::Utils::tmp_check/metrics 2>&1`;
        is($out, '', 'promtool finds nothing to say about names, units and texts');
    }
};

subtest 'slow clients' => sub {
    my $begin = time;
    my @slow = map { dial("GET /metrics HTTP/1.1\r\nX-Slow: ") } 1 .. 200;
    my $seconds = pace();
    cmp_ok($seconds, '<', 10, "messages are applied all the same: $seconds s");
    my $start = time;
    is(Inbox::StatusPage::get("$url/livez")->{status}, 200,
        'and who asks as one should is answered');
    cmp_ok(time - $start, '<', 3, 'at once');
    is(scalar(grep { defined read_all($_, 20) } @slow[ 0 .. 150 ]), 151,
        'the oldest give way to the newest');
    cmp_ok(time - $begin, '<', 8, 'before their time is over');
    # These send a byte now and then, so that they are never idle.
    my $open = IO::Select->new(@slow[ 190 .. 199 ]);
    local $SIG{PIPE} = 'IGNORE';
    ok(wait_until('the others to be closed', sub {
        foreach my $socket ($open->can_write(0))
        {
            $socket->syswrite('x');
            $open->remove($socket) if IO::Select->new($socket)->can_read(0) && !sysread($socket,
                my $byte, 1);
        }
        $open->count == 0;
    }, 30, 0.2), 'and nobody stays for long, who sends a byte now and then either');
};

subtest 'answers that nobody reads' => sub {
    my @mute = map { dial("GET /status.json HTTP/1.1\r\nHost: x\r\n\r\n") } 1 .. 100;
    my $seconds = pace();
    cmp_ok($seconds, '<', 10, "messages are applied all the same: $seconds s");
    is(Inbox::StatusPage::get("$url/livez")->{status}, 200, 'and others are answered');
};

subtest 'large and senseless requests' => sub {
    my %senseless = (
        'a header of a megabyte' => "GET / HTTP/1.1\r\nX: " . 'x' x 1000000,
        'a long path' => 'GET /' . 'a' x 100000 . " HTTP/1.1\r\n\r\n",
        'many headers' => "GET / HTTP/1.1\r\n" . "A: b\r\n" x 10000 . "\r\n",
        'no HTTP' => "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" . "\0" x 500,
        'two lengths' => "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        'an endless body' => "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n" . 'x' x 100000,
        'nothing' => "\r\n" x 1000);
    local $SIG{PIPE} = 'IGNORE';
    foreach my $name (sort keys %senseless)
    {
        my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port)
          or die "no connection: $!\n";
        $socket->blocking(0);
        syswrite($socket, $senseless{$name});
        $socket->blocking(1);
        my $answer = read_all($socket, 20) // 'still open';
        unlike($answer, qr{^still open|^HTTP/1\.[01] 200},
            "$name: refused: " . ($answer =~ /^(.*?)\r/ ? $1 : 'closed'));
    }
    cmp_ok(pace(), '<', 10, 'messages are applied all the same');
};

subtest 'a storm' => sub {
    my $asked = 0;
    my $storm = fork() // die "could not fork: $!\n";
    if (!$storm)
    {
        my $end = time + 8;
        my $http = HTTP::Tiny->new(timeout => 5);
        $http->get("$url/status.json") while time < $end;
        POSIX::_exit(0);
    }
    my $seconds = pace();
    $seconds += pace();
    cmp_ok($seconds, '<', 15, "four hundred messages are applied: $seconds s");
    waitpid($storm, 0);
};

subtest 'a database that is slow to say how it stands' => sub {
    my $known = wait_until('it to be known',
        sub { Inbox::StatusPage::status($url)->{database}{known} },
        20, 0.5);
    is($known->{status}{dead}, 0, 'as long as it is not slow, it tells');
    $node->safe_psql('postgres',
        q{DO $$ BEGIN EXECUTE replace(pg_get_functiondef('inbox_status'::regproc),
        'FROM public.inbox_source s', 'FROM pg_sleep(30) z, public.inbox_source s'); END $$});
    my $error = wait_until('it not to be',
        sub { Inbox::StatusPage::status($url)->{database}{error} }, 20,
        0.5);
    like($error, qr/statement timeout, SQLSTATE 57014/, "the page says so: $error");
    my $slowest = 0;
    foreach (1 .. 12)
    {
        Inbox::StatusPage::status($url);
        my $seconds = pace();
        $slowest = $seconds if $seconds > $slowest;
    }
    cmp_ok($slowest, '<', 5, "messages do not wait for it: $slowest s at most");
    cmp_ok(scalar $puller->events('look_failed'), '>=', 1, 'and the log says so');
    is(scalar $puller->events('transaction_failed'), 0, 'no transaction with messages fails');
};

my @slow = grep { $_->{took} > 1 } $puller->events('slow_turn');
is_deeply(\@slow, [], 'the loop never stood still');
is($puller->stop, 0, 'stops with status 0');
is(Inbox::Ledger::summary($node), "$sent $sent 0 0", 'every payment is there once');

# Of a file that may not be there.
sub slurp_lines
{
    my ($path) = @_;
    open(my $file, '<', $path) or return;
    return <$file>;
}

subtest 'nobody has asked to be listened to' => sub {
    my $silent = Inbox::Puller->start(service => $service, node => $node, handler => 'apply_payment',
        subscription => $service->subscription('ledger'));
    $silent->wait_event('db_connected');
    # The sockets of the process, by their numbers, among those that listen (state 0A).
    my %own = map { $_ => 1 } map { (readlink($_) // '') =~ /socket:\[(\d+)\]/ } glob("/proc/$silent->{pid}/fd/*");
    my @listening = grep { $own{$_} } map { (split)[3] eq '0A' ? (split)[9] : () }
      map { slurp_lines("/proc/net/$_") } qw(tcp tcp6);
    cmp_ok(scalar(keys %own), '>', 0, 'it has connections');
    is_deeply(\@listening, [], 'and no port open');
    is($silent->stop, 0, 'stops with status 0');
};

subtest 'an address that is taken' => sub {
    my $taken = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1)
      or die "no socket: $!\n";
    my $other = Inbox::Puller->start(service => $service, node => $node, handler => 'apply_payment',
        subscription => $service->subscription('ledger'),
            options => [ '--listen=127.0.0.1:' . $taken->sockport ]);
    is($other->wait_end, 1, 'ends with status 1');
    like($other->slurp_log,
        qr/--listen 127\.0\.0\.1:\d+: could not listen there: Address already in use/,
            'and says why');
};
is_deeply([ Inbox::Puller->leaks(Inbox::Ledger::MEMO) ], [], 'no log shows a payload');
done_testing;
