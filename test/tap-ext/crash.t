# SPDX-License-Identifier: PostgreSQL
#
# A verdict that COMMIT has confirmed survives a crash: whoever acts on it loses nothing.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('crash');
$node->init(extra => [ '--encoding=UTF8', '--no-locale' ]);
# Nobody else is to write out WAL between a commit and the crash. full_page_writes and fsync do
# not matter here: what is not written at all is what gets lost.
$node->append_conf('postgresql.conf', <<'CONF');
wal_writer_delay = 10s
wal_writer_flush_after = 1GB
bgwriter_lru_maxpages = 0
checkpoint_timeout = 1h
autovacuum = off
CONF
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION inbox;
CREATE TABLE ledger (key text);
CREATE FUNCTION post(k text, p text) RETURNS void LANGUAGE sql AS $$ INSERT INTO ledger VALUES (k) $$;
CREATE FUNCTION post_carelessly(k text, p text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO ledger VALUES (k);
	PERFORM set_config('synchronous_commit', 'off', true);
END $$;
SELECT inbox_source_ensure('default');
CREATE FUNCTION message(key text) RETURNS inbox_message LANGUAGE sql AS
	$$ SELECT (key, 'p', NULL, NULL, NULL, NULL, NULL, NULL)::inbox_message $$;
SQL

sub crash
{
	$node->stop('immediate');
	$node->start;
}

sub exists_claim
{
	my ($key) = @_;
	return $node->safe_psql('postgres', "SELECT count(*) FROM inbox_claim WHERE key = '$key'");
}

# What another transaction has left behind without waiting for the disk.
sub leave_unflushed
{
	my ($key) = @_;
	$node->safe_psql('postgres', <<SQL);
SET synchronous_commit = off;
BEGIN;
INSERT INTO inbox_claim (source_id, key) SELECT id, '$key' FROM inbox_source;
INSERT INTO ledger VALUES ('$key');
COMMIT;
SQL
}

# The test itself: without a verdict in between, the claim is really lost.
leave_unflushed('nobody asked');
crash();
is(exists_claim('nobody asked'), '0', 'an asynchronous commit is lost in a crash here');

my %ask = (
	'inbox_process' => "SELECT inbox_process('KEY', 'p', 'post')",
	'inbox_accept' => "SELECT inbox_accept('KEY')",
	'inbox_process_batch' => "SELECT verdict = 'applied' FROM inbox_process_batch(ARRAY[message('KEY')], 'post')",
	'inbox_fail' => "SELECT verdict <> 'duplicate' FROM inbox_fail(message('KEY'), 'default', '22012', 'e')",
	'inbox_import' => "SELECT inbox_import('{KEY}', 'default') > 0",
	'a rolled-back savepoint' => "BEGIN; SAVEPOINT s; SELECT inbox_accept('KEY'); ROLLBACK TO s; COMMIT;",
	'a savepoint that wrote' =>
	  "BEGIN; SAVEPOINT s; CREATE TABLE t (); SELECT inbox_accept('KEY'); ROLLBACK TO s; COMMIT;",
	'a transaction with an xid and no WAL' =>
	  "BEGIN; SELECT pg_current_xact_id() IS NULL; SELECT inbox_accept('KEY'); COMMIT;",
	'a low synchronous_commit' => "SET synchronous_commit = off; SELECT inbox_accept('KEY')");
foreach my $how (sort keys %ask)
{
	my $key = "duplicate for $how";
	leave_unflushed($key);
	my $answer = $node->safe_psql('postgres', $ask{$how} =~ s/KEY/$key/r);
	like($answer, qr/^(?:f\n)?f$/, "$how: a duplicate");
	crash();
	is(exists_claim($key), '1', "$how: what made it a duplicate survives a crash");
}

# First applications, with a synchronous_commit that somebody lowered.
my %lower = (
	'the session' => "SET synchronous_commit = off; SELECT inbox_process('KEY', 'p', 'post')",
	'the transaction' =>
	  "BEGIN; SET LOCAL synchronous_commit = off; SELECT inbox_process('KEY', 'p', 'post'); COMMIT;",
	'later in the transaction' =>
	  "BEGIN; SELECT inbox_process('KEY', 'p', 'post'); SET LOCAL synchronous_commit = off; COMMIT;",
	'the handler' => "SELECT inbox_process('KEY', 'p', 'post_carelessly')");
foreach my $who (sort keys %lower)
{
	my $key = "lowered by $who";
	is($node->safe_psql('postgres', $lower{$who} =~ s/KEY/$key/r), 't', "$who: applied");
	crash();
	is(exists_claim($key), '1', "synchronous_commit lowered by $who: the claim survives a crash");
}
is($node->safe_psql('postgres', "SELECT count(*) FROM ledger WHERE key LIKE 'lowered by%'"),
	scalar(keys %lower), 'and so does what the handlers did');

# A backend killed in the middle of a handler: nothing of it is left, what was committed is.
$node->append_conf('postgresql.conf', 'restart_after_crash = on');
$node->restart;
my $session = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $session->query_safe('SELECT pg_backend_pid()');
$session->query_safe("BEGIN; SELECT inbox_process('killed', 'p', 'post');");
is($node->safe_psql('postgres', "SELECT inbox_process('committed', 'p', 'post')"), 't', 'another is applied');
kill 'KILL', $pid or die "could not kill $pid: $!\n";
$session->{run}->finish;
$node->poll_query_until('postgres', 'SELECT true') or die 'the server did not come back';
is(exists_claim('killed'), '0', 'the claim of a killed backend is gone');
is(exists_claim('committed'), '1', 'a committed one is not');
is($node->safe_psql('postgres', "SELECT inbox_process('killed', 'p', 'post')"), 't',
	'the message of the killed backend is applied when it comes again');
is($node->safe_psql('postgres', "SELECT count(*) FROM ledger WHERE key IN ('killed', 'committed')"), '2',
	'each took effect once');

# An unlogged table forgets every key in a crash: the check says so before.
$node->safe_psql('postgres', 'ALTER TABLE inbox_claim SET UNLOGGED');
is($node->safe_psql('postgres', "SELECT ok FROM inbox_check() WHERE name = 'logged'"), 'f',
	'inbox_check finds an unlogged table');
crash();
is(exists_claim('committed'), '0', 'which is empty after a crash');

$node->stop;
done_testing();
