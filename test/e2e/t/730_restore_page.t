# SPDX-License-Identifier: PostgreSQL
# docs/restore.md, its commands as they stand there: a base backup, a restore to a point in time, and
# a seek to the time that is worked out from what was restored.
use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use Inbox::Failover;
use Inbox::Page;
use Inbox::Scene;
use Inbox::Wait;
use Inbox::Workload;

my $dir = PostgreSQL::Test::Utils::tempdir();
my $node = Inbox::Failover::primary('restore_page', '', has_archiving => 1);
my $scene = Inbox::Scene->new('own', 'restore', node => $node);
my $service = $scene->{service};
my $work = Inbox::Workload->new(count => 300, twice => 30);
my @messages = @{ $work->{messages} };
my $page = Inbox::Page->new('restore.md', service => $service, node => $node, env => {
        SUBSCRIPTION => $service->subscription('restore-sub'), PGDATA => $node->data_dir,
        BACKUP => "$dir/backup", RESTORED => "$dir/restored", ARCHIVE => $node->archive_dir });
my $env = $page->{env};
is(scalar @{ $page->{blocks} }, 7, 'the page has its commands');

sub unacked { $service->stats('restore-sub')->{unacked} }
sub settled { wait_until("$_[0] to be acknowledged", sub { unacked() == 0 }, 40) }

END
{
    local $? = $?;
    kill 'TERM', split(' ', $env->{PULLERS}) if $env->{PULLERS};
    system('pg_ctl', '-D', "$dir/restored", '-m', 'immediate', '-s', 'stop') if -d "$dir/restored";
}

$page->run('before you need it', 0);
my $puller = $scene->puller(handler => 'apply_payment');
$scene->publish(splice(@messages, 0, 150));
settled('the first');
$env->{MOMENT} = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
my $restored = $work->applied($node);
$scene->publish(splice(@messages, 0, 120));
settled('the next');
cmp_ok($work->applied($node), '>', $restored, 'some was applied since');

$env->{PULLERS} = $puller->{pid};
$page->run('1. the pullers are stopped', 1);
is($puller->wait_end(40), 0, 'it ends well');
delete $env->{PULLERS};
$page->run('2. the server is stopped', 2);
$node->{_pid} = undef;
$page->run('3. it is restored', 3);
is($work->applied($node), $restored, 'what was applied since is gone');

my $shown = $page->run('4. the time is shown', 4);
like($shown, qr/restored +another cluster or timeline than the last puller saw/, 'it says why');
my ($to) = $shown =~ /seek to +(\S+Z), /;
my $newest = $node->safe_psql('postgres', 'SELECT max(claimed_at) FROM inbox_claim');
is($node->safe_psql('postgres', qq{SELECT '$to' < timestamptz '$newest' - interval '10 min'
        AND '$to' > timestamptz '$newest' - interval '12 min'}), 't',
    'a margin before the newest claim that was restored');
like($shown, qr/seek +not done: --yes does it/, 'and how to do it');
is(unacked(), 0, 'and nothing is done');

like($page->run('5. it is sought back', 5), qr/seek +done/, 'it says so');
is(unacked(), 270, 'all comes again');
$scene->publish(@messages);
$page->run('6. a puller is started', 6);
$env->{PULLERS} = $page->background;
$work->wait_applied($node, 60);
settled('all');
$work->is_exact($node, 'in the end');

# With pullers at work again, the newest claim says nothing any more; what was restored does.
my $again = $page->run('the time is still known', 4);
like($again, qr/restored +another cluster or timeline; pullers are here since/, 'and why');
is(($again =~ /seek to +(\S+Z), /)[0], $to, 'and is the same as before');
done_testing;
