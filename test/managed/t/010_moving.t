# SPDX-License-Identifier: PostgreSQL
# From managed to the extension and back on the same tables, and running the file again: no key
# and no right is lost.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# initdb names the superuser after whoever runs it.
my $superuser = getpwuid($<);
my ($moving) = slurp_file("$ENV{INBOX_ROOT}/docs/managed.md") =~ /^(## From managed .*?)(?=^## )/ms;
my ($to_extension, $back) = $moving =~ /^```sh\n(.*?)^```/gms;
my $file = "$ENV{INBOX_ROOT}/sql/inbox-managed.sql";
my $node = PostgreSQL::Test::Cluster->new('moving');
$node->init(extra => [ '--encoding=UTF8', '--no-locale' ]);
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE installer LOGIN CREATEROLE; CREATE ROLE worker LOGIN; CREATE DATABASE box OWNER installer');

sub installation
{
    my ($role, @more) = @_;
    return [ 'psql', '-X', '-v', 'ON_ERROR_STOP=1', '-v', 'schema=inbox', @more, '-f', $file,
        '-d', $node->connstr('box') . " user=$role" ];
}

sub install { return run_log(installation(@_)) }

# A block of the page, word for word, by a superuser.
sub run_block
{
    my ($block) = @_;
    local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGDATABASE => 'box', PGUSER => $superuser);
    return run_log([ 'sh', '-euc', "cd $ENV{INBOX_ROOT}\n$block" ]);
}

sub as_role
{
    my ($role, $sql) = @_;
    return $node->safe_psql('box', $sql, extra_params => [ '-U', $role ]);
}

sub worker { return as_role('worker', $_[0]) }

my $claims = "SELECT count(*), md5(string_agg(c::text, ',' ORDER BY key)) FROM inbox.inbox_claim c";

ok(install('installer'), 'the owner of a database, who is no superuser, installs it');
as_role('installer', <<'SQL');
CREATE TABLE public.ledger (key text);
CREATE FUNCTION public.post(k text, p text) RETURNS jsonb LANGUAGE sql SECURITY DEFINER
	SET search_path = public AS $$ INSERT INTO ledger VALUES (k); SELECT to_jsonb(p) $$;
GRANT EXECUTE ON FUNCTION public.post TO worker;
SELECT inbox.inbox_grant('worker', 'puller');
SQL
worker("SELECT inbox.inbox_process('k' || i, 'p', 'public.post') FROM generate_series(1, 50) i");
as_role('installer', "SELECT inbox.inbox_fail(('bad', 'p', NULL, NULL, 'm', NULL, NULL, NULL), 'default', '22012', 'e')");

my $before = $node->safe_psql('box', $claims);
ok(install('installer'), 'and again');
is($node->safe_psql('box', $claims), $before, 'with every key');
is(worker("SELECT inbox.inbox_process('k1', 'p', 'public.post'), inbox.inbox_process('n1', 'p', 'public.post')"),
    'f|t', 'and every right');

as_role('installer', q{CREATE ROLE app LOGIN; SELECT inbox.inbox_grant('app', 'puller')});
as_role('installer', 'REVOKE EXECUTE ON FUNCTION inbox.inbox_process_batch FROM app');
ok(install('installer'), 'once more');
is(as_role('app', "SELECT inbox.inbox_accept('of app')"), 't', 'who was granted a part of it may still do that');

as_role('installer', 'SELECT inbox.inbox_protect()');
my (undef, undef, $refused) = $node->psql('box', 'DROP TABLE inbox.inbox_claim', extra_params => [ '-U', 'installer' ]);
like($refused, qr/view inbox\.inbox_protection depends on table inbox\.inbox_claim/, 'the keys are protected');

# What has a name like these and is somebody else's stays his, as it is.
$node->safe_psql('box', <<'SQL');
CREATE TABLE inbox.inbox_orders (id integer GENERATED ALWAYS AS IDENTITY);
CREATE FUNCTION inbox.inbox_apply(payload jsonb) RETURNS void LANGUAGE sql AS '';
CREATE VIEW public.strangers AS SELECT c.relowner::regrole::text AS owner, p.proowner::regrole::text AS writer,
	p.proacl, (SELECT count(*) FROM pg_depend d WHERE d.deptype = 'e' AND d.objid IN (c.oid, p.oid))
FROM pg_class c, pg_proc p WHERE c.relname = 'inbox_orders' AND p.proname = 'inbox_apply';
SQL
my $strangers = $node->safe_psql('box', 'TABLE strangers');
ok(install('installer'), 'it is run beside what has a name like these');
is($node->safe_psql('box', 'TABLE strangers'), $strangers, 'which stays as it is');

$before = $node->safe_psql('box', $claims);
ok(run_block($to_extension), 'as docs/managed.md has it');
is($node->safe_psql('box', 'TABLE strangers'), $strangers, 'what only has a name like these is not part of it');
is($node->safe_psql('box', "SELECT l.lanname FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang WHERE p.proname = 'inbox_process_batch'"),
    'c', 'managed became the extension');
(undef, undef, $refused) = $node->psql('box', 'DROP EXTENSION inbox');
like($refused, qr/view inbox\.inbox_protection depends on table inbox\.inbox_claim/, 'which is protected as well');
is($node->safe_psql('box', $claims), $before, 'with every key');
is(worker("SELECT inbox.inbox_process('k1', 'p', 'public.post'), inbox.inbox_process('n2', 'p', 'public.post')"),
    'f|t', 'and every right');
