#!/usr/bin/perl
# SPDX-License-Identifier: PostgreSQL
# The proxy in front of PostgreSQL: the points of a COMMIT, in the simple and in the extended
# protocol, and round trips.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PubSub;
use Proxy;
use if $> != 0, 'PostgreSQL::Test::Cluster';
use Test::More;

plan(skip_all => 'PostgreSQL refuses to run as root') if $> == 0;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(extra => [ '--encoding=UTF8', '--no-locale' ]);
$node->start;
$node->safe_psql('postgres', 'CREATE TABLE t (i int)');
my $proxy =
    Proxy->start('--protocol', 'postgres', '--to', $node->host . '/.s.PGSQL.' . $node->port);
my $conninfo = "host=127.0.0.1 port=$proxy->{port} dbname=postgres user=" . getpwuid($>);

my $rows = 0;

# Inserts a row in a transaction through the proxy; returns what the client knows of the outcome,
# and whether the row is there.
sub attempt
{
    my (@how) = @_;
    my $number = ++$rows;
    my $known;
    if (@how && $how[0] eq 'simple')
    {
        system(
            "psql -Xq -d '$conninfo' -c BEGIN -c 'INSERT INTO t VALUES ($number)' -c COMMIT >$proxy->{dir}/psql 2>&1"
        );
        $known = $? == 0 ? 'committed' : 'unknown';
    }
    else
    {
        $known = `$ENV{PUBSUB_UNIT}/pipeline '$conninfo' 'INSERT INTO t VALUES ($number)' @how`;
        chomp $known;
    }

    # The server may not have noticed yet that its client is gone.
    PubSub::wait_for(
        'the session to end',
        sub {
            $node->safe_psql('postgres',
                "SELECT count(*) FROM pg_stat_activity "
                  . "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            ) == 0;
        });
    my $there = $node->safe_psql('postgres', "SELECT count(*) FROM t WHERE i = $number");
    return "$known, " . ($there ? 'there' : 'not there');
}

is(attempt(),                'committed, there', 'a transaction passes');
is($proxy->stats->{commits}, 1,                  'whose COMMIT is seen');
foreach my $how ([], ['prepared'], ['simple'])
{
    my $name = $how->[0] || 'extended';
    $proxy->triggers('on=commit-query nth=1 do=cut');
    is(attempt(@$how), 'unknown, not there', "$name: cut before the COMMIT");
    $proxy->triggers('on=commit-sent nth=1 do=cut');
    is(attempt(@$how), 'unknown, there', "$name: cut behind the COMMIT");
    $proxy->triggers('on=commit-answer nth=1 do=cut');
    is(attempt(@$how), 'unknown, there', "$name: cut before its answer");
    $proxy->triggers('on=commit-answered nth=1 do=cut');
    like(attempt(@$how), qr/, there$/, "$name: cut behind its answer");
    is($proxy->stats->{triggers}[0]{fired}, 1, 'as it was told');
}

# At every byte of the exchange the client either knows, or it does not; the row is there or not.
my %seen;
foreach my $offset (0 .. 60)
{
    $proxy->triggers("on=commit-query nth=1 offset=$offset do=cut");
    $seen{ attempt() }++;
}
is( join('; ', sort keys %seen),
    'committed, there; unknown, not there; unknown, there',
    'every byte of the COMMIT');
%seen = ();
foreach my $offset (0 .. 20)
{
    $proxy->triggers("on=commit-answer nth=1 offset=$offset do=cut");
    $seen{ attempt() }++;
}
is(join('; ', sort keys %seen), 'committed, there; unknown, there', 'every byte of its answer');

# A failed transaction is answered by ROLLBACK.
$proxy->triggers('on=commit-answer nth=1 do=delay ms=200');
my $known = `$ENV{PUBSUB_UNIT}/pipeline '$conninfo' 'SELECT 1/0'`;
is($known,                              "rolled back\n", 'the answer to a COMMIT may be ROLLBACK');
is($proxy->stats->{triggers}[0]{fired}, 1,               'which is seen as its answer');

# Round trips through a slow line.
$proxy->triggers;
$proxy->command('latency 100');
my $before = $proxy->stats->{roundTrips};
attempt();
is($proxy->stats->{roundTrips} - $before, 1, 'one round trip in the pipeline');
$before = $proxy->stats->{roundTrips};
attempt('simple');
is($proxy->stats->{roundTrips} - $before, 3, 'three one by one');
$proxy->command('latency 0');

# A large message passes, in pieces.
my $large = '-' x 3_000_000;
open(my $sql, '>', "$proxy->{dir}/large.sql") or die $!;
print $sql "SELECT length('$large')";
close($sql);
is(`psql -X -q -At -d '$conninfo' -f $proxy->{dir}/large.sql`,
    "3000000\n", 'a large message passes');

done_testing();
