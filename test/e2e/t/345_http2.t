# SPDX-License-Identifier: PostgreSQL
# HTTP/2, which Google speaks: pulls and acknowledgements share a connection, and streams that are
# reset or refused, connections that are ended in order and such as are cut lose no message and apply
# none twice.
use strict;
use warnings;
use lib "$ENV{INBOX_ROOT}/test/google", "$ENV{INBOX_ROOT}/test/conformance/lib";
use JSON::PP;
use List::Util qw(max);
use PostgreSQL::Test::Utils;
use Test::More;
use Google;
use Inbox::Child;
use Inbox::File;
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;
use Node;

plan(skip_all => 'Node.js is not on this machine (the Debian packages nodejs and npm)')
  if !Node::is_there();

use constant COUNT => 400;

my %mischief = (
    acknowledge => { 3 => 'reset', 5 => 'refuse', 7 => 'goaway', 9 => 'destroy' },
    pull => { 4 => 'refuse', 6 => 'reset' });

my $node = Inbox::Ledger->start('http2');
my $service = Inbox::Service->start('own');
my $google = Google->start(later => 1);
my $dir = $google->{dir};
$google->make_certificate('local.pem', 'ca', 'localhost');
write_file("$dir/http2-mischief", encode_json(\%mischief));
my $front = bless { pid => Inbox::Child::spawn("$PostgreSQL::Test::Utils::log_path/http2.log", 'node',
        "$ENV{INBOX_ROOT}/test/google/http2.js", $dir, $service->{url}) }, 'Inbox::Child';
wait_until('the server to listen', sub { -e "$dir/http2-port" }, 30);

$service->create_topic('pay');
$service->create_subscription('pay', 'pay');
$service->publish('pay', map { Inbox::Ledger::payment("pay$_", $_ % 50, 1) } 1 .. COUNT);
my %env = map { $_ => '' }
  qw(https_proxy HTTPS_PROXY all_proxy ALL_PROXY PUBSUB_EMULATOR_HOST);
my $puller = Inbox::Puller->start(node => $node, handler => 'apply_payment', env => \%env,
    subscription => $service->subscription('pay'),
    options => [ '--endpoint', 'https://localhost:' . slurp_file("$dir/http2-port"), '--ca-file',
        $google->ca, '--token-file', write_file("$dir/token", "s3cret-token\n"), '--batch-size=10' ]);

sub requests { return map { decode_json($_) } split /\n/, slurp_file("$dir/http2-requests") }

Inbox::Ledger::is_consumed($node, $service, 'pay', COUNT);
# What has not come about is waited for, with more to do.
my $more = 0;
wait_until('all of the mischief, and several pulls in one connection', sub {
    my %done = map { ("$_->{verb} $_->{what}" => 1) } grep { $_->{what} } requests();
    return 1 if keys %done == 6 && max(map { $_->{pulls} } requests()) > 1;
    $service->publish('pay', map { Inbox::Ledger::payment('more' . ++$more, 1, 1) } 1 .. 100);
    return 0;
}, 60, 1);
wait_until('all to be acknowledged', sub { $service->stats('pay')->{unacked} == 0 });
is($puller->stop, 0, 'stops with status 0');
$front->kill_all;

my @requests = requests();
my %sessions = map { ($_->{session} => 1) } @requests;
cmp_ok(scalar(keys %sessions), '>=', 3, 'connections that end are replaced');
cmp_ok(scalar(keys %sessions), '<', @requests / 2, 'and shared');
is(scalar(grep { ($_->{authorization} // '') ne 'Bearer s3cret-token' } @requests), 0,
    'every request has the token');
my @summary = split / /, Inbox::Ledger::summary($node);
is("@summary[2, 3]", '0 0', 'nothing was applied twice');
is(scalar(grep { ($_->{err} // '') =~ /REFUSED_STREAM/ } $puller->events), 0,
    'what the server has not begun is asked for again in another connection, at once');
$service->stop;
done_testing;
