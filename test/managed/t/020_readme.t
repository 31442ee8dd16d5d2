# SPDX-License-Identifier: PostgreSQL
# The managed path as docs/managed.md has it, word for word, by a role that is no superuser.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $page = slurp_file("$ENV{INBOX_ROOT}/docs/managed.md");
my ($installing) = $page =~ /^(## Installing.*?)(?=^## )/ms;
my ($install) = $installing =~ /^```sh\n(.*?)^```/ms;
my ($sql) = $installing =~ /^```sql\n(.*?)^```/ms;
my ($readme) = slurp_file("$ENV{INBOX_ROOT}/README.md") =~ /^### A handler\n.*?^```sql\n(.*?)^```/ms;
ok($install && $sql && $readme, 'the pages have the commands');

my $node = PostgreSQL::Test::Cluster->new('readme');
$node->init(extra => [ '--encoding=UTF8', '--no-locale' ]);
$node->append_conf('postgresql.conf', 'fsync = on');
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE me LOGIN; CREATE ROLE puller LOGIN; CREATE DATABASE mine OWNER me');
$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;
$ENV{PGDATABASE} = 'mine';
$ENV{PGUSER} = 'me';
chdir($ENV{INBOX_ROOT}) or die;
is(system($install), 0, 'the file is installed');
unlike($node->safe_psql('mine', $sql =~ s/;\s*SELECT \* FROM/; SELECT ok FROM/r, extra_params => [ '-U', 'me' ]),
    qr/^f$/m, 'and checked: nothing is wrong');
# Of the README's own handler everything but the extension.
$readme =~ s/^CREATE EXTENSION inbox;\n//m or die;
$node->safe_psql('mine', "$readme; GRANT EXECUTE ON FUNCTION apply_payment TO puller",
    extra_params => [ '-U', 'me' ]);
is($node->safe_psql('mine', "SELECT inbox.inbox_process('k', '{\"account\": 1, \"cents\": 5}', 'apply_payment'), "
      . "inbox.inbox_process('k', '{\"account\": 1, \"cents\": 5}', 'apply_payment')", extra_params => [ '-U', 'puller' ]),
    't|f', 'a payment is applied once');
is($node->safe_psql('mine', 'SELECT balance FROM account WHERE id = 1'), '5', 'to the account');
done_testing();
