# SPDX-License-Identifier: PostgreSQL
package Bench::Number;
use strict;
use warnings;
use Exporter 'import';
our @EXPORT_OK = qw(median quantile grouped);

sub median
{
    my @sorted = sort { $a <=> $b } @_;
    my $middle = int(@sorted / 2);
    return @sorted % 2 ? $sorted[$middle] : ($sorted[ $middle - 1 ] + $sorted[$middle]) / 2;
}

# The value that this part (0 to 1) of the others is not above.
sub quantile
{
    my ($part, @values) = @_;
    my @sorted = sort { $a <=> $b } @values;
    return $sorted[ int($part * $#sorted) ];
}

# 12345.6 as 12,346.
sub grouped
{
    my $digits = reverse sprintf('%.0f', $_[0]);
    $digits =~ s/(\d{3})(?=\d)/$1,/g;
    return scalar reverse $digits;
}

1;
