# SPDX-License-Identifier: PostgreSQL
# Kills pullers with -9 while they work, looking each time at what they were in the middle of.
package Inbox::Kills;
use strict;
use warnings;
use Time::HiRes qw(sleep);
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Wait;

# How often a moment of the wanted kind is looked for before any other is taken.
use constant LOOKS => 10;

# node, service, name (of the subscription), work; history: the file of the project's own server,
# opened for reading, or undef; puller: arguments of every puller.
sub new
{
    my ($class, %args) = @_;
    return bless { kills => 0, transaction => 0, ack => 0, void => 0, pullers => [], %args },
      $class;
}

sub start
{
    my ($self) = @_;
    my $name = 'puller' . (1 + @{ $self->{pullers} });
    my $puller = Inbox::Puller->start(
        service => $self->{service},
        subscription => $self->{service}->subscription($self->{name}),
        dbname => $self->{node}->connstr('postgres') . " application_name=$name",
        %{ $self->{puller} });
    $puller->{application} = $name;
    push @{ $self->{pullers} }, $puller;
    return $puller;
}

sub is_in_transaction
{
    my ($self, $puller) = @_;
    return Inbox::Ledger::count($self->{node}, "SELECT count(*) FROM pg_stat_activity"
          . " WHERE application_name = '$puller->{application}' AND xact_start IS NOT NULL");
}

# Whether it logged a verdict whose acknowledgement the service does not have. Only the project's
# own server tells, by its history.
sub is_ack_missing
{
    my ($self, $puller) = @_;
    my $acked = $self->acked or return 0;
    return scalar grep { defined $_->{verdict} && !$acked->{ $_->{message_id} } }
      $puller->events('message');
}

# The ids of all messages that were acknowledged so far; reads on where it stopped.
sub acked
{
    my ($self) = @_;
    my $file = $self->{history} or return undef;
    seek($file, 0, 1);
    while (my $line = <$file>)
    {
        $self->{acked}{$1} = 1 if $line =~ /"event":"ack".*"messageId":"(\d+)"/;
    }
    return $self->{acked} //= {};
}

# Stops it where it is, so that what is seen is still so when it is killed.
sub freeze
{
    my ($puller) = @_;
    $puller->signal('STOP');
    wait_until('the puller to freeze', sub {
        open(my $fh, '<', "/proc/$puller->{pid}/stat") or die "the puller is gone: $!\n";
        <$fh> =~ /\) T /;
    }, 10, 0.001);
}

# Kills it at a moment of the wanted kind, 'transaction' or 'ack', if one comes; or at 'any'.
sub kill
{
    my ($self, $puller, $wanted) = @_;
    my %is;
    foreach my $look (1 .. LOOKS)
    {
        freeze($puller);
        %is = (any => 1, transaction => $self->is_in_transaction($puller),
            ack => $self->is_ack_missing($puller));
        last if $is{$wanted};
        $puller->signal('CONT');
        sleep(rand(0.02));
    }
    $puller->kill9;
    $self->{kills}++;
    $self->{$_} += $is{$_} ? 1 : 0 foreach qw(transaction ack);
    $self->{void}++ unless $is{transaction} || $is{ack};
}

# One life: it starts, works off some messages and is killed.
sub live_and_die
{
    my ($self, $wanted) = @_;
    my $share = 20 + int(rand(150));
    my $before = $self->{work}->applied($self->{node});
    my $puller = $self->start;
    $self->{work}->wait_applied($self->{node}, 40, $before + $share);
    $self->kill($puller, $wanted);
}

# Messages whose verdict was "duplicate", in all lives.
sub duplicates
{
    my ($self) = @_;
    my $count = 0;
    $count += $_->verdicts('duplicate') foreach @{ $self->{pullers} };
    return $count;
}

1;
