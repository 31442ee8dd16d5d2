# SPDX-License-Identifier: PostgreSQL
# What a database has of inbox, object by object, each as a line that begins with its name: for the
# comparison of two that came to be in different ways. OIDs are no part of it.
package Inbox::Catalog;
use strict;
use warnings;

my %query = (
    functions => <<'SQL',
SELECT p.proname, p.oid::regprocedure, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid),
	p.prokind, p.provolatile, p.proparallel, p.proisstrict, p.proleakproof, p.prosecdef,
	p.prorows, p.proowner::regrole, obj_description(p.oid, 'pg_proc')
FROM pg_proc p WHERE p.pronamespace = :schema AND p.proname ~ '^inbox'
SQL
    relations => <<'SQL',
SELECT c.relname, c.relkind, c.relpersistence, c.reloptions, c.relowner::regrole, c.relrowsecurity,
	c.relreplident, obj_description(c.oid, 'pg_class'), pg_get_indexdef(c.oid),
	CASE c.relkind WHEN 'v' THEN pg_get_viewdef(c.oid) END
FROM pg_class c WHERE c.relnamespace = :schema AND c.relname ~ '^inbox'
SQL
    columns => <<'SQL',
SELECT c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attcollation::regcollation,
	a.attnotnull, a.attidentity, a.attgenerated, a.attstorage, a.attacl,
	pg_get_expr(d.adbin, d.adrelid), col_description(a.attrelid, a.attnum)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE c.relnamespace = :schema AND a.attnum > 0 AND c.relname ~ '^inbox'
SQL
    constraints => <<'SQL',
SELECT r.relname, c.conname, c.convalidated, pg_get_constraintdef(c.oid)
FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid
WHERE r.relnamespace = :schema AND r.relname ~ '^inbox'
SQL
    types => <<'SQL',
SELECT ltrim(t.typname, '_'), t.typname, t.typtype, t.typowner::regrole, t.typacl,
	obj_description(t.oid, 'pg_type')
FROM pg_type t WHERE t.typnamespace = :schema AND t.typname ~ '^_?inbox'
SQL
    triggers => <<'SQL',
SELECT c.relname, pg_get_triggerdef(t.oid) FROM pg_trigger t
JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relnamespace = :schema AND c.relname ~ '^inbox'
SQL
    # What every role but the owner may do: rights are granted in another order in each of two.
    rights => <<'SQL',
SELECT o.name, a.grantee::regrole, a.privilege_type, a.is_grantable
FROM (SELECT p.oid::regprocedure::text, p.proacl, acldefault('f', p.proowner), p.proowner
	FROM pg_proc p WHERE p.pronamespace = :schema AND p.proname ~ '^inbox'
	UNION ALL SELECT c.relname, c.relacl, acldefault('r', c.relowner), c.relowner
	FROM pg_class c WHERE c.relnamespace = :schema AND c.relname ~ '^inbox') o(name, acl, without, owner),
	aclexplode(coalesce(o.acl, o.without)) a WHERE a.grantee <> o.owner
SQL
    # What pg_dump does not have to write, because CREATE EXTENSION makes it.
    extension => <<'SQL');
SELECT o.name, o.detail FROM pg_extension e,
	LATERAL (
		SELECT 'member', i.type || ' ' || i.identity
		FROM pg_depend d, pg_identify_object(d.classid, d.objid, d.objsubid) i
		WHERE d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
		UNION ALL
		SELECT 'dumped', c.oid::regclass || ' ' || e.extcondition[array_position(e.extconfig, c.oid)]
		FROM pg_class c WHERE c.oid = ANY (e.extconfig)
		UNION ALL
		SELECT 'granted by the extension', i.identity || ' ' || p.initprivs::text
		FROM pg_init_privs p, pg_identify_object(p.classoid, p.objoid, p.objsubid) i
		WHERE i.schema = :schema::regnamespace::text AND i.identity ~ 'inbox'
		UNION ALL SELECT 'version', e.extversion
	) o(name, detail)
WHERE e.extname = 'inbox'
SQL

# What is in the functions is compared where both are of one variant.
my $bodies = 'SELECT p.proname, p.oid::regprocedure, l.lanname, p.procost, p.proconfig, p.prosrc, p.probin FROM pg_proc p '
  . "JOIN pg_language l ON l.oid = p.prolang WHERE p.pronamespace = :schema AND p.proname ~ '^inbox'";

sub lines
{
    my ($node, $database, $schema, $query) = @_;
    $query =~ s/:schema/'$schema'::regnamespace/g;
    # A row in a line, whatever is in it.
    return [ sort split(/\n/, $node->safe_psql($database, "SELECT replace(replace(concat_ws('|', "
          . "VARIADIC ARRAY(SELECT coalesce(j.value, '') FROM json_each_text(to_json(r)) WITH ORDINALITY j ORDER BY j.ordinality)), "
          . "E'\\n', '\\n'), E'\\t', ' ') FROM ($query) r")) ];
}

# What there is to compare, and for each the lines.
sub read
{
    my ($node, $database, $schema) = @_;
    return map { $_ => lines($node, $database, $schema, $query{$_}) } keys %query;
}

sub bodies
{
    my ($node, $database, $schema) = @_;
    return lines($node, $database, $schema, $bodies);
}

1;
