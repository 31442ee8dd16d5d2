# SPDX-License-Identifier: PostgreSQL
# A handler that is held up until more messages are with its puller, so that they are one batch:
# whichever service they come from.
#
#   Inbox::Scene->new($kind, 'name', sql => Inbox::Gate::sql() . …);
#   my $puller = $scene->puller(options => [ Inbox::Gate::OPTIONS ], …);    # its handler calls wait_at_gate()
#   Inbox::Gate::grow($scene, 200);
#   Inbox::Gate::close($scene, $puller); $scene->publish(@messages);
#   Inbox::Gate::open($scene, $puller, scalar @messages);
package Inbox::Gate;
use strict;
use warnings;
use HTTP::Tiny;
use Inbox::Ledger;
use Inbox::Wait;

# One connection, so that what is ready is one batch; and no batch is too slow, however long it is
# held up.
use constant OPTIONS => ('--listen=127.0.0.1:0', '--workers=1', '--batch-time=20s');

my $number = 0;

# wait_at_gate() is true for the messages that are there to wait, and nothing else is to be done with
# them.
sub sql
{
    return <<'SQL';
CREATE TABLE gate (closed bool);
CREATE FUNCTION wait_at_gate(key text) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
	WHILE key LIKE 'gate %' AND EXISTS (SELECT FROM gate) LOOP
		PERFORM pg_sleep(0.01);
	END LOOP;
	RETURN key LIKE 'gate %';
END $$;
SQL
}

# What the puller says it holds.
sub held
{
    my ($puller) = @_;
    my $url = 'http://' . $puller->wait_event('listening')->{address} . '/metrics';
    my $answer = HTTP::Tiny->new(timeout => 20)->get($url);
    my $count = 0;
    $count += $_ foreach $answer->{content} =~ /^inbox_outstanding_messages\{.*\} (\d+)$/mg;
    return $count;
}

# Batches, and what a puller holds, grow while batches are full: publishes payments until one had so
# many. Returns how many payments that took.
sub grow
{
    my ($scene, $size) = @_;
    my $count = 0;
    wait_until("batches of $size", sub {
        $scene->publish(map { Inbox::Ledger::payment("grow $_", 1, 1) } $count + 1 .. $count + 5 * $size);
        $count += 5 * $size;
        $scene->wait_for("SELECT count(*) FROM effect WHERE key LIKE 'grow %'", $count, 90);
        $scene->count('SELECT max(n) FROM (SELECT count(*) AS n FROM effect GROUP BY xmin::text) t') >= $size;
    }, 180);
    return $count;
}

# The puller holds one message from here on, and that waits.
sub close
{
    my ($scene, $puller) = @_;
    wait_until('the puller to hold nothing', sub { held($puller) == 0 });
    $scene->{node}->safe_psql('postgres', 'INSERT INTO gate VALUES (true)');
    $scene->publish(Inbox::Ledger::payment('gate ' . ++$number, 1, 1));
    $scene->wait_for(q{SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'}, 1, 60);
}

# Once so many more are there.
sub open
{
    my ($scene, $puller, $count) = @_;
    wait_until('the batch to be with the puller', sub { held($puller) == 1 + $count });
    $scene->{node}->safe_psql('postgres', 'DELETE FROM gate');
}

1;
