# SPDX-License-Identifier: PostgreSQL
# What the demo prints: lines that stay, and one that shows the progress. On a terminal that one
# is written over again and again, elsewhere it becomes a line a second.
package Demo::Screen;
use strict;
use warnings;
use Time::HiRes qw(time);

sub new
{
    my ($class) = @_;
    $| = 1;
    return bless { start => time, terminal => -t STDOUT, shown => 0, dirty => 0 }, $class;
}

sub elapsed
{
    my ($self) = @_;
    return time - $self->{start};
}

# 6000 as 6,000.
sub grouped
{
    my ($number) = @_;
    return scalar reverse(reverse($number) =~ s/(\d{3})(?=\d)/$1,/gr);
}

# A line that stays.
sub say
{
    my ($self, $line) = @_;
    print "\r\e[K" if $self->{dirty};
    $self->{dirty} = 0;
    print "$line\n";
}

# The same with the time before it.
sub tell
{
    my ($self, $line) = @_;
    $self->say(sprintf('%6.1f s  %s', $self->elapsed, $line));
}

sub progress
{
    my ($self, $line) = @_;
    my $now = time;
    return if $now < $self->{shown} + ($self->{terminal} ? 0.1 : 1);
    $self->{shown} = $now;
    return $self->tell($line) unless $self->{terminal};
    printf "\r\e[K%6.1f s  %s", $self->elapsed, $line;
    $self->{dirty} = 1;
}

1;
