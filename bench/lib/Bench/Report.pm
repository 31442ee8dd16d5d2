# SPDX-License-Identifier: PostgreSQL
# What a benchmark prints: a table for people while it runs, lines for machines at the end.
package Bench::Report;
use strict;
use warnings;
use Bench::Number qw(grouped);

sub new
{
    my ($class, @columns) = @_;
    my $self = bless { lines => [], short => 0 }, $class;
    printf "%-34s %11s %11s %7s %8s\n", @columns, 'ratio', 'target';
    return $self;
}

# A ratio, or none, that is to be at least ("least") or at most ("most") the target, or has none.
sub add
{
    my ($self, %row) = @_;
    my $target = defined $row{least} ? sprintf('>=%.2f', $row{least})
      : defined $row{most} ? sprintf('<=%.2f', $row{most}) : '-';
    my $good = defined $row{least} ? $row{ratio} >= $row{least}
      : !defined $row{most} || $row{ratio} <= $row{most};
    my $word = $good ? 'ok' : 'short';

    my $ratio = defined $row{ratio} ? sprintf('%.2f', $row{ratio}) : '-';
    printf "%-34s %11s %11s %7s %8s %s%s\n", $row{title}, (map { grouped($_) } @{ $row{values} }),
      $ratio, $target, $word, defined $row{note} ? "  ($row{note})" : '';
    push @{ $self->{lines} }, sprintf('bench %s %.0f %s %s %s', $row{name},
        $row{values}[-1], $ratio, $target, $word);
    $self->{short}++ unless $good;
}

# A target that is missed is a result, not an error.
sub finish
{
    my ($self) = @_;
    print "\n", map { "$_\n" } @{ $self->{lines} };
}

1;
