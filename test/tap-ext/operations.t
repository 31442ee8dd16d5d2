# SPDX-License-Identifier: PostgreSQL
# The page for operators as it stands there: its statements and commands, from top to bottom, in a
# database that has something to show; its listener hears of a dead letter; what forgets old keys each
# night, pg_cron and the units of systemd, does; and whatever else it names is there.
use strict;
use warnings;
use File::Copy qw(copy);
use IPC::Open3;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $root = $ENV{INBOX_ROOT};
my $page = slurp_file("$root/docs/operations.md");
my $node = PostgreSQL::Test::Cluster->new('operations');
$node->init(extra => [ '--encoding=UTF8', '--no-locale' ]);
$node->append_conf('postgresql.conf', "fsync = on\nshared_preload_libraries = 'pg_cron'\ncron.host = '"
      . $node->host . "'\n");
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE operated');
$node->safe_psql('operated', <<'SQL');
CREATE EXTENSION inbox;
CREATE FUNCTION example_handler(payload text) RETURNS jsonb LANGUAGE sql AS 'SELECT to_jsonb($1)';
SELECT inbox_serve('payments', 'example_handler', 'a subscription');
SELECT inbox_configure('payments', max_attempts => 1);
SELECT inbox_import(ARRAY['payment-8'], 'payments', ARRAY[now() - interval '50 days']);
-- As if keys of that time had been forgotten.
UPDATE inbox_source SET purged_before = now() - interval '1 day';
SELECT inbox_process_batch(ARRAY(SELECT (key, 'p', NULL, NULL, key, now() - interval '2 days', NULL, NULL)::inbox_message
	FROM unnest('{payment-4713,payment-4714}'::text[]) key), 'example_handler', 'payments');
SQL
@ENV{qw(PGHOST PGPORT PGDATABASE)} = ($node->host, $node->port, 'operated');
chdir(PostgreSQL::Test::Utils::tempdir()) or die;

sub wait_until
{
    my ($what, $condition) = @_;
    my $deadline = time + 150;
    until ($condition->())
    {
        die "waited in vain for $what\n" if time > $deadline;
        sleep(0.2);
    }
}

sub message_dies
{
    $node->safe_psql('operated', "SELECT inbox_fail(('$_[0]', 'p', NULL, '$_[1]', 'm', now(), NULL, NULL)::inbox_message, "
          . "'payments', '22012', 'division by zero', halt_after => 1000)");
}

# Runs in the background until a line has come that matches.
sub listens
{
    my ($command) = @_;
    my $pid = open3(my $in, my $lines, undef, 'setsid', 'sh', '-c', $command);
    my $heard;
    # It listens a moment after it has started; it is told until it has heard.
    my $number = 0;
    my $deadline = time + 30;
    my $buffer = '';
    until ($heard || time > $deadline)
    {
        message_dies('listened-' . $number++, '');
        my $bits = '';
        vec($bits, fileno($lines), 1) = 1;
        sysread($lines, $buffer, 4096, length($buffer)) if select($bits, undef, undef, 1);
        ($heard) = $buffer =~ /("inbox_dead_letter" with payload .*)\n/;
    }
    kill('TERM', -$pid);
    waitpid($pid, 0);
    return $heard;
}

# ---- each night: "books" is the database of the page's examples ---------------------------------

sub books { return $node->safe_psql('books', $_[0]) }

# With a window that is a new one, all keys are looked at.
sub has_old_key
{
    my ($key, $window) = @_;
    books("SELECT inbox_import('{$key}', 'payments', ARRAY[now() - interval '90 days']); "
          . "SELECT inbox_configure('payments', dedup_window => '$window')");
}

