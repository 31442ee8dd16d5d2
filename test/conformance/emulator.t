#!/usr/bin/perl
# SPDX-License-Identifier: PostgreSQL
# One script against this project's server and against Google's emulator. Each difference is
# printed; it passes if "allowed" has it, with its reason, and what is there has to differ.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../pubsub/t/lib";
use Emulator;
use PubSub;
use Script;
use JSON::PP;
use Test::More;

plan(skip_all => Emulator::remedy()) if !Inbox::Emulator::find();

my %allowed;
open(my $list, '<', "$FindBin::RealBin/allowed") or die "allowed: $!\n";
while (my $line = <$list>)
{
    next if $line =~ /^(?:#|$)/;
    my ($step, $reason) = $line =~ /^(.*?) => (\S.*)$/ or die "allowed: not understood: $line";
    $allowed{$step} = $reason;
}
close($list);

my $ours     = PubSub->start;
my $emulator = Emulator->start;

# The two take turns at waiting, so they are asked at the same time.
my $asked = bless({ url => $emulator->{url} }, 'PubSub')->background('run_script');
sub PubSub::run_script { return Script::run($_[0]); }
my @here  = Script::run($ours);
my @there = $asked->();

is( join("\n", map { $_->[0] } @here),
    join("\n", map { $_->[0] } @there),
    'both work the whole script off');
my %expected = map { $_->[0] => $_->[1] } @there;
foreach my $step (@here)
{
    my ($name, $outcome) = @$step;
    my $google = defined $expected{$name} ? $expected{$name} : 'nothing';
    my $same   = $outcome eq $google;
    my $reason = delete $allowed{$name};
    note("differs: $name\n  emulator: $google\n  here:     $outcome\n  because:  "
            . ($reason || 'NOT ALLOWED'))
        if !$same;
    ok( $same ? !defined $reason : defined $reason,
        $same
        ? 'the same' . (defined $reason ? ', which "allowed" denies' : '') . ": $name"
        : "differs as allowed: $name");
}
fail("allowed to differ, and is no step: $_") foreach sort keys %allowed;

done_testing();
