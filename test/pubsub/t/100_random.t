#!/usr/bin/perl
# SPDX-License-Identifier: PostgreSQL
# Random calls, drawn from a seed (SEED), with faults: nothing is lost, order is kept, and the
# history tells it all.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PubSub;
use JSON::PP;
use Test::More;

my $seed  = $ENV{SEED}  || 1;
my $steps = $ENV{STEPS} || 600;
srand($seed);
diag("SEED=$seed");

my $server = PubSub->start('--seed', $seed, '--long-poll', 1);
$server->topic($_) foreach 'orders', 'dead';
my %subscriptions = (
    plain          => {},
    faulty         => {},
    ordered        => { enableMessageOrdering => JSON::PP::true },
    'ordered-once' =>
        { enableMessageOrdering => JSON::PP::true, enableExactlyOnceDelivery => JSON::PP::true },
    mortal => {
        enableMessageOrdering => JSON::PP::true,
        deadLetterPolicy      =>
            { deadLetterTopic => 'projects/p/topics/dead', maxDeliveryAttempts => 5 } });
$server->subscription($_, 'orders', %{ $subscriptions{$_} }) foreach sort keys %subscriptions;
$server->faults(
    { on => 'deliver', do => 'duplicate', probability => 0.1,  subscription => 'faulty' },
    { on => 'deliver', do => 'share',     probability => 0.1,  subscription => 'faulty' },
    { on => 'deliver', do => 'expire',    probability => 0.1,  subscription => 'faulty' },
    { on => 'pull',    do => 'expire',    probability => 0.1,  subscription => 'faulty' },
    { on => 'pull',    do => 'reorder',   probability => 0.3,  subscription => 'faulty' },
    { on => 'ack',     do => 'ignore',    probability => 0.1,  subscription => 'faulty' },
    { on => 'ack_id',  do => 'redeliver', probability => 0.05, subscription => 'faulty' });

my (%order, @published, %held);

sub publish
{
    my $key      = ('', 'A' .. 'E')[rand 6];
    my @messages = map { { data => 'x', $key eq '' ? () : (orderingKey => $key) } } 0 .. rand 4;
    foreach my $id ($server->publish('orders', @messages))
    {
        push @published,        $id;
        push @{ $order{$key} }, $id;
    }
    return;
}

sub some
{
    my ($list) = @_;
    return grep { rand() < 0.6 } @$list;
}

foreach my $step (1 .. $steps)
{
    my $name   = (sort keys %subscriptions)[rand keys %subscriptions];
    my $chance = rand();
    $held{$name} ||= [];
    if ($chance < 0.3)
    {
        publish();
    }
    elsif ($chance < 0.6)
    {
        $server->data_now($name, 1 + int rand 8);
        push @{ $held{$name} }, @{ $server->{last} };
    }
    elsif (my @chosen = some($held{$name}))
    {
        $chance < 0.85
            ? $server->ack($name, @chosen)
            : $server->modack($name, (0, 0, 1, 60)[rand 4], @chosen);
        $held{$name} = [grep { rand() < 0.5 } @{ $held{$name} }];
    }
}

# All that is left is taken as soon as it comes.
$server->clear_faults;
foreach my $name (sort keys %subscriptions)
{
    $server->must('POST', '/control/faults',
        { rules => [{ on => 'pull', nth => 1, do => 'expire', subscription => $name }] });
    PubSub::wait_for(
        "the rest of $name",
        sub {
            $server->ack($name, @{ $server->{last} }) if $server->data_now($name, 1000) ne '';
            return $server->counts($name)->{unacked} == 0;
        },
        30);
    pass("$name: everything can be had and acknowledged");
}

# What the history says of each.
my @history = $server->history;
is( scalar @published,
    scalar(grep { $_->{event} eq 'publish' && !$_->{deadLetterOf} } @history),
    'every publication is in the history');
foreach my $name (sort keys %subscriptions)
{
    my (%delivered, %acked, %last);
    my $wrong = '';
    foreach
        my $line (grep { ($_->{subscription} || '') eq "projects/p/subscriptions/$name" } @history)
    {
        my $id = $line->{messageId};
        if ($line->{event} eq 'deliver')
        {
            $delivered{$id}++;
            $wrong .= "$id was acknowledged. " if $acked{$id} && $name ne 'faulty';
        }
        $acked{$id} = 1    if $line->{event} eq 'ack' && $line->{outcome} eq 'done';
        delete $acked{$id} if $line->{event} eq 'ack-undone';
    }
    my $dead = grep { ($_->{deadLetterOf} || '') eq "projects/p/subscriptions/$name" } @history;
    is($wrong,                 '', "$name: nothing comes again that was acknowledged for good");
    is(scalar keys %delivered, scalar @published, "$name: every message was delivered");
    is( scalar(keys %acked) + $dead,
        scalar @published,
        "$name: every message is acknowledged or a dead letter at the end");
    next if $name eq 'faulty' || !$subscriptions{$name}{enableMessageOrdering};
    foreach my $key (grep { $_ ne '' } sort keys %order)
    {
        my %place;
        @place{ @{ $order{$key} } } = 0 .. $#{ $order{$key} };
        my $highest = -1;
        my @jumps;
        foreach my $line (
            grep {
                $_->{event} eq 'deliver' && $_->{subscription} eq "projects/p/subscriptions/$name"
            } @history)
        {
            my $place = $place{ $line->{messageId} };
            next if !defined $place;
            push @jumps, "$highest to $place" if $place > $highest + 1;
            $highest = $place if $place > $highest;
        }
        is("@jumps", '', "$name: no message of key $key comes before its predecessor");
    }
}
my %seen = map { $_->{event} => 1 } @history;
ok($seen{$_}, "the run had $_ in it") foreach 'expire', 'ack-undone', 'fault';
ok($server->stop, 'the server stops as it should');

done_testing();
