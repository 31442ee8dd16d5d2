# SPDX-License-Identifier: PostgreSQL
# One bad message in a batch of 200 costs its neighbours a second try in the same pass and nothing
# else; it alone is blamed, and only once it has failed alone.
use strict;
use warnings;
use Test::More;
use Inbox::Ledger;
use Inbox::Scene;
use Inbox::Wait;

use constant { WARM_UP => 2000, BATCH => 200, PLACE => 100 };

# What a key's "trouble" says happens to it; sequences count through rollbacks.
my $sql = <<'SQL';
CREATE SEQUENCE executed;
CREATE SEQUENCE in_trouble;
CREATE TABLE leg (key text, amount int);
CREATE FUNCTION check_balanced() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF (SELECT sum(amount) FROM leg WHERE key = NEW.key) <> 0 THEN
		RAISE check_violation USING MESSAGE = 'the legs do not balance';
	END IF;
	RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER balanced AFTER INSERT ON leg DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION check_balanced();
CREATE TABLE gate (closed bool);
CREATE FUNCTION split(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF key LIKE 'gate-%' THEN
		WHILE EXISTS (SELECT FROM gate) LOOP
			PERFORM pg_sleep(0.01);
		END LOOP;
		RETURN;
	END IF;
	PERFORM nextval('executed');
	PERFORM apply_payment(key, payload);
	CASE split_part(key, ' ', 2)
	WHEN 'raises' THEN
		RAISE EXCEPTION 'no such order' USING ERRCODE = 'AC404';
	WHEN 'unbalanced' THEN
		INSERT INTO leg VALUES (key, 7);
	WHEN 'once' THEN
		IF nextval('in_trouble') = 1 THEN
			RAISE EXCEPTION 'the first time only';
		END IF;
	ELSE
	END CASE;
END $$;
SQL

my $scene = Inbox::Scene->new('own', 'split', sql => $sql);
# One connection, so that what is ready is one batch; and no batch is too slow, however long the gate
# is closed.
my $puller = $scene->puller(handler => 'split', options => [ '--workers=1', '--batch-time=20s' ]);

sub payments { map { Inbox::Ledger::payment($_, 1, 1) } @_ }

sub wait_applied
{
    my ($like, $count) = @_;
    $scene->wait_for("SELECT count(*) FROM effect WHERE key LIKE '$like'", $count, 60);
}

# Publishes a batch with one bad message in it. The connection is held up until all of it is here: so
# it is one batch. Returns how often a handler was called until its neighbours were applied.
sub run_batch
{
    my ($trouble) = @_;
    my @keys = map { "$trouble-$_ good" } 1 .. BATCH;
    $keys[PLACE] = "bad-$trouble $trouble";
    my $before = $scene->count('SELECT last_value FROM executed');
    $scene->{node}->safe_psql('postgres', 'INSERT INTO gate VALUES (true)');
    $scene->publish(payments("gate-$trouble"));
    $scene->wait_for(q{SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'}, 1, 20);
    $scene->publish(payments(@keys));
    wait_until('the batch to be with the puller',
        sub { $scene->{service}->stats($scene->{name})->{leased} == 1 + BATCH }, 30);
    $scene->{node}->safe_psql('postgres', 'DELETE FROM gate');
    wait_applied("$trouble-%", BATCH - 1);
    return $scene->count('SELECT last_value FROM executed') - $before;
}

sub transactions
{
    my ($trouble) = @_;
    return $scene->count("SELECT count(DISTINCT xmin::text) FROM effect WHERE key LIKE '$trouble-%'");
}

sub blamed
{
    my %keys = map { $_->{key} => 1 } $puller->events('message_failed');
    return join ', ', sort keys %keys;
}

# The one failure there is; a discarded message does not come back into the next batch.
sub is_failure
{
    my ($expected) = @_;
    is($scene->count(q{SELECT string_agg(key || ' ' || sqlstate, ', ') FROM inbox_failure WHERE status = 'retrying'}),
        $expected, 'and has a row');
    $scene->count(q{SELECT inbox_discard(id, 'seen') FROM inbox_failure WHERE status = 'retrying'});
    wait_until('all to be acknowledged',
        sub { $scene->{service}->stats($scene->{name})->{unacked} == 0 }, 30);
}

# Batches grow while they are full.
$scene->publish(payments(map { "warm-$_ up" } 1 .. WARM_UP));
wait_applied('warm-%', WARM_UP);
is($scene->count('SELECT max(n) FROM (SELECT count(*) AS n FROM effect GROUP BY xmin::text) t'),
    BATCH, 'batches have grown to 200');

my $executed = run_batch('once');
wait_applied('bad-once%', 1);
is(transactions('once'), 2, 'an error that names its message: what is before it, what is behind it');
cmp_ok($executed, '<=', 2 * BATCH + 2, 'each is run twice at most');
is(blamed(), '', 'failing among others is no blame');

$executed = run_batch('raises');
is(transactions('raises'), 2, 'the same when it fails alone, too');
cmp_ok($executed, '<=', 2 * BATCH + 2, 'which is tried in between');
is(blamed(), 'bad-raises raises', 'then it is blamed');
is_failure('bad-raises raises AC404');

$executed = run_batch('unbalanced');
cmp_ok(transactions('unbalanced'), '<=', 8, 'an error that names no message: halves');
cmp_ok($executed, '<=', 4 * BATCH, 'of halves');
$puller->wait_event('message_failed', sub { $_[0]{key} =~ /unbalanced/ });
is(blamed(), 'bad-raises raises, bad-unbalanced unbalanced', 'only the culprit is blamed');
is_failure('bad-unbalanced unbalanced 23514');
is($puller->stop, 0, 'stops with status 0');
done_testing;
