# SPDX-License-Identifier: PostgreSQL
#
# With a synchronous standby, no COMMIT that confirms a verdict returns before the standby has
# what the verdict rests on: not after a cancelled wait, not with a lowered synchronous_commit.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1, extra => [ '--encoding=UTF8', '--no-locale' ]);
$primary->start;
$primary->safe_psql('postgres', <<'SQL');
CREATE EXTENSION inbox;
CREATE FUNCTION noop(p text) RETURNS void LANGUAGE sql AS $$ $$;
CREATE FUNCTION careless(p text) RETURNS void LANGUAGE plpgsql AS
	$$ BEGIN SET LOCAL synchronous_commit = local; END $$;
SELECT inbox_source_ensure('default');
SQL
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby);
$primary->append_conf('postgresql.conf', "synchronous_standby_names = '*'");
$primary->reload;
$primary->poll_query_until('postgres', 'SHOW synchronous_standby_names', '*');
$standby->stop;

# Starts a statement that must not return, and waits until it waits for the standby.
sub start_waiting
{
	my ($name, $sql) = @_;
	my $session = $primary->background_psql('postgres', on_error_stop => 0);
	$session->query_safe("SET application_name = '$name'");
	$session->query_until(qr/started/, "\\echo started\n$sql\n\\echo finished\n");
	ok($primary->poll_query_until('postgres',
			"SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE application_name = '$name'"),
		"$name: waits for the standby");
	return $session;
}

my $first = start_waiting('first', "SELECT inbox_process('k', 'p', 'noop');");
$primary->safe_psql('postgres',
	"SET synchronous_commit = local; SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'first'");
$first->query_until(qr/finished/, "\n");
like($first->{stderr}, qr/WARNING:  canceling wait for synchronous replication/, 'the wait is cancelled');
is($primary->safe_psql('postgres', "SELECT count(*) FROM inbox_claim WHERE key = 'k'"), '1',
	'the claim is visible on the primary, and the standby has not got it');

my %waiting = (
	'duplicate' => start_waiting('duplicate', "SELECT inbox_process('k', 'p', 'noop');"),
	'duplicate with local commit' =>
	  start_waiting('duplicate with local commit', "SET synchronous_commit = local; SELECT inbox_accept('k');"),
	'local commit' => start_waiting('local commit', "SET synchronous_commit = local; SELECT inbox_accept('k2');"),
	'careless handler' => start_waiting('careless handler', "SELECT inbox_process('k3', 'p', 'careless');"));

# The superuser may decide otherwise.
$primary->append_conf('postgresql.conf', "inbox.min_synchronous_commit = local");
$primary->reload;
is($primary->safe_psql('postgres', "SET synchronous_commit = local; SELECT inbox_accept('k4')"), 't',
	'a lower floor lets a local commit return');

$standby->start;
foreach my $name (sort keys %waiting)
{
	$waiting{$name}->query_until(qr/finished/, "\n");
	unlike($waiting{$name}->{stderr}, qr/WARNING/, "$name: returns once the standby has it");
}
$primary->stop('immediate');
$standby->promote;
is($standby->safe_psql('postgres', "SELECT string_agg(key, ' ' ORDER BY key) FROM inbox_claim WHERE key <> 'k4'"),
	'k k2 k3', 'every confirmed verdict is there after a failover');
is($standby->safe_psql('postgres', "SELECT inbox_process('k', 'p', 'noop')"), 'f', 'and the message a duplicate');

# On a standby itself nothing is promised.
my $second = PostgreSQL::Test::Cluster->new('second');
$standby->backup('base2');
$second->init_from_backup($standby, 'base2', has_streaming => 1);
$second->start;
my ($ret, $out, $err) = $second->psql('postgres', "SELECT inbox_accept('k')");
like($err, qr/cannot execute inbox_accept\(\)/, 'a standby gives no verdict');
is($second->safe_psql('postgres', "SELECT ok FROM inbox_check() WHERE name = 'primary'"), 'f',
	'inbox_check says that this is a standby');

$_->quit foreach values %waiting;
$first->quit;
$second->stop;
$standby->stop;
done_testing();
