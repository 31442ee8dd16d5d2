# SPDX-License-Identifier: PostgreSQL
# --db-auth gcp-iam: each new connection has a fresh access token as its password, over TLS only,
# and goes on after that was rotated.
use strict;
use warnings;
use File::Temp qw(tempdir);
use IO::Socket::INET;
use Test::More;
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

my $dir = tempdir(CLEANUP => 1);
my $scope = 'https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fsqlservice.login';

# A metadata server: gives the token that the file holds, to who asks as one has to.
sub serve_metadata
{
    my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 10, Proto => 'tcp')
      or die "no free port: $!\n";
    my $pid = fork() // die "could not fork: $!\n";
    return ($pid, '127.0.0.1:' . $socket->sockport) if $pid;
    $SIG{TERM} = 'DEFAULT';
    while (my $client = $socket->accept)
    {
        my $request = '';
        while (my $line = <$client>)
        {
            $request .= $line;
            last if $line eq "\r\n";
        }
        my $fine = $request =~ m{^GET /computeMetadata/v1/instance/service-accounts/default/token\?scopes=\Q$scope\E HTTP}
          && $request =~ /^Metadata-Flavor: Google\r$/mi;
        open(my $fh, '<', "$dir/token") or die;
        my $token = <$fh>;
        my $body = $fine ? qq({"access_token":"$token","expires_in":3599,"token_type":"Bearer"}) : '';
        printf $client "HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
          $fine ? '200 OK' : '403 Forbidden', length($body), $body;
        close($client);
    }
    POSIX::_exit(0);
}

my $node = Inbox::Ledger->start('iam_password');

# The token becomes the password of the puller's role, as the provider would see to it.
sub rotate
{
    my ($token) = @_;
    open(my $fh, '>', "$dir/next") or die;
    print $fh $token;
    close($fh);
    $node->safe_psql('postgres', "ALTER ROLE puller PASSWORD '$token'");
    rename("$dir/next", "$dir/token") or die;
}

my $data = $node->data_dir;
system('openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj',
    '/CN=localhost', '-keyout', "$data/server.key", '-out', "$data/server.crt") == 0
  or die "openssl failed\n";
chmod(0600, "$data/server.key");
$node->append_conf('postgresql.conf', "ssl = on\nlisten_addresses = '127.0.0.1'\n");
$node->append_conf('pg_hba.conf', "hostssl all puller 127.0.0.1/32 scram-sha-256\n");
$node->restart;
$node->safe_psql('postgres', <<'SQL');
CREATE ROLE puller LOGIN;
SELECT inbox_grant('puller', 'puller');
GRANT EXECUTE ON FUNCTION apply_payment(text, jsonb) TO puller;
GRANT SELECT, INSERT, UPDATE ON account, effect TO puller;
SQL
rotate('token-one-1111');

my ($metadata, $metadata_host) = serve_metadata();
my $service = Inbox::Service->start('own');
$service->create_topic('pay');
$service->create_subscription('pay-sub', 'pay');
my $dbname = 'host=127.0.0.1 port=' . $node->port . ' user=puller dbname=postgres';
my %how = (service => $service, subscription => $service->subscription('pay-sub'),
    handler => 'apply_payment', dbname => $dbname,
    env => { GCE_METADATA_HOST => $metadata_host, http_proxy => 'http://127.0.0.1:1',
        no_proxy => $service->host =~ s/:.*//r });

sub applied
{
    my ($count) = @_;
    wait_until("$count payments in the ledger",
        sub { Inbox::Ledger::count($node, 'SELECT count(*) FROM effect') == $count });
}

my $puller = Inbox::Puller->start(%how, options => ['--db-auth=gcp-iam']);
$service->publish('pay', map { Inbox::Ledger::payment("before-$_", 1, 1) } 1 .. 20);
applied(20);
is($node->safe_psql('postgres', "SELECT bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a"
      . " USING (pid) WHERE a.usename = 'puller'"), 't', 'the connection is encrypted');

rotate('token-two-2222');
$node->safe_psql('postgres',
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'puller'");
$service->publish('pay', map { Inbox::Ledger::payment("after-$_", 1, 1) } 1 .. 20);
applied(40);
pass('goes on with the rotated password');
is($puller->stop, 0, 'stops cleanly');
is(Inbox::Ledger::summary($node), '40 40 0 0', 'the ledger is exact');
unlike($puller->slurp_log, qr/token-(?:one|two)-/, 'no token in the log');

# Without a metadata server it waits, and says for what.
kill('KILL', $metadata);
waitpid($metadata, 0);
$puller = Inbox::Puller->start(%how, options => ['--db-auth=gcp-iam']);
like($puller->wait_event('db_token_failed')->{hint}, qr/metadata server/,
    'says what it needs when there is no metadata server');
is($puller->stop, 0, 'and can be stopped');

$puller = Inbox::Puller->start(%how, dbname => "$dbname sslmode=prefer",
    options => ['--db-auth=gcp-iam']);
is($puller->wait_end, 1, 'an sslmode that lets the token travel in the clear is refused');
like($puller->slurp_log, qr/travel in the clear/, 'and it says why');

$service->stop;
$node->stop;
done_testing();
