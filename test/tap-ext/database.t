# SPDX-License-Identifier: PostgreSQL
#
# Databases of other encodings, collations and settings.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('database');
$node->init;
$node->start;

foreach my $encoding ('LATIN1', 'SQL_ASCII')
{
	$node->safe_psql('postgres',
		"CREATE DATABASE \"$encoding\" TEMPLATE template0 ENCODING '$encoding' LOCALE 'C'");
	my ($ret, $out, $err) = $node->psql($encoding, 'CREATE EXTENSION inbox');
	isnt($ret, 0, "$encoding: refused");
	like($err, qr/inbox needs a database with the encoding UTF8, this one has $encoding/, "$encoding: and said why");
	like($err, qr/HINT:  CREATE DATABASE/, "$encoding: and what to do");
}

# A collation that folds case, and one that orders otherwise than bytes: keys do not care.
$node->safe_psql('postgres', "CREATE DATABASE german TEMPLATE template0 ENCODING 'UTF8' "
	  . "LOCALE_PROVIDER icu ICU_LOCALE 'de-u-ks-level2' LOCALE 'C'");
$node->safe_psql('german', <<'SQL');
CREATE EXTENSION inbox;
CREATE FUNCTION noop(p text) RETURNS void LANGUAGE sql AS $$ $$;
SQL
is($node->safe_psql('german', <<'SQL'), 't t t t f', 'keys are compared as bytes there too');
SELECT string_agg(v, ' ' ORDER BY n) FROM (SELECT n, inbox_accept(k)::text::char(1) AS v
FROM unnest(ARRAY['Straße', 'strasse', 'Strasse', 'STRASSE', 'Straße']) WITH ORDINALITY AS u(k, n)) a
SQL
is($node->safe_psql('german', <<'SQL'), 'applied applied applied duplicate', 'and in a batch');
SELECT string_agg(verdict, ' ' ORDER BY ordinal) FROM inbox_process_batch((SELECT array_agg(
	(k, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::inbox_message ORDER BY n)
	FROM unnest(ARRAY['ä', 'Z', 'a', 'strasse']) WITH ORDINALITY AS u(k, n)), 'noop')
SQL
is($node->safe_psql('german', "SELECT count(*) FROM inbox_check() WHERE NOT ok AND name <> 'fsync'"), '0',
	'the check has nothing to say');

# What the client takes the bytes for makes no other key of the same text.
$ENV{PGCLIENTENCODING} = 'LATIN1';
is($node->safe_psql('german', "SELECT inbox_accept(E'caf\xe9')"), 't', 'a key from a LATIN1 client');
$ENV{PGCLIENTENCODING} = 'UTF8';
is($node->safe_psql('german', "SELECT inbox_accept(E'caf\xc3\xa9')"), 'f', 'is the same from a UTF8 one');
delete $ENV{PGCLIENTENCODING};

# The settings that a server must have.
foreach my $setting ('fsync', 'full_page_writes')
{
	foreach my $value ('on', 'off')
	{
		$node->append_conf('postgresql.conf', "$setting = $value");
		$node->reload;
		$node->poll_query_until('german', "SHOW $setting", $value) or die;
		is($node->safe_psql('german', "SELECT ok FROM inbox_check() WHERE name = '$setting'"),
			$value eq 'on' ? 't' : 'f', "inbox_check knows that $setting is $value");
	}
}

# A setting made before the library is loaded is not let through if its author may not make it.
$node->safe_psql('german', 'CREATE ROLE app LOGIN; GRANT EXECUTE ON FUNCTION inbox_version TO app');
my ($ret, $out, $err) = $node->psql('german',
	"SET inbox.min_synchronous_commit = local; SELECT inbox_version() IS NOT NULL; SHOW inbox.min_synchronous_commit",
	extra_params => [ '-U', 'app' ]);
is($out, "t\non", 'an ordinary role does not lower the floor by being early');

$node->stop;
done_testing();
