# SPDX-License-Identifier: PostgreSQL
# What inbox-managed.sql makes is what the extension makes: functions, tables, types and rights by
# the catalog, and what differs is what docs/managed.md says.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Inbox::Catalog;

my $node = PostgreSQL::Test::Cluster->new('same');
$node->init(extra => [ '--encoding=UTF8', '--no-locale' ]);
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE owner LOGIN SUPERUSER; CREATE ROLE worker; '
      . 'CREATE DATABASE extension; CREATE DATABASE managed');
$node->safe_psql('extension', 'CREATE SCHEMA box; CREATE EXTENSION inbox SCHEMA box', extra_params => [ '-U', 'owner' ]);
system_or_bail('psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-v', 'schema=box', '-f',
    "$ENV{INBOX_ROOT}/sql/inbox-managed.sql", '-d', $node->connstr('managed') . ' user=owner');

my %extension_has = Inbox::Catalog::read($node, 'extension', 'box');
my %managed_has = Inbox::Catalog::read($node, 'managed', 'box');
# These say which of the two they belong to.
my $own = qr/^(?:inbox_version|inbox_check_variant|inbox_managed|inbox_outside_script)/;
foreach my $what (grep { !/^(?:extension|rights)$/ } sort keys %extension_has)
{
    my @list = map { join("\n", grep { !/$own/ } @{ $_->{$what} }) } \(%extension_has, %managed_has);
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

# A handler is called by its name, which has to mean it alone.
$node->safe_psql('managed', 'CREATE FUNCTION post(p jsonb) RETURNS void LANGUAGE sql AS $$$$; '
      . 'CREATE FUNCTION post(p jsonb, how int DEFAULT 1) RETURNS void LANGUAGE sql AS $$$$');
like(($node->psql('managed', q{SELECT box.inbox_handler('public.post(jsonb)')}))[2],
    qr/cannot be a handler.*same name/s, 'a handler that a call could not name is refused');
done_testing();
