# SPDX-License-Identifier: PostgreSQL
# A running inbox-puller and its log.
#
#   my $puller = Inbox::Puller->start(service => $service, node => $node, handler => 'f', …);
#   $puller->wait_event('db_connected'); $puller->stop;
package Inbox::Puller;
use strict;
use warnings;
use parent 'Inbox::Child';
use File::Basename qw(basename);
use JSON::PP;
use POSIX qw(:sys_wait_h);
use PostgreSQL::Test::Utils;
use Inbox::Ledger;
use Inbox::Service;
use Inbox::Wait;

my $json = JSON::PP->new->utf8;
my @logs;

# A file that is still there after a failed test.
sub new_log
{
    my $name = basename($0) =~ s/\.\w+$//r;
    push @logs,
      sprintf('%s/%s_puller_%d.log', $PostgreSQL::Test::Utils::log_path, $name, @logs + 1);
    unlink $logs[-1];
    return $logs[-1];
}

# The lines, of all logs of this test, that hold one of these texts, which no log may hold.
sub leaks
{
    my ($class, @secrets) = @_;
    my $secret = join '|', map { quotemeta } @secrets;
    my @lines;
    foreach my $log (@logs)
    {
        open(my $fh, '<', $log) or die "could not read $log: $!\n";
        push @lines, grep { /$secret/ } <$fh>;
    }
    return @lines;
}

# service, node and handler are needed unless given otherwise in options; "options" are further
# arguments, "env" further environment, "prefix" a command that runs it (a sanitizer, a tracer);
# log_level undef leaves that option out.
sub start
{
    my ($class, %args) = @_;
    my $self = bless { log => $args{log} // new_log(), %args }, $class;
    my @command = (
        @{ $args{prefix} // [] },
        $args{program} // "$ENV{INBOX_ROOT}/puller/inbox-puller",
        '--log-format=' . ($args{log_format} // 'json'),
        exists $args{log_level} && !defined $args{log_level}
        ? () : '--log-level=' . ($args{log_level} // 'debug'),
        defined $args{subscription} ? ('--subscription', $args{subscription}) : (),
        defined $args{handler} ? ('--handler', $args{handler}) : (),
        @{ $args{options} // [] });
    push @command, '--dbname', $args{dbname} // $args{node}->connstr('postgres')
      if defined $args{dbname} || defined $args{node};
    my $user = Inbox::Ledger::puller();
    local %ENV = (%ENV, defined $user ? (PGUSER => $user) : (), %{ $args{env} // {} });
    $ENV{PUBSUB_EMULATOR_HOST} = $args{service}->host
      if $args{service} && !exists($args{env}{PUBSUB_EMULATOR_HOST});
    delete $ENV{PUBSUB_EMULATOR_HOST} unless defined $ENV{PUBSUB_EMULATOR_HOST};
    $self->{pid} = Inbox::Child::spawn($self->{log}, @command);
    return $self;
}

sub slurp_log
{
    my ($self) = @_;
    open(my $fh, '<', $self->{log}) or return '';
    local $/;
    return <$fh> // '';
}

# Every event of the log so far, decoded; lines that are no event are left out. A process that
# was killed may have left half a line.
sub events
{
    my ($self, $name) = @_;
    my @lines = split /\n/, $self->slurp_log;
    # Decoding takes its time, and most lines are of other events.
    @lines = grep { /"event":"\Q$name\E"/ } @lines if defined $name;
    my @events = grep { ref } map { eval { $json->decode($_) } } @lines;
    return defined $name ? grep { $_->{event} eq $name } @events : @events;
}

# Waits until an event of this name (that the filter likes) is logged; returns the first.
sub wait_event
{
    my ($self, $name, $filter, $seconds) = @_;
    return wait_until("event $name in $self->{log}",
        sub {
            my ($event) = grep { !$filter || $filter->($_) } $self->events($name);
            die "the puller ended with status $self->{status}:\n" . $self->slurp_log
              if !$event && !$self->is_running;
            $event;
        }, $seconds);
}

# How many messages got this verdict, by the log.
sub verdicts
{
    my ($self, $verdict) = @_;
    return scalar grep { ($_->{verdict} // '') eq $verdict } $self->events('message');
}

sub is_running
{
    my ($self) = @_;
    return 0 unless $self->{pid};
    if (waitpid($self->{pid}, WNOHANG) == $self->{pid})
    {
        $self->{status} = $? & 127 ? 'signal ' . ($? & 127) : $? >> 8;
        delete $self->{pid};
        return 0;
    }
    return 1;
}

sub signal
{
    my ($self, $signal) = @_;
    kill($signal, $self->{pid}) if $self->{pid};
}

# Waits for the end; returns the exit status, or "signal N".
sub wait_end
{
    my ($self, $seconds) = @_;
    wait_until('the puller to end', sub { !$self->is_running }, $seconds);
    return $self->{status};
}

# Stops it as a service manager does; returns the exit status.
sub stop
{
    my ($self, $seconds) = @_;
    $self->signal('TERM');
    return $self->wait_end($seconds // 40);
}

sub kill9
{
    my ($self) = @_;
    $self->signal('KILL');
    return $self->wait_end(10);
}

1;