# What is in code on the page, and not in a block.
my @inline = ($page =~ s/^```.*?^```$//gmsr) =~ /`([^`]+)`/g;
my ($schedule) = grep { /cron\.schedule/ } @inline;

$node->safe_psql('postgres', 'CREATE EXTENSION pg_cron; CREATE DATABASE books');
books('CREATE EXTENSION inbox');
has_old_key('by pg_cron', '60 days');
is($node->safe_psql('postgres', $schedule), '1', 'pg_cron takes the purge');
# Nobody waits for ten past three here.
$node->safe_psql('postgres', q{SELECT cron.alter_job(1, schedule => '* * * * *')});

# ---- a release before -----------------------------------------------------------------------------

my ($frozen) = glob("$root/test/upgrade/inbox--*.sql");
my ($before) = $frozen =~ /inbox--(.*)\.sql$/;
my ($version) = slurp_file("$root/inbox.control") =~ /^default_version = '(.*)'/m;
chomp(my $sharedir = `pg_config --sharedir`);
copy($frozen, "$sharedir/extension") or die "could not copy $frozen to $sharedir: $!\n";
$node->safe_psql('postgres', 'CREATE DATABASE older');
$node->safe_psql('older', "CREATE EXTENSION inbox VERSION '$before'");

# ---- the page -----------------------------------------------------------------------------------

# What is to be seen after a block that has this in it.
my %after = (
    'ALTER EXTENSION inbox UPDATE' => sub {
        my ($block) = @_;
        is($node->psql('older', $block, on_error_stop => 1), 0, "from $before as well");
        is($node->safe_psql('older', 'SELECT inbox_version()'), $version, "and then it is $version");
    },
    'inbox_protect()' => sub { isnt($node->psql('operated', 'DROP EXTENSION inbox'), 0, 'the extension is protected') },
    'inbox_unprotect()' =>
      sub { is($node->psql('operated', 'BEGIN; DROP EXTENSION inbox; ROLLBACK', on_error_stop => 1), 0, 'until it is not') });

message_dies('payment-4711', 'account 7');
message_dies('payment-4712', 'account 8');
my $blocks = 0;
while ($page =~ /^```(\w+)\n(.*?)^```$/gms)
{
    my ($kind, $text) = ($1, $2);
    my ($first) = $text =~ /^(.*)$/m;
    $blocks++;
    if ($kind eq 'sql')
    {
        my ($ok, $out, $err) = $node->psql('operated', $text, on_error_stop => 1);
        is($ok, 0, "runs: $first") or diag($err);
    }
    elsif ($text =~ /LISTEN/)
    {
        like(listens($text), qr/\{"source" : "payments", "id" : \d+, "sqlstate" : "22012"\}/,
            'who listens hears of a dead letter');
    }
    else
    {
        is(system('sh', '-ec', $text), 0, "runs: $first");
    }
    foreach my $what (grep { index($text, $_) >= 0 } sort keys %after)
    {
        (delete $after{$what})->($text);
    }
}
cmp_ok($blocks, '>', 20, 'the page has commands');
is_deeply([ keys %after ], [], 'and those that something is to be seen of');
is($node->safe_psql('operated', "SELECT string_agg(key || ' ' || status, ', ' ORDER BY key) FROM inbox_failure "
      . "WHERE key LIKE 'payment%'"),
    'payment-4711 resolved, payment-4712 discarded, payment-4713 resolved, payment-4714 discarded',
    'dead letters and expired messages were applied, or ended');
is($node->safe_psql('operated', "SELECT inbox_result('payment-9', 'payments') IS NULL, "
      . "inbox_accept('payment-9', source => 'payments')"), 't|f', 'a result is erased, but not its key');
is($node->safe_psql('operated', "SELECT count(*) FROM inbox_claim WHERE key = 'payment-8'"), 0, 'another key as well');

# ---- what it names --------------------------------------------------------------------------------

my @unknown;
my $options = slurp_file("$root/puller/option_table.c");
foreach my $code (@inline)
{
    push @unknown, grep { $options !~ /"\Q$_\E"/ } $code =~ /(?:^| )--([a-z-]+)/g unless $code =~ /^systemctl/;
    next unless $code =~ /^(inbox_\w+)(\(\))?$/;
    push @unknown, $1 if $node->safe_psql('operated',
        "SELECT EXISTS (SELECT FROM pg_proc WHERE proname = '$1') OR to_regclass('$1') IS NOT NULL") ne 't';
}
is_deeply(\@unknown, [], 'options, tables and functions that it names are there');
is_deeply([ grep { /^(?:SELECT|CALL|UPDATE|DELETE|ALTER|VACUUM|psql|pg_\w+ )|^\w+\(.+\)/ } @inline ], [ $schedule ],
    'no other command stands where it is not run');

# ---- a purge that has to wait ----------------------------------------------------------------------

# As the page has it: every ten seconds it says how far it is, and what holds it up; and in the end what it did.
my $idle = $node->background_psql('operated');
$idle->query_safe('BEGIN; SELECT count(*) FROM inbox_claim');
$node->psql('operated', q{CALL inbox_purge(patience => '25 seconds')}, stdout => \my $result, stderr => \my $info);
like($info, qr/^(?:psql:\S* )?INFO:  inbox_purge: 0 %, 0 keys forgotten, waits for the end of \S+ of process \d+$/m,
    'it says how far it is, and what it waits for');
like($result, qr/^waiting\|0\|0\|for the end of \S+ of process \d+$/, 'and with what it gave up');
$idle->query_safe('COMMIT');
$idle->quit;
# Ten seconds after its last sign another one takes it for dead.
wait_until('the next one to go on', sub { $node->safe_psql('operated', 'CALL inbox_purge()') =~ /^done/ });

# ---- the nights -----------------------------------------------------------------------------------

wait_until('pg_cron to run', sub { $node->safe_psql('postgres',
    q{SELECT count(*) > 0 FROM cron.job_run_details WHERE status IN ('succeeded', 'failed')}) eq 't' });
is($node->safe_psql('postgres', 'SELECT database, command, status FROM cron.job_run_details ORDER BY runid LIMIT 1'),
    'books|CALL inbox_purge()|succeeded', 'pg_cron has run it, which commits on its way');
is(books('SELECT forgotten, finished_at IS NOT NULL FROM inbox_purge_run'), '1|t', 'and it forgot what was too old');
$node->safe_psql('postgres', 'SELECT cron.unschedule(1)');

SKIP:
{
    skip 'systemd-analyze is not on this machine (the Debian package systemd)', 5
      if system('systemd-analyze --version >/dev/null 2>&1') != 0;
    has_old_key('by systemd', '50 days');
    my @units = qw(inbox-purge@books.timer inbox-purge@books.service inbox-puller@books.service);
    copy($_, '.') or die "$_: $!\n" foreach glob("$root/deploy/systemd/*");
    my $puller = slurp_file("$root/debian/inbox-puller.inbox-puller\@.service");
    # It is to be an executable that is there.
    append_to_file('inbox-puller@.service', $puller =~ s{/usr/bin/inbox-puller}{/bin/true}r);
    foreach my $unit (@units)
    {
        is(`systemd-analyze verify --man=no ./$unit 2>&1`, '', "systemd has nothing to say about $unit");
    }
    my ($command) = slurp_file('inbox-purge@.service') =~ /^ExecStart=(.*)$/m;
    is(system('sh', '-c', $command =~ s/%I/books/r . ' >/dev/null'), 0, 'what the timer starts runs');
    is(books('SELECT count(*) FROM inbox_claim'), 0, 'and forgets what was too old');
}
done_testing;
