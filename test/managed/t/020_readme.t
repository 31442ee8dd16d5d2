# SPDX-License-Identifier: PostgreSQL
# The managed path as README.md has it, and then as docs/managed.md has it, word for word, by a role
# that is no superuser.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# The blocks of a section of a page, in their order.
sub blocks
{
    my ($page, $section, $language) = @_;
    my ($text) = slurp_file("$ENV{INBOX_ROOT}/$page") =~ /^\Q$section\E\n(.*?)(?=^##)/ms;
    my @blocks = ($text // '') =~ /^```$language\n(.*?)^```/gms;
    ok(scalar(@blocks), "$page, $section, has commands");
    return @blocks;
}

my $node = PostgreSQL::Test::Cluster->new('readme');
$node->init(extra => [ '--encoding=UTF8', '--no-locale' ]);
$node->append_conf('postgresql.conf', 'fsync = on');
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE me LOGIN CREATEROLE; CREATE DATABASE mine OWNER me; CREATE DATABASE another OWNER me');
$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;
$ENV{PGUSER} = 'me';
chdir($ENV{INBOX_ROOT}) or die;

sub run_sql
{
    my ($user, $sql) = @_;
    return $node->safe_psql($ENV{PGDATABASE}, $sql, extra_params => [ '-U', $user ]);
}

$ENV{PGDATABASE} = 'mine';
my ($install) = blocks('README.md', '### Without an extension', 'sh');
# The makefile's own flags are not the reader's.
delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL)};
is(system('sh', '-euc', $install), 0, 'README.md: the file is built and installed');
my ($handler, $trial, $grant) = blocks('README.md', '### A handler', 'sql');
ok($handler =~ s/^CREATE EXTENSION inbox;.*\n//, 'of its handler everything but the extension');
run_sql('me', $handler);
is(run_sql('me', $trial), "t\nf\n1250", 'a payment is applied once');
unlike(run_sql('me', $grant =~ s/SELECT \* FROM/SELECT ok FROM/r), qr/^f$/m, 'and checked: nothing is wrong');
is(run_sql('puller', $trial =~ s/payment-1/payment-2/gr =~ s/^SELECT balance.*//mr), "t\nf", 'the puller may call the handler');
is(run_sql('me', 'SELECT balance FROM account WHERE id = 7'), '2500', 'which does its work');
my (undef, undef, $error) = $node->psql('mine', 'SELECT balance FROM account', extra_params => [ '-U', 'puller' ]);
like($error, qr/permission denied for table account/, 'and touch no table');

$ENV{PGDATABASE} = 'another';
($install) = blocks('docs/managed.md', '## Installing and updating', 'sh');
is(system('sh', '-euc', $install), 0, 'docs/managed.md: the file is installed');
my ($sql) = blocks('docs/managed.md', '## Installing and updating', 'sql');
unlike(run_sql('me', $sql =~ s/SELECT \* FROM/SELECT ok FROM/r), qr/^f$/m, 'and checked: nothing is wrong');
done_testing();
