# SPDX-License-Identifier: PostgreSQL
# A token that is replaced is read again and the request repeated once; one that is refused is
# waited for; no log shows one. An answer that is too large is asked for again in smaller parts.
use strict;
use warnings;
use File::Temp qw(tempdir);
use MIME::Base64 qw(encode_base64);
use POSIX ();
use Test::More;
use Time::HiRes qw(time);
use Inbox::File;
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

my $node = Inbox::Ledger->start('tokens');
my $dir = tempdir(CLEANUP => 1);
my @tokens = map { "ya29.secret-$_" } 0 .. 9;
my $closed = Inbox::Service::free_port();

write_file("$dir/accepted", join("\n", @tokens[ 0 .. 3, 6 .. 9 ]) . "\n");
my $service = Inbox::Service->start('own', '--token-file', "$dir/accepted");
$service->{token} = $tokens[0];

# With an endpoint of this machine and a token, as the real service has it.
sub start
{
    my ($name, $token, %args) = @_;
    $service->create_topic($name);
    $service->create_subscription($name, $name);
    $service->publish($name, @{ delete $args{messages} // [] });
    write_file("$dir/$name", $token);
    return Inbox::Puller->start(node => $node, handler => 'apply_payment', %args,
        subscription => $service->subscription($name),
        options => [ '--endpoint', $service->{url}, '--token-file', "$dir/$name",
            @{ $args{options} // [] } ]);
}

sub publish
{
    my ($name, $first, $last) = @_;
    $service->publish($name, Inbox::Ledger::payments($name, $first, $last));
}

sub wait_for_effects { Inbox::Ledger::is_consumed($node, $service, @_) }

# These need a person, or wait for the database.
my $refused = start('refused', "$tokens[5]\n");
publish('refused', 1, 3);
my $empty = start('empty', $tokens[0]);
my $forbidden = start('permanent', $tokens[5], options => ['--exit-on-permanent']);
my $no_database = start('no_database', $tokens[4], dbname => "host=127.0.0.1 port=$closed");

subtest 'a token that is replaced' => sub {
    my $puller = start('replaced', "$tokens[1]\n");
    publish('replaced', 1, 5);
    wait_for_effects('replaced', 5);
    # The next acknowledgement carries a token that is refused from then on; the puller looks at the
    # file every second as well, and may have been quicker.
    my ($done, $old, @new) = (5, @tokens[ 1, 6 .. 9 ]);
    for (; !$service->fired('revoke') && @new; $done += 5)
    {
        write_file("$dir/replaced", $new[0]);
        $service->add_faults({ on => 'ack', do => 'revoke', nth => 1, token => $old });
        publish('replaced', $done + 1, $done + 5);
        wait_for_effects('replaced', $done + 5);
        $old = shift @new;
    }
    is($service->fired('revoke'), 1, 'the old one was refused');
    is($puller->stop, 0, 'stops with status 0');
    is(join(' ', map { $_->{event} } grep { $_->{level} =~ /warning|error/ } $puller->events), '',
        'nothing to complain about');
    is($puller->verdicts('duplicate'), 0, 'nothing was delivered twice');
};

# Seconds of CPU a process has used.
sub cpu_seconds
{
    my ($pid) = @_;
    open(my $fh, '<', "/proc/$pid/stat") or die "could not read /proc/$pid/stat: $!\n";
    my ($user, $system) = (split ' ', <$fh> =~ s/^.*\) //r)[ 11, 12 ];
    return ($user + $system) / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

subtest 'no token is needed while the database is away' => sub {
    wait_until('four attempts', sub { $no_database->events('db_connect_failed') >= 4 });
    cmp_ok(cpu_seconds($no_database->{pid}), '<', 0.3, 'and no CPU');
    is($no_database->stop, 0, 'stops with status 0');
};

subtest 'a token that is refused, a file without one' => sub {
    my $event = $refused->wait_event('subscription_failed');
    like("$event->{level} $event->{status} $event->{err}; $event->{hint}",
        qr/^error 401 HTTP 401 UNAUTHENTICATED: .*; .*a fresh one into the file of --token-file/,
        "a refused one is said: $event->{err}");
    $event = $forbidden->wait_event('subscription_failed');
    is($event->{status}, 401, 'so it is with --exit-on-permanent');
    is($forbidden->wait_end(10), 2, 'which ends with status 2');
    my $start = time;
    write_file("$dir/refused", $tokens[3]);
    wait_for_effects('refused', 3);
    cmp_ok(time - $start, '<', 15, 'a better one is tried at once');
    is($refused->stop, 0, 'stops with status 0');
    publish('empty', 1, 3);
    wait_for_effects('empty', 3);
    write_file("$dir/empty", "\n");
    my $last = 3;
    $event = wait_until('the file to be looked at', sub {
        $last++;
        publish('empty', $last, $last);
        ($empty->events('token_unreadable'))[0];
    }, 20, 0.3);
    wait_for_effects('empty', $last);
    like("$event->{level} $event->{err}; $event->{hint}",
        qr/^error the file holds no token; write a fresh access token/, 'an emptied file is said');
    is($empty->stop, 0, 'and it goes on with the token it had');
};

# Each message becomes one of 400 kB when it is delivered: 41 go into an answer of 16 MB, and the
# puller has room for twice as many.
subtest 'an answer that is too large' => sub {
    my $data = encode_base64('{"account": 1, "amount": 1}' . ' ' x 300_000, '');
    $service->add_faults({ on => 'deliver', do => 'raw', every => 1, subscription => 'large',
            json => qq({"data": "$data", "attributes": {"idempotency_key": "large1"},)
              . '"messageId": "1", "publishTime": "2026-01-31T12:00:00Z"}' });
    my $puller = start('large', $tokens[3], options => [ '--max-response', '16MB' ],
        messages => [ map { Inbox::Ledger::payment("small$_", 1, 1) } 1 .. 200 ]);
    wait_for_effects('large', 1);
    is($puller->stop, 0, 'stops with status 0');
    my ($event) = $puller->events('pull_failed');
    ok($event, 'an answer was refused') or return;
    like("$event->{level} $event->{outcome} $event->{err}; $event->{hint}",
        qr/^warning too_large the response is larger than --max-response; .*raise --max-response/,
        'and it is said');
};

is_deeply([ Inbox::Puller->leaks('secret-', Inbox::Ledger::MEMO) ], [],
    'no log shows a token or a payload');
done_testing;
