# SPDX-License-Identifier: PostgreSQL

=head1 NAME

Proxy - starts an inbox-proxy and commands it

=head1 SYNOPSIS

    my $proxy = Proxy->start('--protocol', 'postgres', '--to', "$host/.s.PGSQL.$port");
    $proxy->command('trigger on=commit-sent nth=1 do=cut');
    connect_to($proxy->{host}, $proxy->{port});
    is($proxy->stats->{fired}, 1);

=cut

package Proxy;

use strict;
use warnings;

use File::Temp qw(tempdir);
use IO::Socket::INET;
use JSON::PP;
use PubSub;

sub start
{
    my ($class, @options) = @_;
    my $dir  = tempdir(CLEANUP => 1);
    my $self = bless { dir => $dir, output => "$dir/output", host => '127.0.0.1' }, $class;
    $self->{pid} = PubSub::spawn($self->{output}, PubSub::program('inbox-proxy'), @options);
    ($self->{port}, my $control) = @{
        PubSub::wait_for(
            'the proxy to listen',
            sub {
                return PubSub::slurp($self->{output}) =~
                    /^listening on \S+:(\d+), control on \S+:(\d+)\n/m ? [$1, $2] : undef;
            }) };
    $self->{control} = IO::Socket::INET->new("127.0.0.1:$control") or die "no control: $!\n";
    return $self;
}

# One command; dies of an error.
sub command
{
    my ($self, $line) = @_;
    print { $self->{control} } "$line\n";
    my $answer = readline($self->{control});
    die "the proxy is gone\n" if !defined $answer;
    chomp $answer;
    die "$line: $answer\n" if $answer =~ /^error/;
    return $answer;
}

# Replaces all triggers.
sub triggers
{
    my ($self, @triggers) = @_;
    $self->command('clear');
    $self->command("trigger $_") foreach @triggers;
    return;
}

sub stats
{
    my ($self) = @_;
    return decode_json($self->command('stats'));
}

sub stop
{
    my ($self) = @_;
    my $pid = delete $self->{pid} or return 1;
    kill('TERM', $pid);
    waitpid($pid, 0);
    return $? == 0;
}

sub DESTROY
{
    my ($self) = @_;
    local ($?, $@);
    $self->stop;
}

1;
