# SPDX-License-Identifier: PostgreSQL
# A running inbox-puller.
package Demo::Puller;
use strict;
use warnings;
use POSIX qw(WNOHANG);
use Inbox::Child;

# "log" is where it writes its events, as JSON; further arguments are options of inbox-puller.
sub start
{
    my ($class, $program, $log, @options) = @_;
    my $pid = Inbox::Child::spawn($log, $program, '--log-format=json', '--log-level=debug',
        @options);
    return bless { pid => $pid, log => $log, owner => $$ }, $class;
}

sub pid
{
    my ($self) = @_;
    return $self->{pid};
}

sub has_ended
{
    my ($self) = @_;
    return !$self->{pid} || waitpid($self->{pid}, WNOHANG) == $self->{pid} && delete $self->{pid};
}

sub hold
{
    my ($self) = @_;
    kill('STOP', $self->{pid});
}

sub go_on
{
    my ($self) = @_;
    kill('CONT', $self->{pid});
}

# Sends a signal and waits for the end; returns whether it ended by itself, with status 0.
sub end
{
    my ($self, $signal) = @_;
    my $pid = delete $self->{pid} or return 0;
    kill($signal, $pid);
    waitpid($pid, 0);
    return $? == 0;
}

sub last_events
{
    my ($self) = @_;
    open(my $log, '<', $self->{log}) or return '';
    my @lines = <$log>;
    splice(@lines, 0, -10) if @lines > 10;
    return join '', @lines;
}

sub DESTROY
{
    my ($self) = @_;
    local ($?, $!, $@);
    $self->end('KILL') if $self->{owner} == $$;
}

1;
