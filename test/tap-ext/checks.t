# SPDX-License-Identifier: PostgreSQL
# inbox_check() on a server whose settings break the promise, in both variants: each row that is
# about a setting says no, and what to do.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('checks');
$node->init(extra => [ '--encoding=UTF8', '--no-locale' ]);
$node->append_conf('postgresql.conf', "fsync = off\nfull_page_writes = off\nautovacuum = off\ntrack_counts = off\n"
      . "zero_damaged_pages = on\nignore_checksum_failure = on\nsynchronous_commit = local\n");
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE extension; CREATE DATABASE managed; CREATE ROLE owner LOGIN; '
      . 'ALTER DATABASE managed OWNER TO owner');
$node->safe_psql('extension', 'CREATE EXTENSION inbox');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-v', 'schema=public', '-U', 'owner', '-d',
        $node->connstr('managed'), '-f', "$ENV{INBOX_ROOT}/sql/inbox-managed.sql" ], 'inbox-managed.sql runs');

# What is wrong in both, with what is to be done.
my %wrong = (fsync => qr/^off: a crash .*; ALTER SYSTEM SET fsync = on$/,
    full_page_writes => qr/^off: a crash .*; ALTER SYSTEM SET full_page_writes = on$/,
    autovacuum => qr/^autovacuum is off, track_counts is off: .*; .*autovacuum = on, track_counts = on$/,
    damage => qr/^zero_damaged_pages is on, ignore_checksum_failure is on: .*; ALTER SYSTEM RESET/);

foreach my $variant ('extension', 'managed')
{
    my %expected = $variant eq 'managed' ? (%wrong,
        min_synchronous_commit => qr/^synchronous_commit is local by default: .* RESET synchronous_commit$/) : %wrong;
    my %found = map { split /\|/, $_, 2 }
      split /\n/, $node->safe_psql($variant, 'SELECT name, detail FROM inbox_check() WHERE NOT ok');
    is_deeply([ sort keys %found ], [ sort keys %expected ], "$variant: what is wrong is found, and nothing else");
    like($found{$_} // '', $expected{$_}, "$variant: $_") foreach sort keys %expected;
}
done_testing;
