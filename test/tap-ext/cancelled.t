# SPDX-License-Identifier: PostgreSQL
# A call that is cancelled anywhere, also while it writes its claims in a subtransaction of its own,
# is undone as a whole by whoever catches the error, with what he did before it.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('cancelled');
$node->init(extra => [ '--encoding=UTF8', '--no-locale' ]);
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION inbox;
CREATE FUNCTION noop(p bytea) RETURNS void LANGUAGE sql AS '';
CREATE TABLE written_before (n int);
CREATE TABLE batch AS SELECT array_agg((k || i, 'p', NULL, NULL, NULL, NULL, NULL, NULL)::inbox_message) AS messages, k
	FROM generate_series(1, 15000) i, unnest('{warm,cold}'::text[]) k GROUP BY k;
-- What ends in time is undone as well.
CREATE PROCEDURE catch() LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO written_before VALUES (1);
	PERFORM count(*) FROM batch, inbox_process_batch(batch.messages, 'noop') WHERE k = 'cold';
	RAISE division_by_zero;
EXCEPTION
	WHEN query_canceled THEN RAISE NOTICE 'cancelled';
	WHEN division_by_zero THEN RAISE NOTICE 'in time';
END $$;
SQL

# A backend that has met no duplicate in some calls writes before it looks.
my $warm = join '', map { my $from = $_ * 100;
    "SELECT count(*) FROM batch, inbox_process_batch(messages[$from:$from + 50], 'noop') WHERE k = 'warm';\n" } 1 .. 12;
my $attempts = join '', map { "SET statement_timeout = $_; CALL catch(); RESET statement_timeout;\n" }
  1 .. 150;
# A timeout may be over before catch() has begun: that error is the session's.
my ($ok, $out, $err) = $node->psql('postgres', "$warm$attempts", on_error_stop => 0);
is($ok, 0, 'the session lives on') or diag($err);
unlike($err, qr/ERROR: (?! +canceling statement due to statement timeout)/, 'nothing else went wrong');
my $cancelled = () = $err =~ /NOTICE:  cancelled/g;
cmp_ok($cancelled, '>', 20, "it was cancelled at $cancelled places");
is($node->safe_psql('postgres', 'SELECT count(*) FROM written_before'), 0,
    'what was done before the call is undone with it');
is($node->safe_psql('postgres', "SELECT count(*) FROM inbox_claim WHERE key LIKE 'cold%'"), 0,
    'and so are the claims');
done_testing;
