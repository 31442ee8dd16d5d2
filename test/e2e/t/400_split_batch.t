# SPDX-License-Identifier: PostgreSQL
# One bad message in a batch of 200 costs its neighbours a second try in the same pass and nothing
# else; it alone is blamed, and only once it has failed alone.
use strict;
use warnings;
use Test::More;
use Inbox::Gate;
use Inbox::Ledger;
use Inbox::Scene;
use Inbox::Service;
use Inbox::Wait;

use constant { BATCH => 200, PLACE => 100 };

# What a key's "trouble" says happens to it; sequences count through rollbacks.
my $sql = Inbox::Gate::sql() . <<'SQL';
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
CREATE FUNCTION split(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF wait_at_gate(key) THEN
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

my ($scene, $puller);

sub payments { map { Inbox::Ledger::payment($_, 1, 1) } @_ }

sub wait_applied
{
    my ($like, $count) = @_;
    $scene->wait_for("SELECT count(*) FROM effect WHERE key LIKE '$like'", $count, 90);
}

# Publishes a batch with one bad message in it. Returns how often a handler was called until its
# neighbours were applied.
sub run_batch
{
    my ($trouble) = @_;
    my @keys = map { "$trouble-$_ good" } 1 .. BATCH;
    $keys[PLACE] = "bad-$trouble $trouble";
    my $before = $scene->count('SELECT last_value FROM executed');
    Inbox::Gate::close($scene, $puller);
    $scene->publish(payments(@keys));
    Inbox::Gate::open($scene, $puller, BATCH);
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

# The one failure there is; it is discarded, and what comes of it then is a duplicate.
sub is_failure
{
    my ($key, $sqlstate) = @_;
    is($scene->count(q{SELECT string_agg(key || ' ' || sqlstate, ', ') FROM inbox_failure WHERE status = 'retrying'}),
        "$key $sqlstate", 'and has a row');
    $scene->count(q{SELECT inbox_discard(id, 'seen') FROM inbox_failure WHERE status = 'retrying'});
    $puller->wait_event('message', sub { $_[0]{key} eq $key && $_[0]{verdict} eq 'duplicate' });
}

sub check
{
    Inbox::Gate::grow($scene, BATCH);
    my $executed = run_batch('once');
    wait_applied('bad-once%', 1);
    # The emulator brings messages in any order: it may have been the first or the last.
    cmp_ok(transactions('once'), '<=', 2, 'an error that names its message: what is before it, what is behind it');
    cmp_ok($executed, '<=', 2 * BATCH + 2, 'each is run twice at most');
    is(blamed(), '', 'failing among others is no blame');

    $executed = run_batch('raises');
    cmp_ok(transactions('raises'), '<=', 2, 'the same when it fails alone, too');
    cmp_ok($executed, '<=', 2 * BATCH + 2, 'which is tried in between');
    $puller->wait_event('message_failed');
    is(blamed(), 'bad-raises raises', 'then it is blamed');
    is_failure('bad-raises raises', 'AC404');

    $executed = run_batch('unbalanced');
    cmp_ok(transactions('unbalanced'), '<=', 8, 'an error that names no message: halves');
    cmp_ok($executed, '<=', 4 * BATCH, 'of halves');
    $puller->wait_event('message_failed', sub { $_[0]{key} =~ /unbalanced/ });
    is(blamed(), 'bad-raises raises, bad-unbalanced unbalanced', 'only the culprit is blamed');
    is_failure('bad-unbalanced unbalanced', '23514');
    is($puller->stop, 0, 'stops with status 0');
}

foreach my $kind (Inbox::Service::kinds())
{
    subtest $kind => sub {
        $scene = Inbox::Scene->new($kind, 'split', sql => $sql);
        $puller = $scene->puller(handler => 'split', options => [ Inbox::Gate::OPTIONS ]);
        check();
        $scene->{node}->stop;
    };
}
done_testing;
