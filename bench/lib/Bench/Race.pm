# SPDX-License-Identifier: PostgreSQL
# Two statements run by turns over the same payments, in a database of their own.
#
#   my $race = Bench::Race->new(database => …, name => …, driver => …, raw => $handle);
#   my $result = $race->run('--statement', $sql, '--statement', $other);
package Bench::Race;
use strict;
use warnings;
use Bench::Number qw(median quantile);

# database: a Demo::Database, in which "name" is created, from "template" if there is one; setup:
# arguments of psql that fill it; driver: the path of the program; rounds, warm, batches, size: as
# the driver takes them; raw: a file handle for every single round.
sub new
{
    my ($class, %args) = @_;
    my $self = bless { size => 200, %args }, $class;
    $self->{database}->query('-c', "CREATE DATABASE $self->{name}"
          . (defined $self->{template} ? " TEMPLATE $self->{template}" : ''));
    $self->query(@{ $self->{setup} }) if $self->{setup};
    return $self;
}

sub conninfo
{
    my ($self) = @_;
    return $self->{database}->conninfo('postgres') . " dbname=$self->{name}";
}

sub query
{
    my ($self, @arguments) = @_;
    return $self->{database}->query('--dbname', $self->conninfo, @arguments);
}

# Messages that each of the two statements is given.
sub messages
{
    my ($self) = @_;
    return $self->{size} * $self->{batches} * ($self->{warm} + $self->{rounds});
}

# A run that does less work than it claims would be the fastest of all.
sub check
{
    my ($self, $sql, $expected) = @_;
    my ($row) = $self->query('-c', $sql);
    die "$self->{name}: \"$sql\" gives $row->[0], not $expected: the run is void\n"
      if $row->[0] != $expected;
}

# Returns medians over the rounds: rate => [one, other], cpu => likewise, and of each round's own
# ratio of the other to the one: ratio, cpu_ratio. "slow" is the other's rate in the slowest round
# of a hundred.
sub run
{
    my ($self, @options) = @_;
    my @command = ($self->{driver}, '--dbname', $self->conninfo,
        (map { ("--$_", $self->{$_}) } qw(rounds warm batches size)), @options);
    my @rounds;
    open(my $run, '-|', @command) or die "could not run $command[0]: $!\n";
    while (my $line = <$run>)
    {
        $self->{raw}->print("$self->{name} $line");
        push @rounds, [ split ' ', $line ];
    }
    close($run) or die "the driver failed, see above\n";
    return {
        rate => [ median(map { $_->[0] } @rounds), median(map { $_->[2] } @rounds) ],
        cpu => [ median(map { $_->[1] } @rounds), median(map { $_->[3] } @rounds) ],
        slow => quantile(0.01, map { $_->[2] } @rounds),
        ratio => median(map { $_->[2] / $_->[0] } @rounds),
        cpu_ratio => median(map { $_->[3] / $_->[1] } @rounds),
    };
}

1;
