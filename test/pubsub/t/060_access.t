#!/usr/bin/perl
# SPDX-License-Identifier: PostgreSQL
# Bearer tokens, permissions, TLS, the command line.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PubSub;
use File::Temp qw(tempdir);
use Test::More;

my $dir = tempdir(CLEANUP => 1);

sub write_file
{
    my ($path, $text) = @_;
    open(my $fh, '>', $path) or die "$path: $!";
    print $fh $text;
    close($fh);
}

# Tokens.
write_file("$dir/tokens", "first\nsecond\n");
my $server   = PubSub->start('--token-file', "$dir/tokens");
my $reason   = sub { $_[0]{json}{error}{details}[0]{reason} };
my $response = $server->call('GET', 'topics/orders');
is(PubSub::problem($response), '401 UNAUTHENTICATED', 'no token: not let in');
is($reason->($response),       'CREDENTIALS_MISSING', 'with the reason');
like($response->{headers}{'www-authenticate'}, qr/^Bearer/, 'and what is wanted');
$response = $server->call('GET', 'topics/orders', undef, Authorization => 'Bearer other');
is(PubSub::problem($response), '401 UNAUTHENTICATED', 'a wrong token: not let in');
$server->{headers} = { Authorization => 'Bearer first' };
is($server->topic('orders')->{name}, 'projects/p/topics/orders', 'the right token: let in');
$server->faults({ on => 'get', nth => 2, do => 'revoke' });
is($server->call('GET', 'topics/orders')->{status}, 200, 'one more request');
$response = $server->call('GET', 'topics/orders');
is($reason->($response), 'ACCESS_TOKEN_EXPIRED',         'then the token expires');
is($server->call('GET', 'topics/orders')->{status}, 401, 'for good');
$server->{headers} = { Authorization => 'Bearer second' };
is($server->call('GET', 'topics/orders')->{status}, 200, 'another token is let in');
write_file("$dir/tokens", "third\n");
is($server->call('GET', 'topics/orders')->{status}, 401, 'until it is taken out of the file');
$server->{headers} = { Authorization => 'Bearer third' };
is($server->call('GET', 'topics/orders')->{status}, 200, 'a token can be added to the file');

# Permissions.
$server = PubSub->start;
$server->topic('orders');
$server->subscription('ledger', 'orders');
my $asked = { permissions => ['pubsub.subscriptions.consume', 'pubsub.subscriptions.get'] };
my $held = sub { $server->must('POST', 'subscriptions/ledger:testIamPermissions', $asked) };
is_deeply($held->(), $asked, 'everything is allowed');
$server->must('POST', '/control/permissions', { denied => ['pubsub.subscriptions.get'] });
is_deeply($held->(), { permissions => ['pubsub.subscriptions.consume'] }, 'but what is denied');
$response = $server->call('GET', 'subscriptions/ledger');
is(PubSub::problem($response), '403 PERMISSION_DENIED', 'it is refused');
is($response->{json}{error}{details}[0]{metadata}{permission}, 'pubsub.subscriptions.get',
    'by its name');
is($server->data_now('ledger'), '', 'other permissions are as they were');
$server->must('POST', '/control/permissions', { denied => $asked->{permissions} });
is_deeply($held->(), {}, 'none: no list');
$response = $server->call('POST', 'subscriptions/ledger:pull', { maxMessages => 1 });
is(PubSub::problem($response), '403 PERMISSION_DENIED', 'a pull takes a permission');
$server->must('POST', '/control/permissions', { denied => [] });
is_deeply($held->(), $asked, 'and back');

# TLS.
is( system(
              "openssl req -x509 -newkey rsa:2048 -nodes -keyout $dir/key -out $dir/cert -days 2 "
            . "-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 2>/dev/null"),
    0,
    'a certificate is made');
$server = PubSub->start('--tls-cert', "$dir/cert", '--tls-key', "$dir/key");
like($server->url, qr/^https:/, 'with a certificate the server speaks TLS');
my $answer =
    `curl -sS --cacert $dir/cert -X PUT -d '{}' @{[$server->url]}/v1/projects/p/topics/orders`;
like($answer, qr{"projects/p/topics/orders"}, 'and serves');
$server->stop;

# The command line.
sub run
{
    my $program = PubSub::program('inbox-pubsub');
    my $text    = `$program @_ 2>&1`;
    return ($? >> 8, $text);
}
foreach my $case (
    ['--help',                                  0, qr/--listen/],
    ['--version',                               0, qr/^inbox-pubsub \d/],
    ['--colour',                                1, qr/--help/],
    ['x',                                       1, qr/--help/],
    ['--listen nowhere',                        1, qr/ADDRESS:PORT/],
    ['--listen localhost:0',                    1, qr/not an IP address/],
    ['--listen 127.0.0.1:0 --history /none/h',  1, qr{/none/h}],
    ['--listen 127.0.0.1:0 --tls-cert x',       1, qr/need each other/],
    ["--listen 127.0.0.1:0 --faults $dir/cert", 1, qr/JSON array/])
{
    my ($code, $text) = run($case->[0]);
    is($code, $case->[1], "exit code of $case->[0]");
    like($text, $case->[2], 'and what it says');
}
$server = PubSub->start('--port-file', "$dir/port");
like($server->url, qr/:(\d+)$/, 'a port');
is(PubSub::slurp("$dir/port"), ($server->url =~ /:(\d+)$/)[0] . "\n", 'is in the port file');
is(PubSub::slurp("$server->{dir}/pid"), "$server->{pid}\n", 'the process id in the other');
my ($code, $text) = run('--listen', $server->host);
is($code, 1, 'a port that is taken');
like($text, qr/cannot listen on 127/, 'is told');
ok($server->stop,   'at the end');
ok(!-e "$dir/port", 'the files are gone');

done_testing();
