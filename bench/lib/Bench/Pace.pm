# SPDX-License-Identifier: PostgreSQL
# Messages published at a rate, and how long after that their verdict was durable.
#
#   my @milliseconds = Bench::Pace::latencies($crowd, name => 'slow', rate => 10, seconds => 5);
package Bench::Pace;
use strict;
use warnings;
use Bench::Crowd;
use HTTP::Tiny;
use JSON::PP;
use MIME::Base64 qw(encode_base64);
use Time::HiRes qw(time sleep);
use Time::Local qw(timegm);
use Inbox::Wait;

# More of them at once, rather than more requests a second.
use constant REQUESTS => 100;

# Everything is encoded before the first is sent: the publisher shares the processors.
sub bodies
{
    my ($count, $each) = @_;
    my $json = JSON::PP->new;
    my @bodies;
    for (my $n = 1; $n <= $count; $n += $each)
    {
        my @messages = map { Bench::Crowd::payment($_, 1 + int(rand(10_000)), 200) }
          $n .. $n + $each - 1;
        $_->{data} = encode_base64($_->{data}, '') foreach @messages;
        push @bodies, $json->encode({ messages => \@messages });
    }
    return @bodies;
}

sub publish
{
    my ($service, $topic, $interval, @bodies) = @_;
    my $http = HTTP::Tiny->new;
    my $next = time;
    foreach my $body (@bodies)
    {
        my $rest = $next - time;
        sleep($rest) if $rest > 0;
        $next += $interval;
        my $answer = $http->post("$service->{url}/v1/" . $service->topic($topic) . ':publish',
            { headers => { 'Content-Type' => 'application/json' }, content => $body });
        die "could not publish: $answer->{status}\n" unless $answer->{success};
    }
}

# 2026-01-31T12:00:00.123456Z in seconds since 1970.
sub instant
{
    my ($text) = @_;
    my ($y, $mon, $d, $h, $m, $s, $part) =
      $text =~ /^(\d+)-(\d+)-(\d+)[T ](\d+):(\d+):(\d+)(\.\d+)?/ or die "\"$text\" is no time\n";
    return timegm($s, $m, $h, $d, $mon - 1, $y) + ($part // 0);
}

# The puller's log has the time at which it had the answer to the COMMIT.
sub verdicts
{
    my ($log) = @_;
    open(my $file, '<', $log) or die "could not read $log: $!\n";
    return map { /"ts":"([^"]+)".*"event":"message".*"key":"([^"]+)"/ ? ($2 => instant($1)) : () }
      <$file>;
}

sub latencies
{
    my ($crowd, %args) = @_;
    my ($service, $name) = ($crowd->{service}, $args{name});
    my $each = $args{rate} > REQUESTS ? int($args{rate} / REQUESTS) : 1;
    my @bodies = bodies($args{rate} * $args{seconds}, $each);
    my $log = "$crowd->{dir}/$name.log";
    $service->create_topic($name);
    $service->create_subscription($name, $name, ackDeadlineSeconds => 600);
    my $puller = $crowd->start_one($name, $log, 1, $name, '--log-level=debug');
    wait_until('the puller to pull', sub { $service->stats($name)->{waitingPulls} > 0 }, 30);
    publish($service, $name, $each / $args{rate}, @bodies);
    wait_until('all to be acknowledged', sub { $service->stats($name)->{unacked} == 0 }, 60);
    $puller->end('TERM') or die "the puller failed:\n" . $puller->last_events;
    my %durable = verdicts($log);
    my %published = map { $_->[0] => instant($_->[1]) } $crowd->{database}->query('-c', <<"SQL");
SELECT c.key, to_char(c.publish_time AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US')
	FROM inbox_claim c JOIN inbox_source s ON s.id = c.source_id WHERE s.name = '$name'
SQL
    die "not every message has a verdict in $log: the run is void\n"
      if keys %published != $each * @bodies || grep { !exists $durable{$_} } keys %published;
    return map { 1000 * ($durable{$_} - $published{$_}) } keys %published;
}

1;
