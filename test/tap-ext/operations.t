# SPDX-License-Identifier: PostgreSQL
# The page for operators as it stands there: its statements and commands, from top to bottom, in a
# database that has something to show; and its listener hears of a dead letter.
use strict;
use warnings;
use IPC::Open3;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $page = slurp_file("$ENV{INBOX_ROOT}/docs/operations.md");
my $node = PostgreSQL::Test::Cluster->new('operations');
$node->init(extra => [ '--encoding=UTF8', '--no-locale' ]);
$node->append_conf('postgresql.conf', "fsync = on\nshared_preload_libraries = 'pg_cron'\n");
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE books');
$node->safe_psql('books', <<'SQL');
CREATE EXTENSION inbox;
CREATE FUNCTION example_handler(payload text) RETURNS jsonb LANGUAGE sql AS 'SELECT to_jsonb($1)';
SELECT inbox_serve('payments', 'example_handler', 'a subscription');
SELECT inbox_configure('payments', max_attempts => 1);
SQL
@ENV{qw(PGHOST PGPORT PGDATABASE)} = ($node->host, $node->port, 'books');
chdir(PostgreSQL::Test::Utils::tempdir()) or die;

sub message_dies
{
    $node->safe_psql('books', "SELECT inbox_fail(('$_[0]', 'p', NULL, '$_[1]', 'm', now(), NULL, NULL)::inbox_message, "
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
        my ($ok, $out, $err) = $node->psql('books', $text, on_error_stop => 1);
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
}
my ($schedule) = $page =~ /`(SELECT cron\.schedule\(.*?\))`/;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_cron');
is($node->safe_psql('postgres', $schedule), '1', 'pg_cron takes the purge');
cmp_ok($blocks, '>', 15, 'the page has commands');
is($node->safe_psql('books', "SELECT string_agg(key || ' ' || status, ', ' ORDER BY key) FROM inbox_failure "
      . "WHERE key LIKE 'payment%'"), 'payment-4711 resolved, payment-4712 discarded',
    'a dead letter was applied, another one ended');
is($node->safe_psql('books', "SELECT inbox_result('payment-9', 'payments') IS NULL, "
      . "inbox_accept('payment-9', source => 'payments')"), 't|f', 'and a result erased, but not its key');
isnt($node->psql('books', 'DROP EXTENSION inbox'), 0, 'the extension is protected');
done_testing;
