# SPDX-License-Identifier: PostgreSQL
# Whatever goes wrong in a request to Pub/Sub is said with its remedy and tried again as fits it;
# the ledger is exact and everything is acknowledged in the end.
use strict;
use warnings;
use IO::Socket::INET;
use JSON::PP;
use Test::More;
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

my $count = 20;
my $node = Inbox::Ledger->start('faults');
my $service = Inbox::Service->start('own');

$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION apply_slowly(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM apply_payment(key, payload);
	PERFORM pg_sleep(CASE WHEN key LIKE '%-1' THEN 8 ELSE 0 END);
END $$;
SQL

sub pull_fault { return { on => 'pull', @_ } }
sub ack_fault { return { on => 'ack', @_ } }

# Each: the rules, and the line that is to be written for each of them: event, level, error, hint.
my $transient = qr/tried again by itself/;
my %case = (
    'pull-500' => [ [ pull_fault(do => 'status', code => 500, nth => [ 1 .. 3 ]) ],
        'pull_failed', 'warning', qr/HTTP 500 INTERNAL: An injected fault/, $transient ],
    'pull-503' => [ [ pull_fault(do => 'status', code => 503, nth => [ 1, 3 ]) ],
        'pull_failed', 'warning', qr/HTTP 503 UNAVAILABLE/, $transient ],
    'pull-429' => [ [ pull_fault(do => 'status', code => 429, retryAfter => '3', nth => 1) ],
        'pull_failed', 'warning', qr/HTTP 429 RESOURCE_EXHAUSTED/, $transient ],
    'pull-302' => [ [ pull_fault(do => 'status', code => 302, nth => 1) ],
        'pull_failed', 'warning', qr/HTTP 302/, $transient ],
    'pull-403' => [ [ pull_fault(do => 'status', code => 403, nth => 1) ],
        'pull_failed', 'error', qr/HTTP 403 PERMISSION_DENIED/, qr{roles/pubsub\.subscriber} ],
    'pull-404' => [ [ pull_fault(do => 'status', code => 404, nth => 1) ],
        'pull_failed', 'error', qr/HTTP 404 NOT_FOUND/,
        qr/check --subscription.*create it.*tried again/ ],
    'pull-401' => [ [ pull_fault(do => 'status', code => 401, nth => 1) ],
        'pull_failed', 'error', qr/HTTP 401 UNAUTHENTICATED/, qr/--token-file/ ],
    'pull-400' => [ [ pull_fault(do => 'status', code => 400, nth => 1) ],
        'pull_failed', 'error', qr/HTTP 400 INVALID_ARGUMENT/, qr/--subscription/ ],
    'pull-cut' => [ [ pull_fault(do => 'cut', bytes => 700, nth => [ 1, 2 ]) ],
        'pull_failed', 'warning', qr/transfer closed|end of response|[Cc]onnection/, $transient ],
    'pull-half' => [ [ pull_fault(do => 'half', nth => 1) ],
        'pull_garbage', 'error', qr/^byte \d+ of \d+: ./,
        qr/nothing of it is acknowledged.*proxy/ ],
    'pull-garbage' => [ [ pull_fault(do => 'garbage', nth => [ 1, 2 ]) ],
        'pull_garbage', 'error', qr/^byte 0 of \d+: ./, qr/nothing of it is acknowledged.*proxy/ ],
    'pull-reset' => [ [ pull_fault(do => 'reset', nth => [ 1, 2 ]) ],
        'pull_failed', 'warning', qr/reset by peer|Empty reply|[Cc]onnection/, $transient ],
    'pull-slow' => [ [ pull_fault(do => 'delay', ms => 2500, nth => 1) ] ],
    'get-403' => [ [ { on => 'get', do => 'status', code => 403, nth => 1 } ],
        'subscription_not_readable', 'info', qr/HTTP 403/,
        qr/deadline of 10 s.*roles\/pubsub\.viewer/ ],
    'get-500' => [ [ { on => 'get', do => 'status', code => 500, nth => [ 1, 2 ] } ],
        'subscription_failed', 'warning', qr/HTTP 500/, $transient ],
    'ack-500' => [ [ ack_fault(do => 'status', code => 500, nth => [ 1, 2 ]) ],
        'ack_failed', 'warning', qr/HTTP 500/, $transient ],
    'ack-429' => [ [ ack_fault(do => 'status', code => 429, retryAfter => '2', nth => 1) ],
        'ack_failed', 'warning', qr/HTTP 429/, $transient ],
    'ack-400' => [ [ ack_fault(do => 'status', code => 400, nth => 1) ],
        'ack_failed', 'warning', qr/HTTP 400/, qr/smaller/ ],
    'ack-403' => [ [ ack_fault(do => 'status', code => 403, nth => 1) ],
        'ack_failed', 'warning', qr/HTTP 403/, qr{roles/pubsub\.subscriber} ],
    'ack-reset' => [ [ ack_fault(do => 'reset', nth => [ 1, 2 ]) ],
        'ack_failed', 'warning', qr/reset by peer|Empty reply|[Cc]onnection/, $transient ],
    'modack-500' => [ [ { on => 'modack', do => 'status', code => 500, nth => [ 1, 2 ] } ],
        'lease_request_failed', 'warning', qr/HTTP 500/, $transient ],
    'ack-stall' => [ [ ack_fault(do => 'stall', nth => 1) ],
        'ack_failed', 'warning', qr/[Tt]imed? ?out|timeout/, $transient ]);

sub start
{
    my ($name, %args) = @_;
    return Inbox::Puller->start(service => $service, node => $node,
        handler => $name eq 'modack-500' ? 'apply_slowly' : 'apply_payment',
        subscription => $service->subscription($name), %args);
}

# What a hotel's network answers to everybody until he has logged in.
sub answer_pages
{
    my ($listener) = @_;
    my $page = '<html><body>Please log in</body></html>';
    while (my $client = $listener->accept)
    {
        my $length = 0;
        while (defined(my $line = <$client>))
        {
            $length = $1 if $line =~ /^content-length: (\d+)/i;
            last if $line =~ /^\r?$/;
        }
        read($client, my $body, $length);
        print $client "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n"
          . 'Content-Length: ' . length($page) . "\r\n\r\n$page";
        close($client);
    }
}

my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5) or die "no socket: $!";
my $portal = fork() // die "could not fork: $!";
if ($portal == 0)
{
    answer_pages($listener);
    POSIX::_exit(0);
}
END { kill('KILL', $portal) if $portal; }

