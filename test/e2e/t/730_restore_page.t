# SPDX-License-Identifier: PostgreSQL
# docs/restore.md, its commands as they stand there: a base backup, a restore to a point in time, and
# a seek to the time that is worked out from what was restored.
use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use Inbox::Check;
use Inbox::Failover;
use Inbox::Scene;
use Inbox::Wait;
use Inbox::Workload;

my $root = $ENV{INBOX_ROOT};
my $dir = PostgreSQL::Test::Utils::tempdir();
my $node = Inbox::Failover::primary('restore_page', '', has_archiving => 1);
my $scene = Inbox::Scene->new('own', 'restore', node => $node);
my $service = $scene->{service};
my $work = Inbox::Workload->new(count => 300, twice => 30);
my @messages = @{ $work->{messages} };
my @blocks = slurp_file("$root/docs/restore.md") =~ /^```sh\n(.*?)^```$/gms;
is(scalar @blocks, 7, 'the page has its commands');

# gcloud knows the test's service under another name, and this one option of it.
mkdir "$dir/bin";
append_to_file("$dir/bin/gcloud", <<"SH");
#!/bin/sh
set -eu
test "\$*" = "pubsub subscriptions update \$SUBSCRIPTION --retain-acked-messages --message-retention-duration=31d"
curl --fail --silent --show-error --output $dir/gcloud.out --request PATCH --header 'Content-Type: application/json' \\
    --data '{"subscription":{"retainAckedMessages":true,"messageRetentionDuration":"2678400s"},"updateMask":"retainAckedMessages,messageRetentionDuration"}' \\
    "$service->{url}/v1/\$SUBSCRIPTION"
SH
chmod 0755, "$dir/bin/gcloud";
my %env = Inbox::Check::environment(
    PATH => "$dir/bin:$root/puller:$ENV{PATH}", PUBSUB_EMULATOR_HOST => $service->host,
    SUBSCRIPTION => $service->subscription('restore-sub'), PGHOST => $node->host,
    PGPORT => $node->port, PGDATABASE => 'postgres', PGDATA => $node->data_dir,
    INBOX_LOG_FORMAT => 'json', INBOX_LOG_LEVEL => 'debug',
    BACKUP => "$dir/backup", RESTORED => "$dir/restored", ARCHIVE => $node->archive_dir,
    defined Inbox::Ledger::owner() ? (INBOX_DBNAME => 'user=' . Inbox::Ledger::owner()) : ());

sub run_block
{
    my ($name, $number) = @_;
    local %ENV = %env;
    my $output = "$dir/output$number";
    # To a file: what the block leaves behind keeps its output open.
    my $status = system('bash', '-uc', "set -e; exec >$output 2>&1\n$blocks[$number]\necho \${!-} >$dir/started");
    is($status, 0, $name) or diag(slurp_file($output));
    return slurp_file($output);
}

sub unacked { $service->stats('restore-sub')->{unacked} }
sub settled { wait_until("$_[0] to be acknowledged", sub { unacked() == 0 }, 40) }

END
{
    local $? = $?;
    kill 'TERM', split(' ', $env{PULLERS}) if $env{PULLERS};
    system('pg_ctl', '-D', "$dir/restored", '-m', 'immediate', '-s', 'stop') if -d "$dir/restored";
}

run_block('before you need it', 0);
my $puller = $scene->puller(handler => 'apply_payment');
$scene->publish(splice(@messages, 0, 150));
settled('the first');
$env{MOMENT} = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
my $restored = $work->applied($node);
$scene->publish(splice(@messages, 0, 120));
settled('the next');
cmp_ok($work->applied($node), '>', $restored, 'some was applied since');

$env{PULLERS} = $puller->{pid};
run_block('1. the pullers are stopped', 1);
is($puller->wait_end(40), 0, 'it ends well');
delete $env{PULLERS};
run_block('2. the server is stopped', 2);
$node->{_pid} = undef;
run_block('3. it is restored', 3);
is($work->applied($node), $restored, 'what was applied since is gone');

my $shown = run_block('4. the time is shown', 4);
like($shown, qr/restored +another cluster or timeline than the last puller saw/, 'it says why');
my ($to) = $shown =~ /seek to +(\S+Z), /;
my $newest = $node->safe_psql('postgres', 'SELECT max(claimed_at) FROM inbox_claim');
is($node->safe_psql('postgres', qq{SELECT '$to' < timestamptz '$newest' - interval '10 min'
        AND '$to' > timestamptz '$newest' - interval '12 min'}), 't',
    'a margin before the newest claim that was restored');
like($shown, qr/seek +not done: --yes does it/, 'and how to do it');
is(unacked(), 0, 'and nothing is done');

like(run_block('5. it is sought back', 5), qr/seek +done/, 'it says so');
is(unacked(), 270, 'all comes again');
$scene->publish(@messages);
run_block('6. a puller is started', 6);
$env{PULLERS} = slurp_file("$dir/started") + 0;
$work->wait_applied($node, 60);
settled('all');
$work->is_exact($node, 'in the end');

# With pullers at work again, the newest claim says nothing any more; what was restored does.
my $again = run_block('the time is still known', 4);
like($again, qr/restored +another cluster or timeline; pullers are here since/, 'and why');
is(($again =~ /seek to +(\S+Z), /)[0], $to, 'and is the same as before');
done_testing;
