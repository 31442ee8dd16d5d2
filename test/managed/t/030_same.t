# SPDX-License-Identifier: PostgreSQL
# What inbox-managed.sql makes is what the extension makes: functions, tables, types and rights by
# the catalog, and what differs is what docs/managed.md says.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('same');
$node->init(extra => [ '--encoding=UTF8', '--no-locale' ]);
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE owner LOGIN SUPERUSER; CREATE ROLE worker; '
      . 'CREATE DATABASE extension; CREATE DATABASE managed');
$node->safe_psql('extension', 'CREATE SCHEMA box; CREATE EXTENSION inbox SCHEMA box', extra_params => [ '-U', 'owner' ]);
system_or_bail('psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-v', 'schema=box', '-f',
    "$ENV{INBOX_ROOT}/sql/inbox-managed.sql", '-d', $node->connstr('managed') . ' user=owner');

# These say which of the two they belong to.
my $own_comment = "'{inbox_version,inbox_check_variant}'";
my %catalog = (
    functions => <<SQL,
SELECT p.oid::regprocedure, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid),
	p.provolatile, p.proparallel, p.proisstrict, p.proleakproof, p.prosecdef, p.prorows,
	p.proowner::regrole, CASE WHEN p.proname <> ALL ($own_comment) THEN obj_description(p.oid, 'pg_proc') END
FROM pg_proc p WHERE p.pronamespace = 'box'::regnamespace AND p.proname !~ '^inbox_managed_'
SQL
    relations => <<'SQL',
SELECT c.relname, c.relkind, c.relpersistence, c.reloptions, c.relowner::regrole, c.relacl,
	obj_description(c.oid, 'pg_class'), pg_get_indexdef(c.oid),
	CASE c.relkind WHEN 'v' THEN pg_get_viewdef(c.oid) END
FROM pg_class c WHERE c.relnamespace = 'box'::regnamespace AND c.relname !~ '^inbox_managed(_pkey)?$'
SQL
    columns => <<'SQL',
SELECT a.attrelid::regclass, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod),
	a.attcollation::regcollation, a.attnotnull, a.attidentity, a.attgenerated, a.attacl,
	pg_get_expr(d.adbin, d.adrelid), col_description(a.attrelid, a.attnum)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE c.relnamespace = 'box'::regnamespace AND a.attnum > 0 AND c.relname !~ '^inbox_managed(_pkey)?$'
SQL
    constraints => <<'SQL',
SELECT c.conrelid::regclass, c.conname, pg_get_constraintdef(c.oid) FROM pg_constraint c
WHERE c.connamespace = 'box'::regnamespace AND c.conname !~ '^inbox_managed_'
SQL
    types => <<'SQL',
SELECT t.typname, t.typtype, t.typowner::regrole, t.typacl, obj_description(t.oid, 'pg_type')
FROM pg_type t WHERE t.typnamespace = 'box'::regnamespace AND t.typname !~ '^_?inbox_managed$'
SQL
    triggers => <<'SQL');
SELECT t.tgrelid::regclass, pg_get_triggerdef(t.oid) FROM pg_trigger t
JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relnamespace = 'box'::regnamespace
SQL

foreach my $what (sort keys %catalog)
{
    my @list = map { join("\n", sort split(/\n/, $node->safe_psql($_,
        "SELECT row(r.*) FROM ($catalog{$what}) r", extra_params => [ '-U', 'owner' ]))) } qw(extension managed);
    is($list[1], $list[0], "the same $what");
    isnt($list[0], '', 'which are some') if $what ne 'triggers';
}

foreach my $what ('puller', 'operator', 'monitor')
{
    my $rights = "SELECT r FROM box.inbox_rights('$what') r WHERE r !~ 'inbox_managed'";
    my @list = map { join("\n", sort split(/\n/, $node->safe_psql($_, $rights))) } qw(extension managed);
    is($list[1], $list[0], "the same rights of a $what");
}

my ($table) = slurp_file("$ENV{INBOX_ROOT}/docs/managed.md") =~ /^(\| Not done here.*?)\n\n/ms;
my @documented = sort($table =~ /\| `([^`|]+)` \|$/mg);
my @checks = map { [ split(/\n/, $node->safe_psql($_, 'SELECT name FROM box.inbox_check()')) ] } qw(extension managed);
my %extension = map { $_ => 1 } @{ $checks[0] };
my @reported = sort((grep { !$extension{$_} } @{ $checks[1] }), 'min_synchronous_commit');
cmp_ok(scalar(@documented), '==', () = $table =~ /^\| [^-N]/mg, 'each difference has the name of a check');
is("@reported", "@documented", 'and each is reported by inbox_check()');
is("@{[ sort grep { my $name = $_; !grep { $_ eq $name } @{ $checks[1] } } @{ $checks[0] } ]}", '',
    'which reports all else as the extension does');
done_testing();