foreach my $name (sort keys %case)
{
    $service->create_topic($name);
    $service->create_subscription($name, $name, ackDeadlineSeconds => 15);
    $service->publish($name, map { Inbox::Ledger::payment("$name-$_", 1 + $_, 1) } 1 .. $count);
    $service->add_faults(map { { %$_, subscription => $name } } @{ $case{$name}[0] });
}
my %puller = map { $_ => start($_) } sort keys %case;
my $lost = start('portal', env => { PUBSUB_EMULATOR_HOST => '127.0.0.1:' . $listener->sockport });

subtest 'a page in place of an answer' => sub {
    my $event = $lost->wait_event('pull_garbage');
    like("$event->{level}; $event->{err}; $event->{hint}",
        qr/^error; byte 0 of \d+: .+; nothing of it is acknowledged; look for a proxy/,
        'is no message');
    is($lost->stop, 0, 'stops with status 0');
};

foreach my $name (sort keys %case)
{
    subtest $name => sub {
        my ($rules, $event, $level, $error, $hint) = @{ $case{$name} };
        my $puller = $puller{$name};
        wait_until('all to be acknowledged', sub { $service->stats($name)->{unacked} == 0 }, 50);
        is(Inbox::Ledger::count($node, 'SELECT count(*), count(DISTINCT key) FROM effect '
                    . "WHERE key LIKE '$name-%'"), "$count|$count", 'each payment is applied once');
        is($puller->stop, 0, 'stops with status 0');
        check_line($puller, $event, $level, $error, $hint) if $event;
    };
}

sub check_line
{
    my ($puller, $event, $level, $error, $hint) = @_;
    my ($line) = $puller->events($event);
    ok($line, 'there is a line') or return;
    is($line->{level}, $level, "its level is $level");
    like($line->{err}, $error, "it has the fact: $line->{err}");
    like($line->{hint} // '', $hint, 'it has the remedy: ' . ($line->{hint} // ''));
}

subtest 'pauses' => sub {
    my ($line) = $puller{'pull-429'}->events('pull_failed');
    cmp_ok($line->{retry_in}, '==', 3, 'Retry-After is obeyed by pulls');
    ($line) = $puller{'ack-429'}->events('ack_failed');
    cmp_ok($line->{retry_in}, '==', 2, 'and by acknowledgements');
    my @pauses = map { $_->{retry_in} } $puller{'pull-500'}->events('pull_failed');
    is(scalar @pauses, 3, 'every failure has its line');
    cmp_ok($pauses[2], '>', $pauses[0], "the pauses grow: @pauses");
    ($line) = $puller{'pull-403'}->events('pull_failed');
    cmp_ok($line->{retry_in}, '==', 30, 'what a person must put right is looked at every 30 s');
};

subtest 'nothing else happened' => sub {
    my @unfired = grep { $_->{fired} == 0 } @{ $service->call('GET', '/control/faults')->{rules} };
    is_deeply(\@unfired, [], 'every fault happened');
    my $blamed = map { my $puller = $_; map { $puller->events($_) } qw(message_failed dead_letter) }
      values %puller;
    is($blamed, 0, 'no message is blamed');
    is(Inbox::Ledger::summary($node), join(' ', (keys(%case) * $count) x 2, 0, 0),
        'the ledger is exact');
    is_deeply([ Inbox::Puller->leaks(Inbox::Ledger::MEMO) ], [], 'no log shows a payload');
};
done_testing;