like((run_command([ 'pg_dump', '-d', $node->connstr('box') ]))[0],
    qr/^GRANT (?:ALL|EXECUTE) ON FUNCTION inbox\.inbox_process_batch\(.*\) TO worker;$/m, 'which a dump has, too');
is($node->safe_psql('box', "SELECT attempts FROM inbox.inbox_failure WHERE key = 'bad'"), '1', 'and the failures');
is($node->safe_psql('box', "SELECT string_agg(name, ',') FROM inbox.inbox_check() WHERE NOT ok AND name <> 'fsync'"),
    '', 'nothing is wrong with it');
is($node->safe_psql('box', "SELECT count(*) FROM pg_proc WHERE proname LIKE 'inbox\\_managed%'"), '0',
    'nothing of the managed one is left');

my ($refusal) = (run_command(installation($superuser)))[1];
like($refusal, qr/ERROR: .*extension/, 'beside the extension it is refused');
$before = $node->safe_psql('box', $claims);
ok(run_block($back), 'unless it is to take over, as docs/managed.md has it');
is($node->safe_psql('box', 'TABLE strangers'), $strangers, 'nor after it');
$node->safe_psql('box', 'DROP VIEW strangers; DROP TABLE inbox.inbox_orders; DROP FUNCTION inbox.inbox_apply');
is($node->safe_psql('box', "SELECT count(*) FROM pg_extension WHERE extname = 'inbox'"), '0', 'the extension is gone');
is($node->safe_psql('box', "SELECT count(*) FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang WHERE l.lanname = 'c' AND p.proname LIKE 'inbox%'"),
    '0', 'and its library with it');
is($node->safe_psql('box', $claims), $before, 'every key is there');
is(worker("SELECT inbox.inbox_process('k1', 'p', 'public.post'), inbox.inbox_process('n3', 'p', 'public.post')"),
    'f|t', 'and every right');
is(worker("SELECT inbox.inbox_result('n2')"), '"p"', 'and the results');
is($node->safe_psql('box', "SELECT string_agg(name, ',') FROM inbox.inbox_check() WHERE NOT ok AND name <> 'fsync'"),
    '', 'nothing is wrong with it');
is($node->safe_psql('box', 'SELECT count(*) FROM ledger'), '53', 'each message was applied once');
is($node->safe_psql('box', "SELECT string_agg(DISTINCT o::regrole::text, ',') FROM (SELECT proowner FROM pg_proc WHERE proname LIKE 'inbox\\_%' "
      . "UNION ALL SELECT relowner FROM pg_class WHERE relname LIKE 'inbox\\_%' AND relkind IN ('r', 'v', 'S')) x(o)"),
    'installer', 'all of it belongs to who installed it first');
ok(install('installer'), 'and can update it');

# The file run without the schema's name would make a second one.
my $forgotten = installation('installer');
$forgotten->[5] = 'schema=other';
like((run_command($forgotten))[1], qr/ERROR: .*in the schema "inbox"/, 'a second one is refused');

# From the release before, by a superuser, who makes tables and procedures anew.
$node->safe_psql('postgres', 'CREATE DATABASE old OWNER installer');
my ($frozen) = glob("$ENV{INBOX_ROOT}/test/upgrade/inbox-managed-*.sql");
foreach my $step ([ 'installer', $frozen ], [ $superuser, $file ])
{
    system_or_bail('psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-v', 'schema=inbox', '-f', $step->[1],
        '-d', $node->connstr('old') . " user=$step->[0]");
}
is($node->safe_psql('old', "SELECT string_agg(DISTINCT o::regrole::text, ',') FROM (SELECT proowner FROM pg_proc WHERE proname LIKE 'inbox\\_%' "
      . "UNION ALL SELECT relowner FROM pg_class WHERE relname LIKE 'inbox\\_%') x(o)"),
    'installer', 'updated by a superuser, all of it belongs to who installed it');

# A step to a newer version is made once.
my $upgrades = PostgreSQL::Test::Utils::tempdir();
append_to_file("$upgrades/0.1.1--0.1.2.sql", 'CREATE TABLE @extschema@.stepped (n int);');
append_to_file("$upgrades/0.1.2--0.2.0.sql", 'ALTER TABLE @extschema@.stepped ADD more int;');
system("UPGRADES=$upgrades $ENV{INBOX_ROOT}/sql/build-managed 0.2.0 >$upgrades/inbox-managed.sql") == 0 or die;
$file = "$upgrades/inbox-managed.sql";
ok(install($superuser), 'a newer version') && ok(install($superuser), 'twice');
is($node->safe_psql('box', "SELECT string_agg(version, ' ' ORDER BY installed_at) FROM inbox.inbox_managed"),
    '0.1.1 0.1.2 0.2.0', 'made its steps');
is($node->safe_psql('box', 'SELECT count(more), inbox.inbox_version() FROM inbox.stepped'), '0|0.2.0', 'in order');
is($node->safe_psql('box', $claims) =~ /^(\d+)/ ? $1 : '', '54', 'with every key');
done_testing();
