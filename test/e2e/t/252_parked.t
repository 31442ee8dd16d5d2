# SPDX-License-Identifier: PostgreSQL
# Order policy "park": what comes behind a dead letter of its ordering key is kept and acknowledged, and
# applied in order once an operator has corrected or discarded that; other ordering keys go on.
use strict;
use warnings;
use JSON::PP;
use Test::More;
use Time::HiRes qw(sleep);
use Inbox::Ledger;
use Inbox::Scene;
use Inbox::Service;
use Inbox::Workload;

# Each at a time of its own: the emulator counts in milliseconds, and brings again in any order.
sub publish
{
    my ($scene, $lane, @numbers) = @_;
    foreach my $number (@numbers)
    {
        my $account = $lane eq 'k' && ($number == 3 || $number == 7) ? 999 : $number;
        $scene->publish(Inbox::Ledger::payment("$lane$number", $account, 10, orderingKey => "lane $lane"));
        sleep(0.003);
    }
}

sub applied
{
    my ($scene, $lane) = @_;
    return $scene->count("SELECT string_agg(key, ' ' ORDER BY n) FROM effect WHERE key LIKE '$lane%'");
}

# Waits until these failures are left: KEY STATUS, …
sub wait_left
{
    my ($scene, $rows) = @_;
    $scene->wait_for("SELECT string_agg(key || ' ' || status, ', ' ORDER BY substr(key, 2)::int)"
          . q{ FROM inbox_failure WHERE status IN ('retrying', 'dead', 'parked')}, $rows, 90);
}

sub operator
{
    my ($scene, $call) = @_;
    return Inbox::Ledger::owner_runs($scene->{node}, $call);
}

sub check
{
    my ($scene) = @_;
    my $source = $scene->{service}->subscription($scene->{name});

    operator($scene, "SELECT inbox_configure('$source', order_policy => 'park', max_attempts => 2)");
    publish($scene, 'k', 1 .. 6);
    publish($scene, 'f', 1 .. 5);
    publish($scene, 'k', 7 .. 10);
    my $puller = $scene->puller(handler => 'apply_payment');
    $puller->wait_event('dead_letter');
    wait_left($scene, 'k3 dead, ' . join(', ', map { "k$_ parked" } 4 .. 10));
    is(applied($scene, 'k'), 'k1 k2', 'what was published before the dead letter is applied');
    $scene->wait_for(q{SELECT count(*) FROM effect WHERE key LIKE 'f%'}, 5);
    is(applied($scene, 'f'), 'f1 f2 f3 f4 f5', 'another ordering key goes on, in its order');

    is(operator($scene, q{SELECT inbox_retry(id, payload => '{"account": 3, "amount": 10}')}
              . q{ FROM inbox_failure WHERE key = 'k3'}), 't', 'the dead letter is corrected and applied');
    is(applied($scene, 'k'), 'k1 k2 k3 k4 k5 k6', 'and what waited for it, up to the next that fails');
    wait_left($scene, 'k7 dead, k8 parked, k9 parked, k10 parked');
    publish($scene, 'k', 11);
    wait_left($scene, 'k7 dead, k8 parked, k9 parked, k10 parked, k11 parked');

    is(operator($scene, q{SELECT inbox_discard(id, 'no such account') FROM inbox_failure WHERE key = 'k7'}),
        't', 'the next one is discarded');
    is(applied($scene, 'k'), join(' ', map { "k$_" } 1 .. 6, 8 .. 11), 'the rest follows in its order');
    publish($scene, 'k', 12);
    $scene->wait_for(q{SELECT count(*) FROM effect WHERE key = 'k12'}, 1);
    pass('and what comes then is applied at once');
    wait_left($scene, '');
    is(scalar(grep { $_->{key} =~ /^f/ } $puller->events('message_failed')), 0,
        'nothing of the other ordering key has failed');
    Inbox::Workload->all_acked($scene->{service}, $scene->{name}, $puller, 'all is acknowledged');
    is(Inbox::Ledger::summary($scene->{node}), '16 16 0 0', 'the ledger is exact');
    $scene->{node}->stop;
}

foreach my $kind (Inbox::Service::kinds())
{
    subtest $kind => sub {
        check(Inbox::Scene->new($kind, 'parked',
                fields => { enableMessageOrdering => JSON::PP::true }));
    };
}
done_testing;
