# SPDX-License-Identifier: PostgreSQL
#
# A dump carries the keys: what is delivered again to the restored database is a duplicate.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('dump');
$node->init(extra => [ '--encoding=UTF8', '--no-locale' ]);
$node->start;
my $dir = $node->basedir;

foreach my $schema ('public', 'Box of mine')
{
	my ($from, $to) = $schema eq 'public' ? ('plain', 'plain_restored') : ('moved', 'moved_restored');
	my $set_path = "SET search_path = \"$schema\", public;";
	$node->safe_psql('postgres', "CREATE DATABASE $_") foreach ($from, $to);
	$node->safe_psql($from, <<SQL);
CREATE SCHEMA IF NOT EXISTS "$schema";
CREATE EXTENSION inbox SCHEMA "$schema";
$set_path
CREATE TABLE public.ledger (key text);
CREATE FUNCTION public.post(k text, p text) RETURNS jsonb LANGUAGE sql AS
	\$\$ INSERT INTO public.ledger VALUES (k); SELECT '{"posted": true}'::jsonb \$\$;
CREATE FUNCTION public.take(m inbox_message) RETURNS void LANGUAGE sql AS
	\$\$ INSERT INTO public.ledger VALUES (m.key) \$\$;
SELECT inbox_process('k' || i, 'p', 'public.post', 'source ' || i % 3) FROM generate_series(1, 100) i;
SELECT inbox_serve('source 1', 'public.post', 'a subscription');
SELECT inbox_serve('source 1', 'public.post', 'another subscription', take_over => true);
SELECT inbox_fail(('failed', 'p', NULL, NULL, 'm', NULL, NULL, NULL), 'source 1', '22012', 'error');
SELECT inbox_fail((NULL, 'p', NULL, NULL, 'm', NULL, NULL, NULL), 'source 1', NULL, 'error', reason => 'no_key');
SQL
	command_ok([ 'pg_dump', '-Fc', '-f', "$dir/$from.dump", $node->connstr($from) ], "$schema: dumped");
	command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr($to), "$dir/$from.dump" ],
		"$schema: restored");

	foreach my $table ('inbox_source', 'inbox_claim', 'inbox_claim_result', 'inbox_failure',
		'inbox_audit')
	{
		my $all = "SELECT t::text FROM \"$schema\".$table t ORDER BY 1";
		is($node->safe_psql($to, $all), $node->safe_psql($from, $all), "$schema: $table is the same");
	}
	is($node->safe_psql($to, "$set_path SELECT inbox_process('k' || i, 'p', 'public.post', 'source ' || i % 3), count(*)
		FROM generate_series(1, 100) i GROUP BY 1"), 'f|100', "$schema: every message is a duplicate");
	is($node->safe_psql($to, 'SELECT count(*) FROM ledger'), '100', "$schema: nothing was applied again");

	# The sequences went along too: what is new does not collide with what is old.
	is($node->safe_psql($to, "$set_path SELECT inbox_accept('k1', NULL, 'a new source')"), 't', "$schema: a new source");
	is($node->safe_psql($to, "$set_path SELECT verdict FROM inbox_fail(('new', 'p', NULL, NULL, 'm2', NULL, NULL, NULL),
		'source 1', '22012', 'error')"), 'retrying', "$schema: a new failure");
	is($node->safe_psql($to, "$set_path SELECT count(inbox_import('{imported}', 'source 2')); SELECT count(*) FROM inbox_audit"),
		"1\n2", "$schema: who did what goes on");
	$node->safe_psql($to, "$set_path UPDATE inbox_failure SET retry_at = last_failed_at");
	is($node->safe_psql($to, "$set_path SELECT verdict, attempts FROM inbox_fail(('failed', 'p', NULL, NULL, 'm', NULL, NULL,
		NULL), 'source 1', '22012', 'error')"), 'retrying|2', "$schema: an old failure goes on");
	is($node->safe_psql($to, "$set_path SELECT count(*) FROM inbox_check() WHERE NOT ok AND name <> 'fsync'"), '0',
		"$schema: the check has nothing to say");
}

$node->stop;
done_testing();
