# SPDX-License-Identifier: PostgreSQL
# A handler that is broken for every message halts its source, for all pullers, before anything is
# a dead letter; when it is repaired the first success ends that, and all is applied.
use strict;
use warnings;
use Test::More;
use Inbox::Ledger;
use Inbox::Scene;
use Inbox::Service;
use Inbox::Wait;
use Inbox::Workload;

my $handler = <<'SQL';
CREATE OR REPLACE FUNCTION deployed(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM %s(key, payload);
END $$;
SQL

sub check
{
    my ($kind) = @_;
    my $scene = Inbox::Scene->new($kind, 'halt', sql => sprintf($handler, 'apply_paiment'));
    my $work = Inbox::Workload->new(count => 300);
    my $own = $kind eq 'own';
    # The emulator brings what comes again ahead of what is new, so that some messages have failed
    # several times by the time at which 20 different ones have.
    Inbox::Ledger::owner_runs($scene->{node}, 'SELECT inbox_configure('
          . "'${\$scene->{service}->subscription($scene->{name})}', max_attempts => 10)") unless $own;
    my @pullers = map { $scene->puller(handler => 'deployed',
            options => [ '--workers=2', '--batch-size=10' ]) } 1 .. 2;
    $work->publish($scene->{service}, 'halt');

    $_->wait_event('source_halted') foreach @pullers;
    pass('both pullers see that the source is halted');
    $scene->wait_for('SELECT count(*) FROM inbox_source WHERE halted_since IS NOT NULL', 1);
    my $counted = $scene->count('SELECT sum(attempts) FROM inbox_failure');
    cmp_ok($counted, '<=', 25, 'few attempts were counted') if $own;

    # A third one learns it by its first message.
    my $late = $scene->puller(handler => 'deployed');
    $late->wait_event('source_halted');
    # Probes go on, and are not counted.
    my $probes = grep { ($_->{verdict} // '') eq 'halted' } $late->events('message_failed');
    wait_until('two more probes', sub {
        (grep { ($_->{verdict} // '') eq 'halted' } $late->events('message_failed')) >= $probes + 2;
    });
    is($scene->count('SELECT sum(attempts) FROM inbox_failure'), $counted, 'probes count nothing');
    is($scene->count("SELECT count(*) FROM inbox_failure WHERE status <> 'retrying'"), 0,
        'there is no dead letter');
    is(scalar(map { $_->events('message') } @pullers), 0, 'no message has a verdict');
    is($scene->{service}->stats($scene->{name})->{unacked}, 300, 'nothing is acknowledged')
      if $own;
    push @pullers, $late;
    my $before = map { $_->events('message_failed') } @pullers;
    cmp_ok($before, '<', 100, 'most messages are not even tried');

    $scene->{node}->safe_psql('postgres', sprintf($handler, 'apply_payment'));
    $work->wait_applied($scene->{node}, 180);
    $work->is_exact($scene->{node});
    is($scene->count('SELECT count(*) FROM inbox_source WHERE halted_since IS NOT NULL'), 0,
        'the source is not halted any more');
    is($scene->count('SELECT count(*) FROM inbox_failure'), 0, 'no failure is left');
    is(scalar(map { $_->events('dead_letter') } @pullers), 0, 'nothing was a dead letter');
    ok((grep { $_->events('source_resumed') } @pullers), 'it was said that it goes on');
    is($_->stop, 0, 'stops with status 0') foreach @pullers[ 0, 1 ];
    Inbox::Workload->all_acked($scene->{service}, 'halt-sub', $late, 'all is acknowledged');
    $scene->{node}->stop;
}

foreach my $kind (Inbox::Service::kinds())
{
    subtest $kind => sub { check($kind) };
}
done_testing;
