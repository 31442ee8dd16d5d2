# SPDX-License-Identifier: PostgreSQL
# From the release before to this one while pullers work: every message takes effect once, what was
# there is there, and nothing tells the result from a fresh installation, object by object.
use strict;
use warnings;
use File::Copy qw(copy);
use PostgreSQL::Test::Utils;
use Test::More;
use Inbox::Catalog;
use Inbox::Ledger;
use Inbox::Scene;
use Inbox::Wait;
use Inbox::Workload;

my $managed = defined Inbox::Ledger::owner();
my $frozen = "$ENV{INBOX_ROOT}/test/upgrade";
my ($before) = map { /inbox--(.*)\.sql$/ } glob("$frozen/inbox--*.sql");
my ($version) = slurp_file("$ENV{INBOX_ROOT}/inbox.control") =~ /^default_version = '(.*)'/m;

sub as_owner { return Inbox::Ledger::owner_runs(@_) }

sub run_file
{
    my ($node, $database) = @_;
    system_or_bail('psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-v', 'schema=public', '-d', $node->connstr($database),
        Inbox::Ledger::as_owner(), '-f', "$ENV{INBOX_ROOT}/sql/inbox-managed.sql");
}

sub install_fresh
{
    my ($node) = @_;
    $node->safe_psql('postgres', 'CREATE DATABASE fresh' . ($managed ? ' OWNER ' . Inbox::Ledger::owner() : ''));
    return run_file($node, 'fresh') if $managed;
    $node->safe_psql('fresh', 'CREATE EXTENSION inbox');
}

sub upgrade
{
    my ($node) = @_;
    return run_file($node, 'postgres') if $managed;
    $node->safe_psql('postgres', 'ALTER EXTENSION inbox UPDATE');
}

# Of each table what a row had before.
my %filled = (
    inbox_source => "id, name, handler, subscription, purged_before, max_attempts, order_policy, lock_key FROM inbox_source WHERE name LIKE 'old%'",
    inbox_claim => "* FROM inbox_claim WHERE key LIKE 'old%'",
    inbox_claim_result => '* FROM inbox_claim_result',
    inbox_failure => "* FROM inbox_failure WHERE key LIKE 'old%'");

sub contents
{
    my ($node) = @_;
    return join("\n", map { $node->safe_psql('postgres', "SELECT $filled{$_} ORDER BY 1, 2") } sort keys %filled);
}

sub fill
{
    my ($node) = @_;
    $node->safe_psql('postgres', 'CREATE ROLE worker LOGIN; CREATE ROLE clerk; CREATE ROLE meter; CREATE ROLE analyst');
    as_owner($node, <<'SQL');
CREATE FUNCTION says(payload text) RETURNS jsonb LANGUAGE sql AS 'SELECT to_jsonb($1)';
SELECT inbox_grant('worker', 'puller'), inbox_grant('clerk', 'operator'), inbox_grant('meter', 'monitor');
GRANT SELECT ON inbox_claim TO analyst;
GRANT SELECT, INSERT, UPDATE ON account, effect TO worker;
SELECT inbox_process('old' || i, 'p' || i, 'says', 'old source') FROM generate_series(1, 50) i;
SELECT inbox_configure('old parked', order_policy => 'park', max_attempts => 1);
SELECT inbox_fail(('old' || w, 'p', NULL, 'o', 'm' || w, now(), NULL, NULL), s, '22012', 'division by zero')
FROM (VALUES ('a', 'old source'), ('b', 'old parked'), ('c', 'old parked')) v(w, s);
SELECT inbox_discard(id, 'not needed') FROM inbox_failure WHERE key = 'oldc';
SQL
}

# The script of the release before lies beside those of this one, as a package has them.
chomp(my $sharedir = `pg_config --sharedir`);
copy("$frozen/inbox--$before.sql", "$sharedir/extension") or die "could not copy to $sharedir: $!\n";

my $scene = Inbox::Scene->new('own', 'upgraded', ms => 1, before => $before);
my $node = $scene->{node};
fill($node);
my $contents = contents($node);
my $work = Inbox::Workload->new(count => 3000, twice => 600);
my @messages = @{ $work->{messages} };
# With no more rights than they were granted before.
my @pullers = map { $scene->puller(dbname => $node->connstr('postgres') . ' user=worker',
    options => [ '--batch-size=20', '--workers=2' ]) } 1, 2;
$scene->publish(@messages[ 0 .. 1799 ]);
$work->wait_applied($node, 120, 500);
upgrade($node);
cmp_ok($work->applied($node), '<', 3000, 'while messages are on their way');
$scene->publish(@messages[ 1800 .. $#messages ]);
$work->wait_applied($node, 120);
ok($_->is_running, 'a puller went on') foreach @pullers;
is($node->safe_psql('postgres', 'SELECT inbox_version()'), $version, "from $before to $version");
is(contents($node), $contents, 'what was there is there');
$work->is_exact($node);
$pullers[0]->stop;
$work->all_acked($scene->{service}, 'upgraded-sub', $pullers[1], 'all is acknowledged');

install_fresh($node);
my $granted = join(', ', map { "inbox_grant('$_', 'puller')" } 'worker', Inbox::Ledger::puller() // ());
$node->psql('fresh', "SELECT $granted, inbox_grant('clerk', 'operator'), "
      . "inbox_grant('meter', 'monitor'); GRANT SELECT ON inbox_claim TO analyst",
    extra_params => [ Inbox::Ledger::as_owner() ], on_error_die => 1);
my %upgraded = (Inbox::Catalog::read($node, 'postgres', 'public'), bodies => Inbox::Catalog::bodies($node, 'postgres', 'public'));
my %fresh = (Inbox::Catalog::read($node, 'fresh', 'public'), bodies => Inbox::Catalog::bodies($node, 'fresh', 'public'));
# A role of the tests, which only one of the databases has given rights to.
@{ $_->{rights} } = grep { !/\|inbox_puller\|/ } @{ $_->{rights} } foreach \%upgraded, \%fresh;
foreach my $what (sort keys %fresh)
{
    is(join("\n", @{ $upgraded{$what} }), join("\n", @{ $fresh{$what} }), "the same $what as in a fresh one");
    cmp_ok(scalar(@{ $fresh{$what} }), '>', 5, 'which are some') unless $what eq 'triggers' || $what eq 'extension' && $managed;
}
is(as_owner($node, "SELECT string_agg(name || ' ' || detail, ', ') FROM inbox_check() WHERE NOT ok"), '',
    'nothing is wrong with it');
my ($dump) = run_command([ 'pg_dump', '-d', $node->connstr('postgres') ]);
like($dump, qr/^GRANT (?:ALL|EXECUTE) ON FUNCTION public\.inbox_process_batch\(.*\) TO worker;$/m,
    'and a dump has what was granted');
done_testing;
