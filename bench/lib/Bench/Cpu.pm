# SPDX-License-Identifier: PostgreSQL
# Processor time that processes have used, in seconds.
package Bench::Cpu;
use strict;
use warnings;
use Exporter 'import';
use POSIX qw(sysconf _SC_CLK_TCK);
our @EXPORT_OK = qw(seconds_of seconds_of_tree exact_seconds_of);

sub fields
{
    my ($pid) = @_;
    open(my $stat, '<', "/proc/$pid/stat") or return;
    # The name in front of them may hold anything.
    return split ' ', (<$stat> =~ s/.*\) //r);
}

# Of one process: to a hundredth of a second.
sub seconds_of
{
    my ($pid) = @_;
    my @fields = fields($pid);
    return @fields ? ($fields[11] + $fields[12]) / sysconf(_SC_CLK_TCK) : 0;
}

# Of a process and its children, also of those that have ended.
sub seconds_of_tree
{
    my ($pid) = @_;
    my @fields = fields($pid);
    my $sum = ($fields[11] + $fields[12] + $fields[13] + $fields[14]) / sysconf(_SC_CLK_TCK);
    foreach my $other (map { m{(\d+)$} } glob('/proc/[0-9]*'))
    {
        my @child = fields($other);
        $sum += ($child[11] + $child[12]) / sysconf(_SC_CLK_TCK) if @child && $child[1] == $pid;
    }
    return $sum;
}

# Of all threads that a process has now: to the nanosecond.
sub exact_seconds_of
{
    my ($pid) = @_;
    my $sum = 0;
    foreach my $path (glob("/proc/$pid/task/*/schedstat"))
    {
        open(my $file, '<', $path) or next;
        $sum += (split ' ', <$file>)[0];
    }
    return $sum / 1e9;
}

1;
