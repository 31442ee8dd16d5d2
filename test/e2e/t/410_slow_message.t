# SPDX-License-Identifier: PostgreSQL
# A message that runs into the statement timeout takes its batch along. It is found, and its
# attempts alone are counted, without ever making it a dead letter within a day.
use strict;
use warnings;
use Test::More;
use Inbox::Ledger;
use Inbox::Scene;
use Inbox::Service;
use Inbox::Workload;

my $sql = <<'SQL';
CREATE TABLE slow (key text);
INSERT INTO slow VALUES ('slow');
CREATE FUNCTION sometimes_slow(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM apply_payment(sometimes_slow.key, payload);
	PERFORM pg_sleep(60) FROM slow WHERE slow.key = sometimes_slow.key;
END $$;
SQL

sub check
{
    my ($kind) = @_;
    my $scene = Inbox::Scene->new($kind, 'timeout', sql => $sql);
    my @keys = map { "k$_" } 1 .. 100;
    splice(@keys, 40, 0, 'slow');
    $scene->publish(map { Inbox::Ledger::payment($_, 1, 1) } map { "warm$_" } 1 .. 300);
    my $puller = $scene->puller(handler => 'sometimes_slow',
        options => [ '--handler-timeout=500ms', '--batch-time=400ms', '--lock-timeout=400ms' ]);
    $scene->wait_for("SELECT count(*) FROM effect WHERE key LIKE 'warm%'", 300);
    $scene->publish(map { Inbox::Ledger::payment($_, 1, 1) } @keys);
    $scene->wait_for("SELECT count(*) FROM effect WHERE key LIKE 'k%'", 100, 90);
    my $first = $puller->wait_event('message_failed');
    is("$first->{key} $first->{sqlstate} $first->{attempt}", 'slow 57014 1', 'it is found');
    # A limit that errors have does not hold for it.
    $scene->count(q{SELECT inbox_configure(name, max_attempts => 1) FROM inbox_source});
    $puller->wait_event('message_failed', sub { $_[0]{attempt} == 2 });
    is(scalar(grep { $_->{key} ne 'slow' } $puller->events('message_failed')), 0,
        'none of its neighbours is blamed');
    is($puller->events('dead_letter'), 0, 'and none is dead');

    $scene->{node}->safe_psql('postgres', 'DELETE FROM slow');
    $scene->wait_for("SELECT count(*) FROM effect WHERE key = 'slow'", 1, 60);
    is($scene->count('SELECT count(*) FROM inbox_failure'), 0, 'quick again: applied, its row is gone');
    Inbox::Workload->all_acked($scene->{service}, 'timeout-sub', $puller, 'all is acknowledged');
    is(Inbox::Ledger::summary($scene->{node}), '401 401 0 0', 'every payment is there once');
    $scene->{node}->stop;
}

foreach my $kind (Inbox::Service::kinds())
{
    subtest $kind => sub { check($kind) };
}
done_testing;
