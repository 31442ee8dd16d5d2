# SPDX-License-Identifier: PostgreSQL

=head1 NAME

Emulator - Google's Pub/Sub emulator, if it is on this machine

=head1 SYNOPSIS

    my $path = Inbox::Emulator::find() or plan(skip_all => Emulator::remedy());
    my $emulator = Emulator->start;
    ... $emulator->{url} ...

It ends with its children when the object goes.

=cut

package Emulator;

use strict;
use warnings;

use File::Basename qw(dirname);
use File::Temp     qw(tempdir);
use IO::Socket::INET;
use POSIX qw(setsid);
use lib dirname(__FILE__) . '/../../e2e/lib';
use Inbox::Emulator;
use PubSub;

sub remedy
{
    return
        "Google's Pub/Sub emulator is not on this machine (gcloud components install pubsub-emulator, "
        . 'or the package google-cloud-cli-pubsub-emulator; PUBSUB_EMULATOR may name its program)';
}

sub free_port
{
    my $socket = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1:0')
        or die "no port: $!\n";
    return $socket->sockport;
}

sub start
{
    my ($class) = @_;
    my $dir     = tempdir(CLEANUP => 1);
    my $port    = free_port();
    my $self    = bless { url => "http://127.0.0.1:$port", output => "$dir/output" }, $class;
    $self->{pid} = fork();
    die "cannot fork: $!\n" if !defined $self->{pid};
    if (!$self->{pid})
    {
        # A shell script that starts a Java machine: the group ends as a whole.
        setsid();
        open(STDOUT, '>',  $self->{output}) or die "$self->{output}: $!\n";
        open(STDERR, '>&', \*STDOUT)        or die "$self->{output}: $!\n";
        exec(Inbox::Emulator::find(), '--host=127.0.0.1', "--port=$port", "--data-dir=$dir/data")
            or die "exec: $!\n";
    }
    PubSub::wait_for(
        "Google's emulator",
        sub {
            return IO::Socket::INET->new("127.0.0.1:$port")
                && PubSub::slurp($self->{output}) =~ /Server started/;
        },
        60);
    return $self;
}

sub DESTROY
{
    my ($self) = @_;
    my $pid = delete $self->{pid} or return;
    local ($?, $@);
    kill('TERM', -$pid);
    waitpid($pid, 0);
    return;
}

1;
