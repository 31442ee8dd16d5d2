# SPDX-License-Identifier: PostgreSQL
# Pub/Sub is away at the start and in the middle, its subscription is missing for a while: it is
# said, waited for, and the ledger is exact.
use strict;
use warnings;
use Test::More;
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

my $node = Inbox::Ledger->start('pubsub_away');

$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION apply_slowly(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM apply_payment(key, payload);
	PERFORM pg_sleep(0.02);
END $$;
SQL

sub start
{
    my ($service, $name, %args) = @_;
    return Inbox::Puller->start(service => $service, handler => 'apply_payment', node => $node,
        subscription => $service->subscription($name), %args);
}

sub create
{
    my ($service, $name) = @_;
    $service->create_topic($name);
    $service->create_subscription($name, $name);
}

sub payments
{
    my ($prefix, $count) = @_;
    return map { Inbox::Ledger::payment("$prefix$_", 1 + $_ % 50, 1) } 1 .. $count;
}

sub wait_for_effects
{
    my ($prefix, $count) = @_;
    Inbox::Ledger::wait_for($node,
        "SELECT count(*), count(DISTINCT key) FROM effect WHERE key LIKE '$prefix%'",
        "$count|$count", 50);
    pass("$prefix: $count payments, each applied once");
}

my @all = map { { kind => $_, service => Inbox::Service->start($_) } } Inbox::Service::kinds();
my $own = $all[0]{service};

# While it starts without knowing anything the puller stands still: it shall not find it empty.
sub begin_again
{
    my ($one, $prefix, $count) = @_;
    my $name = "pay-$one->{kind}";

    $one->{puller}->signal('STOP');
    $one->{service}->begin;
    create($one->{service}, $name);
    $one->{service}->publish($name, payments("$one->{kind} $prefix", $count));
    $one->{puller}->signal('CONT');
}

subtest 'away at the start' => sub {
    $_->{service}->stop foreach @all;
    $_->{puller} = start($_->{service}, "pay-$_->{kind}") foreach @all;
    foreach my $one (@all)
    {
        my $event = $one->{puller}->wait_event('subscription_failed');
        like("$event->{level} $event->{outcome} $event->{err}; $event->{hint}",
            qr/^warning transient .*Could(?:n't| not) connect to server; it is tried again by itself/,
            "$one->{kind}: $event->{err}");
        wait_until('a third attempt', sub { $one->{puller}->events('subscription_failed') >= 3 });
        begin_again($one, 'a', 20);
    }
    wait_for_effects("$_->{kind} a", 20) foreach @all;
};

# Where there is no emulator, the one that forgets everything on the way is our own.
my $steady = Inbox::Service->start('own');
$steady->create_topic('late');
create($steady, 'deleted');
my %other = map { $_ => start($steady, $_) } qw(late deleted);

subtest 'missing' => sub {
    my $event = $other{late}->wait_event('subscription_failed');
    like("$event->{level} $event->{status} $event->{subscription} $event->{hint}",
        qr{^error 404 projects/p/subscriptions/late .*create it; it is tried again by itself},
        "one that is missing is said: $event->{err}");
    $steady->publish('deleted', payments('deleted a', 5));
    wait_for_effects('deleted a', 5);
    $steady->call('DELETE', '/v1/' . $steady->subscription('deleted'));
    $event = $other{deleted}->wait_event('pull_failed');
    is("$event->{level} $event->{status} $event->{outcome}", 'error 404 not_found',
        "one that was deleted is said: $event->{err}");
    foreach my $name (qw(late deleted))
    {
        $steady->create_subscription($name, $name);
        $steady->publish($name, payments("$name b", 5));
    }
};

# The producer publishes all again: nobody knows any more what was acknowledged.
subtest 'lost in the middle' => sub {
    my $one = $all[-1];
    my $puller = $one->{puller};
    $one->{service}->publish("pay-$one->{kind}", payments("$one->{kind} b", 2000));
    wait_until('some to be applied', sub { $puller->verdicts('applied') > 220 });
    $one->{service}->stop;
    $puller->wait_event('pull_failed', sub { $_[0]{outcome} eq 'transient' });
    my $before = $puller->verdicts('applied');
    begin_again($one, 'b', 2000);
    wait_for_effects("$one->{kind} b", 2000);
    wait_until('all to be judged again',
        sub { $puller->verdicts('applied') + $puller->verdicts('duplicate') >= 2000 + $before });
    is($_->{puller}->stop, 0, "$_->{kind}: stops with status 0") foreach @all;
    cmp_ok($puller->verdicts('duplicate'), '>=', $before - 20,
        'what had been applied is a duplicate');
};

subtest 'silent in the middle' => sub {
    create($own, 'silent');
    my $puller = start($own, 'silent', handler => 'apply_slowly');
    $own->publish('silent', payments('silent', 300));
    wait_until('some to be applied', sub { $puller->verdicts('applied') > 20 });
    kill('STOP', $own->{pid});
    my $event = $puller->wait_event('ack_failed', undef, 30);
    like("$event->{outcome} $event->{err}", qr/^transient .*timed out/i, 'is noticed by an ack');
    kill('CONT', $own->{pid});
    wait_for_effects('silent', 300);
    wait_until('all to be acknowledged', sub { $own->stats('silent')->{unacked} == 0 });
    is($puller->stop, 0, 'stops with status 0');
};

subtest 'a subscription that is not there yet, and one that is deleted' => sub {
    foreach my $name (qw(late deleted))
    {
        wait_for_effects("$name b", 5);
        is($other{$name}->stop, 0, "$name: stops with status 0");
    }
};
is(Inbox::Ledger::count($node, 'SELECT count(*) FROM inbox_failure'), 0, 'no message is blamed');
is_deeply([ Inbox::Puller->leaks(Inbox::Ledger::MEMO) ], [], 'no log shows a payload');
done_testing;
