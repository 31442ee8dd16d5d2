# SPDX-License-Identifier: PostgreSQL
# What a verdict rests on is on disk when the transaction that gave it has committed.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('crash');
$node->init(extra => [ '--encoding=UTF8', '--no-locale' ]);
# Nobody else writes WAL out in the meantime.
$node->append_conf('postgresql.conf', "fsync = on\nwal_writer_delay = 10s\nautovacuum = off");
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE installer LOGIN; CREATE DATABASE box OWNER installer');
system_or_bail('psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-v', 'schema=public', '-f',
    "$ENV{INBOX_ROOT}/sql/inbox-managed.sql", '-d', $node->connstr('box') . ' user=installer');

sub installer { return $node->safe_psql('box', $_[0], extra_params => [ '-U', 'installer' ]) }

installer(q{CREATE FUNCTION post(k text, p text) RETURNS void LANGUAGE plpgsql AS 'BEGIN END'});

sub crash
{
    $node->stop('immediate');
    $node->start;
}

sub batch
{
    return sprintf(q{SELECT verdict FROM inbox_process_batch(ARRAY[%s], 'post')},
        join(', ', map { "('$_', 'p', NULL, NULL, NULL, NULL, NULL, NULL)::inbox_message" } @_));
}

sub claims { return installer("SELECT count(*) FROM inbox_claim WHERE key LIKE '$_[0]%'") }

my %calls = (
    single => q{SELECT CASE WHEN inbox_process('single', 'p', 'post') THEN 'applied' ELSE 'duplicate' END},
    batch => batch('batch'),
    batches => batch('batches 1', 'batches 2'));
foreach my $name (sort keys %calls)
{
    # What COMMIT waits for is set after the call, which would raise it.
    installer("BEGIN; $calls{$name}; SET LOCAL synchronous_commit = off; COMMIT");
    like(installer($calls{$name}), qr/^duplicate/, "$name: seen before it is durable");
    crash();
    isnt(claims($name), '0', 'and durable by the duplicate');

    my $other = $calls{$name} =~ s/'\K(?=$name)/low /gr;
    like(installer("SET synchronous_commit = off; $other"), qr/^applied/, "$name: asynchronous for the session");
    crash();
    isnt(claims("low $name"), '0', 'and durable all the same');
}
done_testing();
