# SPDX-License-Identifier: PostgreSQL
# The tests' TCP proxy, in front of PostgreSQL or of a Pub/Sub service.
#
#   my $proxy = Inbox::Proxy->start(to => $socket_or_address, protocol => 'postgres');
#   $proxy->command('latency 50'); $proxy->stats->{roundTrips};
package Inbox::Proxy;
use strict;
use warnings;
use parent 'Inbox::Child';
use File::Temp qw(tempdir);
use IO::Socket::INET;
use JSON::PP;
use Inbox::Wait;

# "to" is ADDRESS:PORT or the path of a Unix socket; "options" are further arguments.
sub start
{
    my ($class, %args) = @_;
    my $dir = tempdir(CLEANUP => 1);
    my $self = bless { log => "$dir/proxy.log", dir => $dir }, $class;
    $self->{pid} = Inbox::Child::spawn($self->{log}, "$ENV{INBOX_ROOT}/test/pubsub/inbox-proxy",
        '--to', $args{to}, '--protocol', $args{protocol} // 'tcp', @{ $args{options} // [] });
    ($self->{host}, $self->{port}, my $control) = @{
        wait_until('the proxy to listen', sub {
            open(my $fh, '<', $self->{log}) or return;
            local $/;
            return <$fh> =~ /^listening on (\S+):(\d+), control on (\S+)/m ? [ $1, $2, $3 ] : undef;
        }, 30)
    };
    $self->{control} = IO::Socket::INET->new(PeerAddr => $control)
      or die "could not reach the proxy's control port: $!\n";
    return $self;
}

# In front of a PostgreSQL::Test::Cluster's Unix socket.
sub before_node
{
    my ($class, $node, @options) = @_;
    return $class->start(to => $node->host . '/.s.PGSQL.' . $node->port, protocol => 'postgres',
        options => \@options);
}

# A connection string that goes through it.
sub connstr
{
    my ($self) = @_;
    return "host=$self->{host} port=$self->{port} dbname=postgres";
}

# One command line; returns the answer, dies when it is an error.
sub command
{
    my ($self, $line) = @_;
    $self->{control}->print("$line\n");
    my $answer = readline($self->{control}) // die "the proxy has ended\n";
    chomp $answer;
    die "the proxy refuses \"$line\": $answer\n" if $answer =~ /^error/;
    return $answer;
}

sub stats
{
    my ($self) = @_;
    return JSON::PP->new->decode($self->command('stats'));
}

sub stop { $_[0]->kill_all }

1;
