# SPDX-License-Identifier: PostgreSQL
# --seek where it would do harm or no good: refused, with the reason and the remedy, and not done.
use strict;
use warnings;
use File::Temp qw(tempdir);
use IPC::Run ();
use JSON::PP;
use Test::More;
use Inbox::Check;
use Inbox::File;
use Inbox::Ledger;
use Inbox::Service;

my $dir = tempdir(CLEANUP => 1);
my $node = Inbox::Ledger->start('seek_refused');
my $service = Inbox::Service->start('own', '--token-file', write_file("$dir/token", "s3cret-token\n"));
$service->{token} = 's3cret-token';
$service->create_topic('pay');
$service->create_subscription('pay-sub', 'pay', retainAckedMessages => JSON::PP::true,
    messageRetentionDuration => '86400s');
$service->create_subscription('none', 'pay');
my $source = $service->subscription('pay-sub');

sub owner_runs { return Inbox::Ledger::owner_runs($node, @_) }

# Status, lines and document of one attempt.
sub attempt
{
    my ($time, @options) = @_;
    my @command = ("$ENV{INBOX_ROOT}/puller/inbox-puller", '--seek', $time, '--dbname',
        $node->connstr('postgres') . ' user=puller', '--subscription', $source, '--endpoint',
        $service->{url}, '--token-file', "$dir/token", @options);
    local %ENV = Inbox::Check::environment();
    IPC::Run::run(\@command, '>', \my $out, '2>', \my $err, IPC::Run::timeout(60));
    return { status => $? >> 8, out => $out, err => $err };
}

# Says so, and does nothing, confirmed or not.
sub refuses
{
    my ($what, $text, $time, @options) = @_;
    my $got = attempt($time, '--yes', @options);
    like($got->{out}, $text, "$what: the fact and the remedy") or diag $got->{err};
    is($got->{status}, 2, "$what: status");
    unlike($got->{out}, qr/seek +done/, "$what: nothing is done");
    unlike("$got->{out}$got->{err}", qr/s3cret/, "$what: no secret is told");
}

sub hours_ago
{
    my ($hours) = @_;
    return $node->safe_psql('postgres', "SELECT to_char((now() - interval '$hours hours') AT TIME ZONE"
          . q{ 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')});
}

$node->safe_psql('postgres', 'CREATE ROLE puller LOGIN');
owner_runs("SELECT inbox_grant('puller', 'puller')");
refuses('a source that is not there', qr/source +\S+ is not known .*\x{e2}\x{86}\x{92} give --source/, 'restore-point');
owner_runs("SELECT inbox_serve('$source', 'apply_payment', '$source')");
refuses('nothing was restored', qr/restored +not as far as can be seen.*give a time before/, 'restore-point');
owner_runs("UPDATE inbox_source SET cluster = '1/00000001'");
refuses('no claims', qr/newest claim +there is none.*give a time/, 'restore-point');
owner_runs("SELECT inbox_accept('k', NULL, '$source')");
is(attempt('restore-point')->{status}, 3, 'with all of that, the time is shown');
refuses('the future', qr/time +it is ahead.*give a time in the past/, hours_ago(-1));
refuses('before the retention', qr/for 1 d: what was published before \S+Z is gone.*--seek \S+Z, and have/,
    hours_ago(25));
refuses('nothing retained', qr/retained acks +\S+none keeps no.*gcloud pubsub subscriptions update \S+none --retain/,
    hours_ago(1), '--subscription', $service->subscription('none'), '--source', $source);
owner_runs(<<SQL);
INSERT INTO inbox_failure (source_id, key, status, reason, publish_time)
	SELECT id, 'waits', 'retrying', 'handler', now() - interval '2 hours' FROM inbox_source
SQL
refuses('a message that waits', qr/tried again +a message published at \S+Z failed.*give a time before that/,
    hours_ago(1));
is(attempt(hours_ago(3))->{status}, 3, 'before that message there is nothing against it');
refuses('another source than is served', qr/source +\S+ is served as the source \S+ and not as other: .* --source \S+/,
    hours_ago(3), '--source', 'other');
owner_runs("UPDATE inbox_source SET purged_before = now() - interval '150 min'");
refuses('keys that are forgotten', qr/keys +those of messages published before \S+Z.*--seek \S+Z/, hours_ago(3));
owner_runs('UPDATE inbox_source SET purged_before = NULL');
$service->call('POST', '/control/permissions', { denied => ['pubsub.subscriptions.get'] });
refuses('no right to read', qr/cannot be read.*roles\/pubsub\.viewer/, hours_ago(3));
$service->call('POST', '/control/permissions', { denied => ['pubsub.subscriptions.consume'] });
refuses('no right to seek', qr/seek +not done, or not known to be: .*PERMISSION_DENIED/, hours_ago(3));
$service->call('POST', '/control/permissions', { denied => [] });
refuses('no database', qr/database +.*does not exist/, hours_ago(3), '--dbname',
    $node->connstr('nowhere') . ' user=puller');

my $json = attempt(hours_ago(3), '--yes', '--json');
is($json->{status}, 0, 'else it is done');
my ($fact) = grep { $_->{name} eq 'seek' } @{ decode_json($json->{out})->{facts} };
like($fact->{value}, qr/^done/, 'and the document says so');
done_testing;
