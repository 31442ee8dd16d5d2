# SPDX-License-Identifier: PostgreSQL
# A program that a test runs beside itself; it ends with the object at the latest.
package Inbox::Child;
use strict;
use warnings;
use POSIX qw(setsid);

# A process of its own session, so that what it starts can be stopped with it. Its output goes to
# the log. Returns the process id.
sub spawn
{
    my ($log, @command) = @_;
    my $pid = fork() // die "could not fork: $!\n";
    if ($pid == 0)
    {
        setsid();
        open(STDIN, '<', '/dev/null');
        open(STDOUT, '>>', $log);
        open(STDERR, '>&', \*STDOUT);
        exec(@command) or POSIX::_exit(127);
    }
    return $pid;
}

# With all it has started.
sub kill_all
{
    my ($self) = @_;
    return unless $self->{pid};
    kill('KILL', -$self->{pid});
    waitpid($self->{pid}, 0);
    delete $self->{pid};
}

sub DESTROY
{
    my ($self) = @_;
    local ($?, $!, $@);
    $self->kill_all;
}

1;
