# SPDX-License-Identifier: PostgreSQL
#
# Many sessions with the same messages at once: each message takes effect once, nobody gets an
# error, and nobody waits in a circle.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('stress');
$node->init(extra => [ '--encoding=UTF8', '--no-locale' ]);
$node->append_conf('postgresql.conf', "max_connections = 50\nautovacuum = off");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION inbox;
-- Without a constraint: it must be able to show what was applied twice.
CREATE TABLE ledger (key text);
CREATE FUNCTION post(k text, p text) RETURNS void LANGUAGE sql AS $$ INSERT INTO ledger VALUES (k) $$;
CREATE FUNCTION messages(first bigint, n int) RETURNS inbox_message[] LANGUAGE sql AS
	$$ SELECT array_agg(('k' || first + i, 'p', NULL, NULL, 'm', NULL, NULL, NULL)::inbox_message ORDER BY random())
	   FROM generate_series(1, n) i $$;
CREATE SEQUENCE ticket;
SQL

# Every session takes batches that overlap with those of the others, in an order of its own.
$node->pgbench('--no-vacuum --client=8 --jobs=2 --transactions=250', 0,
	[qr{actually processed: 2000/2000}, qr{failed transactions: 0}], [qr{^$}], 'batches that overlap',
	{ '001_batch' => q{
		SELECT nextval('ticket') / 8 * 16 AS first \gset
		SELECT count(*) FROM inbox_process_batch(messages(:first, 40), 'post', 's');
	}});
is($node->safe_psql('postgres', 'SELECT count(*) - count(DISTINCT key) FROM ledger'), '0', 'none is applied twice');
is($node->safe_psql('postgres', 'SELECT count(*) = (SELECT count(*) FROM inbox_claim) FROM ledger'), 't',
	'every claim has its effect');
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM ledger'), '>=', 250 * 16, 'and all were applied');

# Nearly all messages are new, so that the sessions stop looking before they claim; now and then one
# takes what another is just taking.
$node->safe_psql('postgres', 'TRUNCATE ledger, inbox_claim');
$node->pgbench('--no-vacuum --client=8 --jobs=2 --transactions=400', 0,
	[qr{actually processed: 3200/3200}, qr{failed transactions: 0}], [qr{^$}], 'batches that seldom overlap',
	{ '002_new@19' => q{
		SELECT nextval('ticket') * 16 AS first \gset
		SELECT count(*) FROM inbox_process_batch(messages(:first, 16), 'post', 's');
	}, '003_copy@1' => q{
		SELECT last_value * 16 AS first FROM ticket \gset
		SELECT count(*) FROM inbox_process_batch(messages(:first - 8, 24), 'post', 's');
	}});
is($node->safe_psql('postgres', 'SELECT count(*) - count(DISTINCT key) FROM ledger'), '0', 'none is applied twice');
is($node->safe_psql('postgres', 'SELECT count(*) = (SELECT count(*) FROM inbox_claim) FROM ledger'), 't',
	'every claim has its effect');

# Failures, discards and imports of the same keys in between. An import may meet a batch in the very
# moment it claims: that is a serialization failure, for the client to repeat.
$node->safe_psql('postgres', "TRUNCATE ledger, inbox_claim, inbox_failure; SELECT inbox_configure('s', max_attempts => 1)");
$node->pgbench('--no-vacuum --client=8 --jobs=2 --transactions=200 --max-tries=20', 0,
	[qr{actually processed: 1600/1600}, qr{failed transactions: 0}], [qr{^$}], 'with everything else',
	{ '004_batch@6' => q{
		SELECT nextval('ticket') / 8 * 4 AS first \gset
		SELECT count(*) FROM inbox_process_batch(messages(:first, 12), 'post', 's');
	}, '005_single@2' => q{
		SELECT last_value / 8 * 4 AS first FROM ticket \gset
		SELECT inbox_process('k' || :first + 5, 'p', 'post', 's');
	}, '006_fail@4' => q{
		SELECT last_value / 8 * 4 AS first FROM ticket \gset
		\set i random(1, 16)
		\set state random(0, 1)
		SELECT verdict FROM inbox_fail(('k' || :first + :i, 'p', NULL, NULL, 'm', NULL, NULL, NULL), 's', CASE :state WHEN 0 THEN '22012' ELSE '57014' END, 'e', halt_after => 100000);
	}, '007_discard@1' => q{
		SELECT inbox_discard(id, 'in between') FROM inbox_failure WHERE status = 'dead' ORDER BY id DESC LIMIT 1;
	}, '008_import@1' => q{
		SELECT last_value / 8 * 4 AS first FROM ticket \gset
		SELECT inbox_import(ARRAY['k' || :first + 20], 's');
	}});
is($node->safe_psql('postgres', 'SELECT count(*) - count(DISTINCT key) FROM ledger'), '0', 'none is applied twice');
is($node->safe_psql('postgres', <<'SQL'), '0', 'no message is both applied and dead, discarded or to be retried');
SELECT count(*) FROM ledger l JOIN inbox_failure f ON f.key = l.key
SQL
is($node->safe_psql('postgres', <<'SQL'), '0', 'every effect, dead and discarded message has its claim');
SELECT count(*) FROM (SELECT key FROM ledger UNION SELECT key FROM inbox_failure WHERE status IN ('dead', 'discarded')) k
WHERE key NOT IN (SELECT key FROM inbox_claim)
SQL
is($node->safe_psql('postgres', "SELECT count(*) FROM inbox_failure f JOIN inbox_claim c USING (key) WHERE f.status = 'retrying'"),
	'0', 'and none that is to be retried has one');
cmp_ok($node->safe_psql('postgres', "SELECT count(*) FROM inbox_failure"), '>=', 20, 'there were failures');

$node->stop;
done_testing();
