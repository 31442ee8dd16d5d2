# SPDX-License-Identifier: PostgreSQL

=head1 NAME

PubSub - starts an inbox-pubsub, or talks to any Pub/Sub server, over REST

=head1 SYNOPSIS

    my $server = PubSub->start('--long-poll', 2);
    $server->topic('orders');
    $server->subscription('orders-sub', 'orders', ackDeadlineSeconds => 10);
    $server->publish('orders', { data => 'text', attributes => { k => 'v' } });
    my @received = $server->pull('orders-sub', 10);
    $server->ack('orders-sub', @received);

Names are ids in project "p"; data are given and come as plain bytes. Every call dies on an HTTP
error, except call(), which returns the response. A server stops when its object goes.

=cut

package PubSub;

use strict;
use warnings;

use File::Basename qw(dirname);
use File::Spec;
use File::Temp qw(tempdir);
use HTTP::Tiny;
use JSON::PP;
use MIME::Base64 qw(encode_base64 decode_base64);
use POSIX        qw(:sys_wait_h);
use Time::HiRes  qw(sleep time);

my $json = JSON::PP->new->canonical->utf8;

# The programs under test: those of a sanitizer build if PUBSUB_BIN names its folder.
sub program
{
    my ($name) = @_;
    my $here = File::Spec->rel2abs(dirname(__FILE__));
    return ($ENV{PUBSUB_BIN} || "$here/../..") . "/$name";
}

# Waits until the condition gives something true, and returns it; dies after the seconds.
sub wait_for
{
    my ($what, $condition, $seconds) = @_;
    my $end = time + ($seconds || 20);
    while (1)
    {
        my $result = $condition->();
        return $result                      if $result;
        die "timed out waiting for $what\n" if time > $end;
        sleep(0.01);
    }
}

sub slurp
{
    my ($path) = @_;
    open(my $fh, '<', $path) or return '';
    local $/ = undef;
    my $text = <$fh>;
    return defined $text ? $text : '';
}

# Runs a program in the background with its output in a file; returns the pid.
sub spawn
{
    my ($output, @command) = @_;
    my $pid = fork();
    die "cannot fork: $!\n" if !defined $pid;
    return $pid             if $pid;
    open(STDOUT, '>',  $output)  or die "$output: $!\n";
    open(STDERR, '>&', \*STDOUT) or die "$output: $!\n";
    exec(@command) or die "$command[0]: $!\n";
}

sub start
{
    my ($class, @options) = @_;
    my $dir  = tempdir(CLEANUP => 1);
    my $self = bless { dir => $dir, output => "$dir/output", history => "$dir/history.jsonl" },
        $class;
    $self->{pid} = spawn(
        $self->{output}, program('inbox-pubsub'), '--listen',  '127.0.0.1:0',
        '--pid-file',    "$dir/pid",              '--history', $self->{history},
        @options);
    my $line = wait_for(
        'the server to listen',
        sub {
            die 'the server ended: ' . slurp($self->{output})
                if waitpid($self->{pid}, WNOHANG) != 0;
            return slurp($self->{output}) =~ /^listening on (\S+)\n/m ? $1 : undef;
        });
    $self->{url} = $line;
    return $self;
}

# Talks to a server that runs already.
sub at
{
    my ($class, $url) = @_;
    return bless { url => $url }, $class;
}

