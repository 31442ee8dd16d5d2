# SPDX-License-Identifier: PostgreSQL
# Payments, some of them published twice, and the proof that a ledger holds each of them once.
#
#   my $work = Inbox::Workload->new(count => 5000, twice => 1000);
#   $work->publish($service, 'pay'); $work->wait_applied($node); $work->is_exact($node);
package Inbox::Workload;
use strict;
use warnings;
use List::Util qw(shuffle);
use Test::More;
use Inbox::Ledger;
use Inbox::Wait;

# Seconds: the ack deadline that Inbox::Service gives a subscription, and one more.
use constant LEASE => 11;

# count: keys; twice: how many of them are published a second time, as a message of its own,
# somewhere later; prefix: what every key begins with.
sub new
{
    my ($class, %args) = @_;
    my $self = bless { count => 100, twice => 0, prefix => 'k', %args, balance => {} }, $class;
    my $seed = $ENV{INBOX_SEED} // int(rand(2**31));
    note "INBOX_SEED=$seed";
    srand($seed);
    foreach my $number (1 .. $self->{count})
    {
        my ($account, $amount) = (1 + int(rand(50)), 1 + int(rand(1000)));
        push @{ $self->{messages} }, Inbox::Ledger::payment("$self->{prefix}$number", $account, $amount);
        $self->{balance}{$account} += $amount;
        $self->{balance}{0} -= $amount;
    }
    $self->repeat($_) foreach (shuffle(0 .. $self->{count} - 1))[ 0 .. $self->{twice} - 1 ];
    return $self;
}

sub repeat
{
    my ($self, $place) = @_;
    my $messages = $self->{messages};
    my $later = $place + 1 + int(rand(@$messages - $place));
    splice(@$messages, $later, 0, $messages->[$place]);
}

sub publish
{
    my ($self, $service, $topic) = @_;
    return $service->publish($topic, @{ $self->{messages} });
}

sub applied
{
    my ($self, $node) = @_;
    return Inbox::Ledger::count($node,
        "SELECT count(*) FROM (SELECT DISTINCT key FROM effect WHERE key LIKE '$self->{prefix}%') t");
}

sub wait_applied
{
    my ($self, $node, $seconds, $count) = @_;
    $count //= $self->{count};
    wait_until("$count messages to be applied", sub { $self->applied($node) >= $count }, $seconds);
}

# Three tests: every payment is there once, no other is, and the balances are those of the
# messages, added up here and not by the database.
sub is_exact
{
    my ($self, $node, $name) = @_;
    my $count = $self->{count};
    my $expected = join "\n", map { "$_ " . ($self->{balance}{$_} // 0) } 0 .. 50;
    $name = defined $name ? "$name: " : '';
    is(Inbox::Ledger::summary($node), "$count $count 0 0", "${name}every payment is there once");
    is(Inbox::Ledger::count($node, "SELECT id || ' ' || balance FROM account ORDER BY id"),
        $expected, "${name}every balance is the sum of its payments");
    is(Inbox::Ledger::count($node,
            "SELECT count(*) FROM inbox_claim WHERE key LIKE '$self->{prefix}%'"),
        $count, "${name}every payment has its claim");
}

# Two tests: the puller stops, and nothing is left in the subscription. Google's emulator tells
# only by what it delivers, after every lease has ended. The project's own server has a third: when
# it got an acknowledgement the key was in the database, and in the standby if it knows one.
sub all_acked
{
    my ($self, $service, $name, $puller, $what) = @_;
    my $own = $service->{kind} eq 'own';
    # What a puller that was killed had extended stays leased for a minute.
    eval { wait_until('acks', sub { $service->stats($name)->{unacked} == 0 }, 100) } if $own;
    quiet($puller) unless $own;
    is($puller->stop, 0, "$what; the puller stops with status 0");
    is($own ? $service->stats($name)->{unacked} : redelivered($service, $name), 0, $what);
    none_lost($service) if $own && $service->stats->{lookup};
}

sub none_lost
{
    my ($service) = @_;
    my $sides = wait_until('every acknowledged key to be looked up', sub {
        my $sides = $service->stats->{lookup};
        (grep { $_->{pending} > 0 } values %$sides) ? undef : $sides;
    }, 30);
    my $lost = join ', ', map { "$_ $sides->{$_}{lost}" } sort keys %$sides;
    unlike($lost, qr/[1-9]/, "what was acknowledged was there: lost on $lost");
}

# Waits until no verdict was given for longer than a lease lasts that was never extended.
sub quiet
{
    my ($puller) = @_;
    my ($verdicts, $since) = (-1, time);
    wait_until('the puller to have nothing to do', sub {
        my $now = $puller->events('message');
        ($verdicts, $since) = ($now, time) if $now != $verdicts;
        time > $since + LEASE;
    }, 60);
}

# How many messages come although no puller holds any.
sub redelivered
{
    my ($service, $name) = @_;
    my $end = time + 1;
    my $came = 0;
    $came += $service->pull_now($name, 1000) until time > $end;
    return $came;
}

1;
