# SPDX-License-Identifier: PostgreSQL
# Proxies by the conventions of libcurl: https_proxy and HTTPS_PROXY by CONNECT, http_proxy for plain
# text (and not HTTP_PROXY, which a client of a CGI program could set), NO_PROXY for what is near. The
# password of a proxy is in no log and in no report.
use strict;
use warnings;
use lib "$ENV{INBOX_ROOT}/test/google";
use Test::More;
use Google;
use Inbox::Check;
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

use constant SECRET => 'proxy-s3cret';

my $node = Inbox::Ledger->start('proxies');
my $service = Inbox::Service->start('own');
my $google = Google->start(pubsub => $service->{url});
my $host = "127.0.0.1:$google->{ports}{proxy}";
my $proxy = 'http://clerk:' . SECRET . "\@$host";
my $nowhere = 'http://clerk:' . SECRET . '@127.0.0.1:' . Inbox::Service::free_port();
my @service_account = ('--ca-file', $google->ca, '--credentials-file',
    $google->credentials('service_account'));
# Nothing of it is inherited.
my %none = map { $_ => '' }
  qw(http_proxy https_proxy HTTP_PROXY HTTPS_PROXY no_proxy NO_PROXY all_proxy ALL_PROXY);
my %google = ($google->env, %none);

sub start
{
    my ($name, $env, @options) = @_;
    $service->create_topic($name);
    $service->create_subscription($name, $name);
    $service->publish($name, Inbox::Ledger::payments($name, 1, 3));
    return Inbox::Puller->start(node => $node, handler => 'apply_payment', env => $env,
        subscription => $service->subscription($name), options => [@options]);
}

sub consumes
{
    my ($name, $puller) = @_;
    Inbox::Ledger::is_consumed($node, $service, $name, 3);
    is($puller->stop, 0, "$name: stops with status 0");
}

# What the proxy was asked, in short: "CONNECT HOST".
sub asked
{
    my %seen = map { ("$_->{method} $_->{host}" => 1) } $google->requests(sub { $_[0]{service} eq 'proxy' });
    return join ', ', sort keys %seen;
}

$google->rules(proxy_login => 'clerk:' . SECRET);
foreach my $variable ('HTTPS_PROXY', 'https_proxy')
{
    $google->forget_requests;
    consumes("to-google-$variable", start("to-google-$variable", { %google, $variable => $proxy },
            @service_account));
    is(asked(), 'CONNECT pubsub.googleapis.com:443', "$variable: a tunnel for TLS, with the password");
}

# A wrong password, first for --check and then for a puller, until the proxy takes it.
$google->rules(proxy_login => 'clerk:another');
my %wrong = (%google, HTTPS_PROXY => $proxy);
my $check = Inbox::Check->run(subscription => $service->subscription('refused'), env => \%wrong,
    options => \@service_account);
is($check->{status}, 2, 'a password that is refused: --check finds it');
like($check->problem('subscription'), qr/\b407\b.* -> check --endpoint .*HTTPS_PROXY/,
    'and says where to look');
my $refused = start('refused', \%wrong, @service_account);
my $event = $refused->wait_event('subscription_failed');
like("$event->{level} $event->{err} $event->{hint}", qr/^warning .*\b407\b.*HTTPS_PROXY/, $event->{err});
$google->rules(proxy_login => 'clerk:' . SECRET);
consumes('refused', $refused);

# The metadata server is near, whatever the environment says.
consumes('near', start('near', { %google, HTTPS_PROXY => $proxy, http_proxy => $nowhere },
        '--ca-file', $google->ca));

# Plain text, as an emulator's.
my %plain = (%none, PUBSUB_EMULATOR_HOST => $service->host);
$google->forget_requests;
consumes('plain', start('plain', { %plain, http_proxy => $proxy }));
is(asked(), join(', ', map { "$_ " . $service->host } 'GET', 'POST'), 'http_proxy is asked for plain text');
$google->forget_requests;
consumes('upper-case', start('upper-case', { %plain, HTTP_PROXY => $proxy, HTTPS_PROXY => $proxy }));
consumes('left-out', start('left-out',
        { %plain, http_proxy => $nowhere, NO_PROXY => 'example.com,127.0.0.1' }));
is(asked(), '', 'neither HTTP_PROXY is, nor one for TLS, nor any where NO_PROXY names the host');
my $lost = start('lost', { %plain, http_proxy => $nowhere });
$event = $lost->wait_event('subscription_failed');
like("$event->{err} $event->{hint}", qr/Failed to connect.*HTTPS_PROXY/, "no proxy there: $event->{err}");
is($lost->stop, 0, 'stops with status 0');

is_deeply([ Inbox::Puller->leaks(SECRET, @Google::SECRETS, Inbox::Ledger::MEMO) ], [],
    'no log shows the password, another secret or a payload');
unlike($check->{out} . $check->{err} . JSON::PP->new->encode($check->{document}), qr/${\SECRET}/,
    '--check does not either');
$service->stop;
done_testing;
