# SPDX-License-Identifier: PostgreSQL
# Servers that take a request, or a connection, and never answer: the token server, Google's STS, the
# metadata server, Pub/Sub, a database. The puller works on with the token it has, says what is the matter,
# asks again and goes on; --check comes to an end, and says it.
use strict;
use warnings;
use lib "$ENV{INBOX_ROOT}/test/google";
use IO::Socket::INET;
use IPC::Run ();
use Test::More;
use Google;
use Inbox::Check;
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

# Renewed at half of it; a request may take half of what is left then.
use constant LIFETIME => 40;

my $node = Inbox::Ledger->start('silent_servers');
my $service = Inbox::Service->start('own');
my $google = Google->start(pubsub => $service->{url});
my $silent = Google->start(pubsub => $service->{url});

# ---- --check, all at once -------------------------------------------------------------------

$silent->rules(answers => [ map { { on => $_, do => 'hang', id => $_, times => 1000 } }
        qw(oauth2 sts metadata pubsub) ]);
my $listener = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') or die "no port: $!\n";
my $database = 'host=127.0.0.1 user=puller connect_timeout=3 port=' . $listener->sockport;
my @pubsub = ('--subscription', $service->subscription('silent'), '--ca-file', $silent->ca);
my %check = (
    oauth2 => [ @pubsub, '--credentials-file', $silent->credentials('authorized_user') ],
    sts => [ @pubsub, '--credentials-file', $silent->credentials('external_file') ],
    metadata => [@pubsub],
    pubsub => [ @pubsub, '--credentials-file', $silent->credentials('service_account') ],
    handshake => [ '--subscription', $service->subscription('silent'), '--endpoint',
        'https://127.0.0.1:' . $listener->sockport, '--token-file',
        $silent->write_file('token', "ya29.token\n") ],
    database => [ '--dbname', $database ]);
my %running;
foreach my $name (sort keys %check)
{
    my %env = ($silent->env, NO_GCE_CHECK => undef, NO_PROXY => '127.0.0.1');
    local %ENV = Inbox::Check::environment(%env);
    my $run = $running{$name} = {};
    $run->{harness} = IPC::Run::start([ "$ENV{INBOX_ROOT}/puller/inbox-puller", '--check',
            @{ $check{$name} } ], '>', \$run->{out}, '2>&1', IPC::Run::timeout(900));
}

# ---- the puller -----------------------------------------------------------------------------

my %way = (oauth2 => 'authorized_user', sts => 'external_file', metadata => undef);
my %puller;
$google->rules(lifetime => LIFETIME);
foreach my $name (sort keys %way)
{
    $service->create_topic($name);
    $service->create_subscription($name, $name);
    my %env = $google->env;
    $puller{$name} = Inbox::Puller->start(node => $node, handler => 'apply_payment', env => \%env,
        subscription => $service->subscription($name), options => [ '--ca-file', $google->ca,
            defined $way{$name} ? ('--credentials-file', $google->credentials($way{$name})) : () ]);
}
$puller{$_}->wait_event('token') foreach sort keys %way;
$google->rules(lifetime => LIFETIME,
    answers => [ map { { on => $_, do => 'hang', id => $_, times => 1 } } sort keys %way ]);

# Messages that come while the server says nothing.
my %asked = map { $_ => scalar asked($_) } keys %way;

sub asked
{
    my ($name) = @_;
    return scalar $google->requests(sub { $_[0]{service} eq $name });
}

wait_until("all to be asked", sub { !grep { asked($_) == $asked{$_} } keys %way }, 3 * LIFETIME);
foreach my $name (sort keys %way)
{
    $service->publish($name, Inbox::Ledger::payments($name, 1, 5));
    Inbox::Ledger::is_consumed($node, $service, $name, 5);
}
foreach my $name (sort keys %way)
{
    my $event = $puller{$name}->wait_event('token_failed', undef, 60);
    is($event->{level}, 'warning', "$name: the old token is good");
    cmp_ok($event->{old_one_good_for}, '>', 0, "$name: for a while");
    like($event->{err}, qr/timed out/i, "$name: $event->{err}");
    like($event->{hint}, qr/HTTPS_PROXY|metadata server/, "$name: $event->{hint}");
    wait_until("$name: a new token", sub {
        grep { $_->{event} eq 'token' && $_->{good_for} > $event->{old_one_good_for} }
          after($puller{$name}, $event);
    }, 60);
    $service->publish($name, Inbox::Ledger::payments($name, 6, 8));
    Inbox::Ledger::is_consumed($node, $service, $name, 8);
    is(scalar($puller{$name}->events('token_failed')), 1, "$name: nothing else went wrong");
    is($puller{$name}->stop, 0, "$name: stops with status 0");
}

# What was logged behind that event.
sub after
{
    my ($puller, $event) = @_;
    my @events = $puller->events;
    shift @events while @events && $events[0]{ts} ne $event->{ts};
    return @events;
}

# ---- what --check said ----------------------------------------------------------------------

my %said = (
    oauth2 => qr{✗ token +https://oauth2\.googleapis\.com: .*timed out.* → .*HTTPS_PROXY},
    sts => qr{✗ token +https://sts\.googleapis\.com: .*timed out.* → .*HTTPS_PROXY},
    metadata => qr{✗ token +http://127\.0\.0\.1: .*timed out.* → .*metadata server},
    pubsub => qr{✗ subscription +projects/p/subscriptions/silent: .*timed out.* → check --endpoint},
    handshake => qr{✗ subscription +projects/p/subscriptions/silent: .*time.* → check --endpoint},
    database => qr{✗ database +.*timeout expired.* → check host and port});
foreach my $name (sort keys %check)
{
    IPC::Run::finish($running{$name}{harness});
    is($? >> 8, 2, "--check, $name: comes to an end, with status 2");
    like($running{$name}{out}, $said{$name}, "--check, $name: says it");
    unlike($running{$name}{out}, qr/again/, "--check, $name: promises nothing");
}
is_deeply([ Inbox::Puller->leaks(@Google::SECRETS, Inbox::Ledger::MEMO) ], [],
    'no log shows a secret or a payload');
$service->stop;
done_testing;
