# SPDX-License-Identifier: PostgreSQL
# SIGTERM ends what is in a transaction within --grace, acknowledges it and gives the rest back; a
# second one ends at once; whatever is left open that way comes again and takes effect once.
use strict;
use warnings;
use Test::More;
use Time::HiRes qw(time);
use Inbox::Puller;
use Inbox::Scene;
use Inbox::Service;
use Inbox::Wait;
use Inbox::Workload;

# A handler that takes as long as the table says, so that a test can wait for it to be at work.
my $sql = <<'SQL';
CREATE TABLE pace (seconds float);
INSERT INTO pace VALUES (0);
CREATE FUNCTION paced_payment(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM apply_payment(key, payload);
	PERFORM pg_sleep(seconds) FROM pace;
END $$;
SQL

sub set_pace
{
    my ($scene, $seconds) = @_;
    $scene->{node}->safe_psql('postgres', "UPDATE pace SET seconds = $seconds");
}

sub wait_at_work
{
    my ($scene) = @_;
    $scene->wait_for(q{SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'}, 1, 20);
}

# Seconds it takes to end after this signal; its status has to be 0.
sub end
{
    my ($puller, $what) = @_;
    my $start = time;
    is($puller->stop(40), 0, "$what: ends with status 0");
    return time - $start;
}

sub start
{
    my ($scene, @options) = @_;
    my $puller = $scene->puller(handler => 'paced_payment', options => \@options);
    $puller->wait_event('subscription');
    return $puller;
}

sub finishes_what_runs
{
    my ($scene, $work) = @_;
    set_pace($scene, 1.5);
    my $puller = start($scene);
    $work->publish($scene->{service}, 'stop');
    wait_at_work($scene);
    wait_until('more to be held', sub { $scene->{kind} eq 'google'
              || $scene->{service}->stats('stop-sub')->{leased} > 1 }, 10);
    my $before = $work->applied($scene->{node});
    my $took = end($puller, 'at work');
    cmp_ok($took, '<', 10, 'it does not wait for longer than the transaction');
    my $after = $work->applied($scene->{node});
    is($after, $before + 1, 'what ran was applied');
    is(($puller->events('stopped'))[0]{acked}, $after, 'and acknowledged');
    if ($scene->{kind} eq 'own')
    {
        my $stats = $scene->{service}->stats('stop-sub');
        is_deeply([ $stats->{ready}, $stats->{leased} ], [ 10 - $after, 0 ],
            'the rest was given back at once');
    }
    set_pace($scene, 0);
    my $next = start($scene);
    $work->wait_applied($scene->{node}, $scene->{kind} eq 'own' ? 5 : 20);
    is($next->verdicts('duplicate'), 0, 'and comes to the next puller, without what was applied');
    end($next, 'idle');
}

# What is given back is delivered to the pull that is still in flight.
sub gives_back_again
{
    my ($scene, $puller) = @_;
    my $work = Inbox::Workload->new(count => 225, prefix => 'echo');
    my @messages = @{ $work->{messages} };
    # Batches grow while they are fast.
    $scene->publish(splice(@messages, 0, 200));
    $work->wait_applied($scene->{node}, 20, 200);
    set_pace($scene, 0.2);
    # So that the answer to what is given back comes sooner than it comes again.
    $scene->{service}->add_faults({ on => 'pull', do => 'delay', ms => 200, every => 1 });
    $scene->publish(@messages);
    wait_at_work($scene);
    wait_until('a pull that waits', sub { my $stats = $scene->{service}->stats('stop-sub');
            $stats->{waitingPulls} == 1 && $stats->{leased} == 25 }, 10);
    # Without a database there is nothing else to wait for.
    $scene->{node}->stop('immediate');
    $puller->wait_event('outcome_unknown');
    cmp_ok(end($puller, 'with a pull in flight'), '<', 3, 'nothing else is waited for');
    my $stats = $scene->{service}->stats('stop-sub');
    is_deeply([ $stats->{ready}, $stats->{leased} ], [ 25, 0 ],
        'all is given back, none is kept by a pull that nobody waits for');
    $scene->{service}->clear_faults;
    $scene->{node}->start;
    set_pace($scene, 0);
    my $next = start($scene);
    $work->wait_applied($scene->{node}, 5);
    end($next, 'the next');
    $work->is_exact($scene->{node}, 'given back twice');
    $scene->{node}->safe_psql('postgres',
        'TRUNCATE effect, inbox_claim; UPDATE account SET balance = 0');
}

sub is_cut_short
{
    my ($scene, $work, $puller, $what) = @_;
    is($puller->events('stopped_at_once') + $puller->events('grace_over'), 1, $what);
    set_pace($scene, 0);
    my $next = start($scene);
    $work->wait_applied($scene->{node}, 60);
    $work->is_exact($scene->{node}, $what);
    $work->all_acked($scene->{service}, 'stop-sub', $next, $what);
    $scene->{node}->safe_psql('postgres',
        'TRUNCATE effect, inbox_claim; UPDATE account SET balance = 0');
}

foreach my $kind (Inbox::Service::kinds())
{
    subtest $kind => sub {
        my $scene = Inbox::Scene->new($kind, 'stop', sql => $sql);
        # On a subscription of its own: the service may not notice that a pull is gone.
        $scene->{service}->create_subscription('idle-sub', 'stop');
        my $idle = $scene->puller(handler => 'apply_payment',
            subscription => $scene->{service}->subscription('idle-sub'));
        $idle->wait_event('subscription');
        cmp_ok(end($idle, 'idle'), '<', 2, 'an idle puller ends at once');

        my $work = Inbox::Workload->new(count => 10);
        finishes_what_runs($scene, $work);
        $work->is_exact($scene->{node});
        $scene->{node}->safe_psql('postgres',
            'TRUNCATE effect, inbox_claim; UPDATE account SET balance = 0');
        return if $kind ne 'own';
        gives_back_again($scene, start($scene, '--batch-size=16'));

        $work = Inbox::Workload->new(count => 10, prefix => 'grace');
        set_pace($scene, 20);
        my $puller = start($scene, '--grace=1s');
        $work->publish($scene->{service}, 'stop');
        wait_at_work($scene);
        cmp_ok(end($puller, 'a handler longer than --grace'), '<', 6, 'ends when --grace is over');
        is_cut_short($scene, $work, $puller, 'what --grace cut short is not lost');

        $work = Inbox::Workload->new(count => 10, prefix => 'second');
        set_pace($scene, 20);
        $puller = start($scene);
        $work->publish($scene->{service}, 'stop');
        wait_at_work($scene);
        $puller->signal('TERM');
        $puller->wait_event('stopping');
        ok($puller->is_running, 'waits for the transaction');
        cmp_ok(end($puller, 'a second SIGTERM'), '<', 3, 'the second SIGTERM ends it at once');
        is_cut_short($scene, $work, $puller, 'what the second SIGTERM cut short is not lost');
    };
}

subtest 'stops while the database is away' => sub {
    my $service = Inbox::Service->start('own');
    my $puller = Inbox::Puller->start(service => $service, handler => 'f',
        subscription => 'projects/p/subscriptions/away-sub',
        dbname => 'host=127.0.0.1 port=' . Inbox::Service::free_port());
    $puller->wait_event('db_connect_failed');
    cmp_ok(end($puller, 'without a database'), '<', 3, 'at once');
};

done_testing;
