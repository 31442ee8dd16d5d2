# SPDX-License-Identifier: PostgreSQL
# Waiting for conditions: never for a time.
package Inbox::Wait;
use strict;
use warnings;
use Exporter 'import';
use Time::HiRes qw(time sleep);
our @EXPORT = qw(wait_until);

# How many times longer to wait before giving up where the machine is not one's own.
use constant PATIENCE => $ENV{CI} ? 4 : 1;

# Calls the condition every $pause seconds until it is true, or dies with $what after $seconds.
sub wait_until
{
    my ($what, $condition, $seconds, $pause) = @_;
    my $end = time + PATIENCE * ($seconds // 60);
    while (1)
    {
        my $value = $condition->();
        return $value if $value;
        die "waited in vain for: $what\n" if time > $end;
        sleep($pause // 0.05);
    }
}

1;
