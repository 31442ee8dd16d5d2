# SPDX-License-Identifier: PostgreSQL
# A Pub/Sub service under test: the project's own server, or Google's emulator where it is found.
#
#   my $service = Inbox::Service->start('own');     # or 'google'
#   $service->create_topic('pay'); $service->create_subscription('pay-sub', 'pay');
#   $service->publish('pay', { data => '{"a": 1}', attributes => { idempotency_key => 'k1' } });
package Inbox::Service;
use strict;
use warnings;
use parent 'Inbox::Child';
use File::Temp qw(tempdir);
use HTTP::Tiny;
use IO::Socket::INET;
use JSON::PP;
use MIME::Base64 qw(encode_base64);
use Inbox::Emulator;
use Inbox::Wait;

my $json = JSON::PP->new->utf8->canonical;

# The kinds to run a test against. Where everything can be had, a test of one kind is half a test; but
# what a service does differently has nothing to do with what is below the puller.
sub kinds
{
    return 'own' if ($ENV{INBOX_VARIANT} // '') eq 'managed';
    return split(/,/, $ENV{INBOX_KINDS}) if $ENV{INBOX_KINDS};
    my $found = Inbox::Emulator::find();
    die "Google's emulator is not on this machine\n" if $ENV{CI} && !$found;
    return ('own', $found ? 'google' : ());
}

sub free_port
{
    my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1, Proto => 'tcp')
      or die "no free port: $!\n";
    return $socket->sockport;
}

sub start
{
    my ($class, $kind, @options) = @_;
    my $dir = tempdir(CLEANUP => 1);
    my $self = bless { kind => $kind, dir => $dir, log => "$dir/service.log", project => 'p',
        options => \@options, port => 0, http => HTTP::Tiny->new(timeout => 120) }, $class;
    $self->begin;
    return $self;
}

# Starts it; after stop() again at the same address, without anything it had before.
sub begin
{
    my ($self) = @_;
    unlink $self->{log};
    $self->{kind} eq 'google' ? $self->start_google : $self->start_own;
    ($self->{port}) = $self->{url} =~ /:(\d+)$/;
}

sub start_google
{
    my ($self) = @_;
    my $port = $self->{port} || free_port();
    $self->{pid} = Inbox::Child::spawn($self->{log}, Inbox::Emulator::find(), '--host=127.0.0.1', "--port=$port");
    $self->{url} = "http://127.0.0.1:$port";
    wait_until('the emulator to listen',
        sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) }, 60);
}

sub start_own
{
    my ($self) = @_;
    $self->{pid} = Inbox::Child::spawn($self->{log}, "$ENV{INBOX_ROOT}/test/pubsub/inbox-pubsub",
        '--listen', "127.0.0.1:$self->{port}", @{ $self->{options} });
    $self->{url} = wait_until('the Pub/Sub server to listen',
        sub { $self->slurp_log =~ /^listening on (\S+)/m ? $1 : undef }, 30);
}

sub slurp_log
{
    my ($self) = @_;
    open(my $fh, '<', $self->{log}) or return '';
    local $/;
    return <$fh> // '';
}

# host:port, as PUBSUB_EMULATOR_HOST wants it.
sub host
{
    my ($self) = @_;
    return $self->{url} =~ s{^https?://}{}r;
}

# Returns the decoded answer; dies when it is not a 2xx.
sub call
{
    my ($self, $method, $path, $body) = @_;
    my $answer = $self->{http}->request($method, "$self->{url}$path",
        { headers => { 'Content-Type' => 'application/json',
                defined $self->{token} ? (Authorization => "Bearer $self->{token}") : () },
            defined $body ? (content => $json->encode($body)) : () });
    die "$method $path: $answer->{status} $answer->{content}\n" unless $answer->{success};
    return length($answer->{content}) ? $json->decode($answer->{content}) : {};
}

sub topic        { "projects/$_[0]->{project}/topics/$_[1]" }
sub subscription { "projects/$_[0]->{project}/subscriptions/$_[1]" }

sub create_topic
{
    my ($self, $topic) = @_;
    return $self->call('PUT', '/v1/' . $self->topic($topic), {});
}

# Further fields of a Subscription follow as pairs; the ack deadline is 10 s unless given.
sub create_subscription
{
    my ($self, $name, $topic, %fields) = @_;
    return $self->call('PUT', '/v1/' . $self->subscription($name),
        { topic => $self->topic($topic), ackDeadlineSeconds => 10, %fields });
}

# Messages from the front that may be published together: of one ordering key.
sub take_some
{
    my ($messages) = @_;
    my $key = $messages->[0]{orderingKey} // '';
    my $count = 1;

    $count++
      while $count < 500 && $count < @$messages && ($messages->[$count]{orderingKey} // '') eq $key;
    return splice(@$messages, 0, $count);
}

# Each message: { data => bytes, attributes => {…}, orderingKey => … }. Returns the message ids.
sub publish
{
    my ($self, $topic, @messages) = @_;
    my @ids;
    while (@messages)
    {
        my @some = take_some(\@messages);
        my @wire = map {
            my %message = %$_;
            $message{data} = encode_base64($message{data}, '') if defined $message{data};
            \%message
        } @some;
        my $answer = $self->call('POST', '/v1/' . $self->topic($topic) . ':publish',
            { messages => \@wire });
        push @ids, @{ $answer->{messageIds} };
    }
    return @ids;
}

# What a pull that does not wait brings now: the messages nobody has leased.
sub pull_now
{
    my ($self, $name, $max) = @_;
    my $answer = $self->call('POST', '/v1/' . $self->subscription($name) . ':pull',
        { maxMessages => $max // 100, returnImmediately => JSON::PP::true });
    return @{ $answer->{receivedMessages} // [] };
}

# ---- the project's own server only --------------------------------------------------------

# Rules as docs/pubsub-server.md describes them; they apply from the next request on.
sub add_faults
{
    my ($self, @rules) = @_;
    $self->call('POST', '/control/faults', { rules => \@rules });
}

sub clear_faults
{
    my ($self) = @_;
    $self->call('DELETE', '/control/faults');
}

# How often rules for this action have fired since the rules were cleared.
sub fired
{
    my ($self, $action) = @_;
    my $count = 0;
    $count += $_->{fired}
      foreach grep { $_->{do} eq $action } @{ $self->call('GET', '/control/faults')->{rules} };
    return $count;
}

sub stats
{
    my ($self, $name) = @_;
    my $stats = $self->call('GET', '/control/stats');
    return defined $name ? $stats->{subscriptions}{ $self->subscription($name) } : $stats;
}

# Whether nobody pulls from the subscription, or holds a message of it.
sub is_untouched
{
    my ($self, $name) = @_;
    my $stats = $self->stats($name);
    return $stats->{waitingPulls} == 0 && $stats->{leased} == 0;
}

# Every event of the history, which needs the option --history; of one kind when it is named.
sub history
{
    my ($self, $event) = @_;
    my $answer = $self->{http}->get("$self->{url}/control/history");
    my @events = map { $json->decode($_) } split /\n/, $answer->{content};
    return defined $event ? grep { $_->{event} eq $event } @events : @events;
}

sub stop { $_[0]->kill_all }

1;
