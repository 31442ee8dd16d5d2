# SPDX-License-Identifier: PostgreSQL
# A transaction has as many messages as are ready, within the limits of number, bytes and time.
use strict;
use warnings;
use Test::More;
use Inbox::Scene;
use Inbox::Service;

my $sql = <<'SQL';
CREATE TABLE run (key text, xid bigint DEFAULT txid_current());
CREATE FUNCTION take(key text, payload bytea) RETURNS void
	BEGIN ATOMIC INSERT INTO run (key) VALUES (key); END;
CREATE FUNCTION take_slowly(key text, payload bytea) RETURNS void
	BEGIN ATOMIC INSERT INTO run (key) SELECT key FROM pg_sleep(0.02); END;
SQL
my $scene;

# Has this many messages of a size, and one that is larger, applied from a subscription of their own;
# returns how many messages the largest transaction had, and that of the larger message.
my $number = 0;

sub largest
{
    my ($handler, $count, $size, $larger, @options) = @_;
    my $service = $scene->{service};
    my $name = 'sizes-' . ++$number;
    $scene->{node}->safe_psql('postgres', 'TRUNCATE run');
    $service->create_topic($name);
    $service->create_subscription($name, $name);
    $service->publish($name,
        map({ { data => 'x' x $size, attributes => { idempotency_key => "k$_" } } } 1 .. $count),
        { data => 'x' x $larger, attributes => { idempotency_key => 'larger' } });
    my $puller = $scene->puller(handler => $handler, options => \@options,
        subscription => $service->subscription($name));
    $scene->wait_for('SELECT count(*) FROM run', $count + 1, 120);
    is($puller->stop, 0, 'stops with status 0');
    return split /\|/, $scene->count(<<'SQL');
SELECT max(n), max(n) FILTER (WHERE larger)
FROM (SELECT count(*) AS n, bool_or(key = 'larger') AS larger FROM run GROUP BY xid) t
SQL
}

sub check
{
    my ($kind) = @_;
    $scene = Inbox::Scene->new($kind, 'sizes', sql => $sql);
    my ($most) = largest('take', 100, 10, 10, '--batch-size=7');
    is($most, 7, 'as many as --batch-size says');

    ($most) = largest('take', 100, 10, 10, '--batch-size=1');
    is($most, 1, 'one each where that is 1');

    ($most, my $larger) = largest('take', 40, 30_000, 100_000, '--batch-bytes=64kB');
    is($most, 2, 'as many as --batch-bytes has room for');
    is($larger, 1, 'a message that is larger has a transaction of its own');

    # Four take 80 ms and more, eight would take 160 ms.
    ($most) = largest('take_slowly', 100, 10, 10, '--batch-time=100ms');
    cmp_ok($most, '>=', 2, 'batches grow while they take less than half of --batch-time');
    cmp_ok($most, '<=', 4, 'and no further');
    $scene->{node}->stop;
}

foreach my $kind (Inbox::Service::kinds())
{
    subtest $kind => sub { check($kind) };
}
done_testing;
