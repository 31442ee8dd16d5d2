# SPDX-License-Identifier: PostgreSQL
# COMMIT itself fails: nothing of the transaction is acknowledged, and who is to blame is found by
# making the transactions smaller.
use strict;
use warnings;
use Test::More;
use Inbox::Scene;
use Inbox::Wait;
use Inbox::Workload;

# SET CONSTRAINTS ALL IMMEDIATE runs what was deferred; this check defers itself once more, so
# that only COMMIT is left to run it.
my $sql = <<'SQL';
CREATE TABLE broken (key text PRIMARY KEY);
CREATE TABLE late (key text, again bool);
CREATE FUNCTION check_late() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NOT NEW.again THEN
		SET CONSTRAINTS ALL DEFERRED;
		INSERT INTO late VALUES (NEW.key, true);
	ELSIF EXISTS (SELECT FROM broken WHERE key = NEW.key) THEN
		RAISE EXCEPTION 'too late' USING ERRCODE = '23514';
	END IF;
	RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION check_late();
CREATE FUNCTION late_payment(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM apply_payment(key, payload);
	INSERT INTO late VALUES (key, false);
END $$;
SQL

foreach my $kind (Inbox::Service::kinds())
{
    subtest $kind => sub {
        my $scene = Inbox::Scene->new($kind, 'late', sql => $sql);
        my $work = Inbox::Workload->new(count => 12);
        $scene->{node}->safe_psql('postgres',
            q{INSERT INTO broken SELECT 'k' || g FROM generate_series(1, 12) g});
        $work->publish($scene->{service}, 'late');
        my $puller = $scene->puller(handler => 'late_payment');
        wait_until('every message to fail', sub {
            my %failed = map { $_->{key} => 1 } $puller->events('message_failed');
            keys %failed == 12;
        }, 60);
        is(Inbox::Ledger::summary($scene->{node}), '0 0 0 0', 'every COMMIT fails: nothing is applied');
        is($scene->{service}->stats->{counters}{acked}, 0, 'nothing is acknowledged') if $kind eq 'own';
        is($puller->events('message'), 0, 'and no verdict is given');
        my $log = PostgreSQL::Test::Utils::slurp_file($scene->{node}->logfile);
        my $late = () = $log =~ /STATEMENT:  COMMIT$/mg;
        cmp_ok($late, '>=', 12, 'it was COMMIT that failed');

        # Now one of twelve fails, and the others go through.
        $scene->{node}->safe_psql('postgres', q{DELETE FROM broken WHERE key <> 'k12'});
        $work->wait_applied($scene->{node}, 60, 11);
        is($scene->count('SELECT count(*) FROM inbox_failure'), 1, 'the others are applied');
        $scene->{node}->safe_psql('postgres', 'DELETE FROM broken');
        $work->wait_applied($scene->{node}, 60);
        $work->is_exact($scene->{node});
        $work->all_acked($scene->{service}, 'late-sub', $puller, 'all is acknowledged');
        is($scene->count('SELECT count(*) FROM inbox_failure'), 0, 'no failure is left');
    };
}
done_testing;
