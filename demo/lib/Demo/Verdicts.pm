# SPDX-License-Identifier: PostgreSQL
# The verdicts in the logs of the pullers, read on while they are written.
package Demo::Verdicts;
use strict;
use warnings;

sub new
{
    my ($class) = @_;
    return bless { logs => [], rest => {}, answered => {}, count => {} }, $class;
}

sub watch
{
    my ($self, $path) = @_;
    open(my $fh, '+>>', $path) or die "could not open $path: $!\n";
    push @{ $self->{logs} }, $fh;
}

sub take
{
    my ($self, $line) = @_;
    return unless $line =~ /"event":"(?:message|dead_letter)",(?:"verdict":"(\w+)")?
        .*"message_id":"(\w+)"/x;
    $self->{count}{ $1 // 'dead' }++;
    $self->{answered}{$2} = 1;
}

# Reads what was written since the last call. Half a line is the end of one that is being written.
sub read
{
    my ($self) = @_;
    foreach my $log (@{ $self->{logs} })
    {
        seek($log, 0, 1);
        while (my $line = <$log>)
        {
            $line = delete($self->{rest}{$log}) . $line if exists $self->{rest}{$log};
            $line =~ /\n\z/ ? $self->take($line) : ($self->{rest}{$log} = $line);
        }
    }
}

sub count
{
    my ($self, $verdict) = @_;
    return $self->{count}{$verdict} // 0;
}

# How many different messages have had a verdict.
sub answered
{
    my ($self) = @_;
    return scalar keys %{ $self->{answered} };
}

1;