sub url    { return $_[0]{url}; }
sub host   { return $_[0]{url} =~ m{//(.*)} ? $1 : undef; }
sub output { return slurp($_[0]{output}); }

# Ends the server; true if it ended as it should.
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
    return if !$self->{pid} || ($self->{owner} && $self->{owner} != $$);
    $self->stop;
}

sub http
{
    my ($self, %options) = @_;
    return HTTP::Tiny->new(timeout => 120, keep_alive => 0, %options);
}

# One request to /v1/projects/p/PATH, or to an absolute path; returns HTTP::Tiny's response with
# the parsed body in {json}. Large bodies stay as they are: parsing them here takes seconds.
sub call
{
    my ($self, $method, $path, $body, %headers) = @_;
    my $url  = $self->{url} . ($path =~ m{^/} ? $path : "/v1/projects/p/$path");
    my %args = (
        headers => { 'Content-Type' => 'application/json', %{ $self->{headers} || {} }, %headers });
    $args{content} = ref $body ? $json->encode($body) : $body if defined $body;
    my $response = $self->http->request($method, $url, \%args);
    $response->{json} = eval { $json->decode($response->{content}) }
        if length $response->{content} < 1_000_000;
    return $response;
}

sub must
{
    my ($self, @request) = @_;
    my $response = $self->call(@request);
    die "$request[0] $request[1]: $response->{status} $response->{content}\n"
        if !$response->{success};
    return $response->{json};
}

sub topic
{
    my ($self, $id, %settings) = @_;
    return $self->must('PUT', "topics/$id", \%settings);
}

sub subscription
{
    my ($self, $id, $topic, %settings) = @_;
    return $self->must('PUT', "subscriptions/$id",
        { topic => "projects/p/topics/$topic", %settings });
}

# A message as the interface wants it.
sub message
{
    my ($message) = @_;
    my %copy = ref $message ? %$message : (data => $message);
    $copy{data} = encode_base64($copy{data}, '') if defined $copy{data};
    return \%copy;
}

sub publish
{
    my ($self, $topic, @messages) = @_;
    my $answer = $self->must('POST', "topics/$topic:publish",
        { messages => [map { message($_) } @messages] });
    return @{ $answer->{messageIds} };
}

sub pull
{
    my ($self, $subscription, $max, %settings) = @_;
    my $answer =
        $self->must('POST', "subscriptions/$subscription:pull", { maxMessages => $max, %settings });
    my @received = @{ $answer->{receivedMessages} || [] };
    foreach my $message (map { $_->{message} } @received)
    {
        $message->{data} = decode_base64($message->{data}) if defined $message->{data};
    }
    return @received;
}

# What is there now, without waiting; in the form of the data joined by blanks.
sub data_now
{
    my ($self, $subscription, $max) = @_;
    my @received = $self->pull($subscription, $max || 100, returnImmediately => JSON::PP::true);
    $self->{last} = \@received;
    return join(' ', map { $_->{message}{data} } @received);
}

sub ids
{
    return [map { ref $_ ? $_->{ackId} : $_ } @_];
}

sub ack
{
    my ($self, $subscription, @received) = @_;
    return $self->call('POST', "subscriptions/$subscription:acknowledge",
        { ackIds => ids(@received) });
}

sub modack
{
    my ($self, $subscription, $seconds, @received) = @_;
    return $self->call(
        'POST',
        "subscriptions/$subscription:modifyAckDeadline",
        { ackIds => ids(@received), ackDeadlineSeconds => $seconds });
}

# Makes the same call in a child; returns a function that waits for its result.
sub background
{
    my ($self, $method, @args) = @_;
    pipe(my $read, my $write) or die "pipe: $!\n";
    my $pid = fork();
    die "cannot fork: $!\n" if !defined $pid;
    if (!$pid)
    {
        delete $self->{pid};
        my @result = eval { $self->$method(@args) };
        my $text   = $json->encode({ result => \@result, error => $@, at => time });
        syswrite($write, $text);
        POSIX::_exit(0);
    }
    close($write);
    return sub {
        local $/ = undef;
        my $text = <$read>;
        waitpid($pid, 0);
        my $answer = $json->decode($text);
        $self->{finished} = $answer->{at};
        die $answer->{error} if $answer->{error};
        return @{ $answer->{result} };
    };
}

sub stats
{
    my ($self) = @_;
    return $self->must('GET', '/control/stats');
}

# The counts of one subscription.
sub counts
{
    my ($self, $subscription) = @_;
    return $self->stats->{subscriptions}{"projects/p/subscriptions/$subscription"};
}

sub faults
{
    my ($self, @rules) = @_;
    return $self->must('POST', '/control/faults', { rules => \@rules });
}

sub clear_faults
{
    my ($self) = @_;
    return $self->must('DELETE', '/control/faults');
}

# The lines of the history, of one event if it is named.
sub history
{
    my ($self, $event) = @_;
    my @lines = map { $json->decode($_) } split(/\n/, slurp($self->{history}));
    return grep { !defined $event || $_->{event} eq $event } @lines;
}

# What an error answer says: "400 INVALID_ARGUMENT".
sub problem
{
    my ($response) = @_;
    return "$response->{status} " . ($response->{json}{error}{status} || 'without a status');
}

1;
