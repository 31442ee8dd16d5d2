# SPDX-License-Identifier: PostgreSQL
# Messages of several ordering keys, each with its place, some of which fail twice before they are
# applied; and the proof that they were applied in the order of their keys.
package Inbox::Steps;
use strict;
use warnings;
use JSON::PP;
use Test::More;
use Inbox::Scene;
use Inbox::Wait;

use constant KEYS => 8;
use constant EACH => 50;
use constant COUNT => KEYS * EACH;
use constant FAILURES => KEYS * 3 * 2;

my $sql = <<'SQL';
CREATE TABLE step (n bigint GENERATED ALWAYS AS IDENTITY, ordering_key text, place int, worker int);
-- It looks at inbox_failure, which no puller may.
CREATE FUNCTION take_step(message inbox_message) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
	place int := (convert_from((message).payload, 'UTF8')::jsonb)->>'place';
BEGIN
	PERFORM pg_sleep(0.002);
	IF place IN (10, 25, 40) AND coalesce((SELECT attempts FROM inbox_failure f
			WHERE f.key = (message).key), 0) < 2 THEN
		RAISE EXCEPTION 'not yet';
	END IF;
	INSERT INTO step (ordering_key, place, worker)
		VALUES ((message).ordering_key, place, pg_backend_pid());
END $$;
SQL

sub scene
{
    my ($kind, $name) = @_;
    return Inbox::Scene->new($kind, $name, sql => $sql,
        fields => { enableMessageOrdering => JSON::PP::true });
}

sub publish
{
    my ($scene) = @_;
    my @messages;
    foreach my $place (1 .. EACH)
    {
        push @messages, map { { orderingKey => "key $_", data => qq({"place": $place}),
            attributes => { idempotency_key => "k${_}_$place" } } } 1 .. KEYS;
    }
    $scene->publish(@messages);
}

sub start
{
    my ($scene) = @_;
    return $scene->puller(handler => 'take_step', options => [ '--workers=4', '--batch-size=20' ]);
}

sub taken
{
    my ($scene) = @_;
    return $scene->count('SELECT count(*) FROM step');
}

sub wait_taken
{
    my ($scene, $count) = @_;
    wait_until("$count steps", sub { taken($scene) >= $count }, 80);
}

# Three tests.
sub in_order
{
    my ($scene) = @_;
    is($scene->count('SELECT concat_ws($$ $$, count(*), count(DISTINCT (ordering_key, place)))'
          . ' FROM step'), COUNT . ' ' . COUNT, 'every message is applied once');
    is($scene->count(<<'SQL'), 0, 'in the order of its key');
SELECT count(*) FROM (SELECT place, lag(place, 1, 0) OVER (PARTITION BY ordering_key ORDER BY n)
	AS before FROM step) t WHERE place <> before + 1
SQL
    cmp_ok($scene->count('SELECT count(DISTINCT worker) FROM step'), '>=', 2,
        'several workers took part');
}

1;
