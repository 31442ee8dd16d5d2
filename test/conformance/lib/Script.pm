# SPDX-License-Identifier: PostgreSQL

=head1 NAME

Script - what is asked of both servers, step by step

=head1 DESCRIPTION

run() works the steps off against one server and returns [name, outcome] pairs. An outcome is a
text in which what differs from run to run (ids, times, ack ids, error texts) has been replaced, so
that outcomes of two servers can be compared. Each group of steps has topics and subscriptions of
its own; a group that dies has the outcome "died" from there on.

=cut

package Script;

use strict;
use warnings;

use JSON::PP;
use PubSub;
use Time::HiRes qw(time sleep);

my $json = JSON::PP->new->canonical->utf8;
my @outcomes;

# Replaces what no two servers have in common.
sub plain
{
    my ($value) = @_;
    return [map { plain($_) } @$value] if ref $value eq 'ARRAY';
    return $value                      if ref $value ne 'HASH';
    my %copy;
    foreach my $name (keys %$value)
    {
        $copy{$name} =
              $name eq 'ackId'      ? 'ACK-ID'
            : $name eq 'messageId'  ? 'ID'
            : $name eq 'messageIds' ? scalar @{ $value->{$name} } . ' IDS'
            : $name =~ /^(?:publishTime|expireTime|.*TopicPublishTime)$/ ? 'TIME'
            : $name eq 'message' && !ref $value->{$name}                 ? 'TEXT'
            :                                                              plain($value->{$name});

        # Failures of single ack ids are listed by id.
        $copy{'ACK-ID'} = delete $copy{$name} if length $name > 100;
    }
    return \%copy;
}

# A response as a text.
sub outcome
{
    my ($response) = @_;
    my $body = $response->{json} ? $json->encode(plain($response->{json})) : 'no JSON';
    return "$response->{status} $body";
}

sub step
{
    my ($name, $outcome) = @_;
    push @outcomes, [$name, ref $outcome ? outcome($outcome) : $outcome];
    return;
}

# The data of what a pull brings within the seconds, in its order.
sub arrives
{
    my ($server, $subscription, $seconds) = @_;
    my $end = time + $seconds;
    while (1)
    {
        my $data = $server->data_now($subscription);
        return $data if $data ne '' || time > $end;
        sleep(0.05);
    }
}

sub names
{
    my ($server) = @_;
    step('a topic is created',              $server->call('PUT', 'topics/names', {}));
    step('a topic is created twice',        $server->call('PUT', 'topics/names', {}));
    step('a topic is read',                 $server->call('GET', 'topics/names'));
    step('an encoded name is read',         $server->call('GET', 'topics/na%6Des'));
    step('a missing topic is read',         $server->call('GET', 'topics/missing'));
    step('a name of two letters',           $server->call('PUT', 'topics/ab',   {}));
    step('a name that starts with a digit', $server->call('PUT', 'topics/1abc', {}));
    step('an unknown path',                 $server->call('GET', '/v1/somewhere')->{status});
    step('a topic without subscriptions',   $server->call('GET', 'topics/names/subscriptions'));
    step(
        'another media type',
        $server->call(
            'POST',                           'topics/names:publish',
            '{"messages":[{"data":"YQ=="}]}', 'Content-Type' => 'text/plain')->{status});
    step('a body that is no JSON', $server->call('POST', 'topics/names:publish', '{"messages":'));
    step(
        'an unknown field',
        $server->call('POST', 'topics/names:publish', { messages => [{ data => 'YQ==', x => 1 }] })
    );
    return;
}

sub subscriptions
{
    my ($server) = @_;
    $server->topic('config');
    my $create = sub {
        my ($id, %fields) = @_;
        return $server->call('PUT', "subscriptions/$id",
            { topic => 'projects/p/topics/config', %fields });
    };
    step('a subscription with defaults', $create->('config-plain'));
    step('a subscription twice',         $create->('config-plain'));
    step('a subscription of a missing topic',
        $server->call('PUT', 'subscriptions/config-none', { topic => 'projects/p/topics/none' }));
    step('a deadline of 5 seconds',   $create->('config-5',   ackDeadlineSeconds => 5)->{status});
    step('a deadline of 601 seconds', $create->('config-601', ackDeadlineSeconds => 601));
    step('a deadline as a string',
        $create->('config-text', ack_deadline_seconds => '20')->{json}{ackDeadlineSeconds});
    step(
        'four delivery attempts',
        $create->(
            'config-4',
            deadLetterPolicy =>
                { deadLetterTopic => 'projects/p/topics/config', maxDeliveryAttempts => 4 }));
    step('an invalid filter', $create->('config-filter', filter => 'nonsense')->{status});
    my $patch = sub {
        my ($mask, %fields) = @_;
        return $server->call(
            'PATCH',
            'subscriptions/config-plain',
            {   subscription => { name => 'projects/p/subscriptions/config-plain', %fields },
                updateMask   => $mask });
    };
    step('a subscription is changed',
        $patch->('ackDeadlineSeconds', ackDeadlineSeconds => 33)->{json}{ackDeadlineSeconds});
    step('an empty mask', $patch->('', ackDeadlineSeconds => 33));
    step(
        'subscriptions are listed',
        join(' ',
            sort
                grep { /plain|text/ }
                @{ $server->call('GET', 'topics/config/subscriptions')->{json}{subscriptions} }));
    step('a subscription is deleted', $server->call('DELETE', 'subscriptions/config-text'));
    step('and read',                  $server->call('GET',    'subscriptions/config-text'));
    step('and deleted again',         $server->call('DELETE', 'subscriptions/config-text'));
    step('detach', $server->call('POST', 'subscriptions/config-plain:detach', {})->{status});
    $create->('config-left');
    $server->publish('config', 'left');
    $server->must('DELETE', 'topics/config');
    step('the topic is deleted', $server->call('GET', 'subscriptions/config-left')->{json}{topic});
    step('and what was published stays', $server->data_now('config-left'));
    return;
}

sub publishing
{
    my ($server) = @_;
    $server->topic('send');
    $server->subscription('send-sub', 'send');
    my $publish =
        sub { return $server->call('POST', 'topics/send:publish', { messages => [@_] }); };
    step('no message',               $publish->());
    step('an empty message',         $publish->({}));
    step('data that are not base64', $publish->({ data => '!!!' }));
    step('1001 messages',            $publish->(map { { data => 'YQ==' } } 1 .. 1001));
    step('a long attribute',         $publish->({ attributes => { a => 'x' x 1025 } })->{status});
    step(
        'two ordering keys',
        $publish->({ data => 'YQ==', orderingKey => 'a' }, { data => 'YQ==', orderingKey => 'b' })
            ->{status});
    step('a missing topic',
        $server->call('POST', 'topics/none:publish', { messages => [{ data => 'YQ==' }] }));
    $server->must('POST', 'subscriptions/send-sub:seek', { time => '2100-01-01T00:00:00Z' });
    my $next = sub {
        my $answer = $server->call('POST', 'subscriptions/send-sub:pull', { maxMessages => 10 });
        $server->ack('send-sub', @{ $answer->{json}{receivedMessages} });
        return $answer;
    };
    step('two messages',
        $publish->({ data => 'YQ==' }, { data => 'Yg==', attributes => { k => 'v', e => '' } }));
    step('come', $next->());
    $publish->({ data => '-__-' }, { data => 'YQ' });
    step('other forms of base64', $next->());
    $publish->({ attributes => { '' => "a\x{0}b", "\x{fc}" => "\x{1f600}" } });
    step('unusual attributes', $next->());
    $publish->({ data => 'YQ==', orderingKey => 'key' });
    step('an ordering key', $next->());
    return;
}

sub leases
{
    my ($server) = @_;
    $server->topic('lease');
    $server->subscription('lease-sub', 'lease', ackDeadlineSeconds => 60);
    my $sub = 'subscriptions/lease-sub';
    step('a pull of 0', $server->call('POST', "$sub:pull", { maxMessages => 0 }));
    step(
        'a pull of a string',
        $server->call(
            'POST', "$sub:pull", { max_messages => '1', returnImmediately => JSON::PP::true }));
    step('a pull from a missing subscription',
        $server->call('POST', 'subscriptions/none:pull', { maxMessages => 1 }));
    $server->publish('lease', 'a', 'b');
    my @held = $server->pull('lease-sub', 10);
    step('messages come',    join(' ', map { $_->{message}{data} } @held));
    step('an attempt count', defined $held[0]{deliveryAttempt} ? 'there' : 'absent');
    step('leased messages do not come again', $server->data_now('lease-sub'));
    step('no ack id',                         $server->ack('lease-sub'));
    step('a malformed ack id',                $server->ack('lease-sub', 'garbage'));
    $server->subscription('lease-other', 'lease');
    step('an ack id of another subscription', $server->ack('lease-other', $held[0]));
    step('an acknowledgement',                $server->ack('lease-sub',   $held[0]));
    step('again',                             $server->ack('lease-sub',   $held[0]));
    step('a deadline of -1',  $server->modack('lease-sub', -1,  $held[1]));
    step('a deadline of 601', $server->modack('lease-sub', 601, $held[1])->{status});
    step('given back',        $server->modack('lease-sub', 0,   $held[1]));
    step('it comes again',    arrives($server, 'lease-sub', 5));
    my @again = @{ $server->{last} };
    step('under another id', $again[0]{ackId} eq $held[1]{ackId} ? 'no' : 'yes');
    step('the old id',       $server->ack('lease-sub', $held[1]));
    step(
        'does nothing',
        do { $server->modack('lease-sub', 0, @again); arrives($server, 'lease-sub', 5) }
    );
    @again = @{ $server->{last} };
    my $start = time;
    $server->modack('lease-sub', 2, @again);
    step('a lease ends', arrives($server, 'lease-sub', 8));
    step('in time',      time - $start > 1.5 && time - $start < 6 ? 'yes' : 'no');
    @again = @{ $server->{last} };
    $server->modack('lease-sub', 1, @again);
    sleep(2.5);
    step('an expired id', $server->ack('lease-sub', @again));
    step('still works',   arrives($server, 'lease-sub', 1) eq '' ? 'yes' : 'no');
    $server->publish('lease', 'c');
    arrives($server, 'lease-sub', 5);
    @again = @{ $server->{last} };
    $server->modack('lease-sub', 1, @again);
    sleep(2.5);
    step('an expired lease is extended', $server->modack('lease-sub', 30, @again)->{status});
    step('does it come again',           arrives($server, 'lease-sub', 2));
    return;
}

sub waiting
{
    my ($server) = @_;
    $server->topic('wait');
    $server->subscription('wait-sub', 'wait');
    my $pull = $server->background('pull', 'wait-sub', 10);
    sleep(2);
    my $start = time;
    $server->publish('wait', 1 .. 5);
    my @received = $pull->();
    step('a waiting pull wakes',
        scalar(@received) . ($server->{finished} - $start < 5 ? ' at once' : ' late'));
    $server->ack('wait-sub', @received);
    $server->publish('wait', 1 .. 300) for 1 .. 2;
    step('a pull of 1000 brings', scalar $server->pull('wait-sub', 1000));
    return;
}

sub exactly_once
{
    my ($server) = @_;
    $server->topic('once');
    $server->subscription(
        'once-sub', 'once',
        enableExactlyOnceDelivery => JSON::PP::true,
        ackDeadlineSeconds        => 60);
    $server->publish('once', 'a', 'b');
    my @held = $server->pull('once-sub', 10);
    @held = (@held, $server->pull('once-sub', 10)) if @held < 2;
    step('exactly once: an acknowledgement',     $server->ack('once-sub', $held[0]));
    step('exactly once: again',                  $server->ack('once-sub', $held[0]));
    step('exactly once: one of two fails',       $server->ack('once-sub', @held));
    step('exactly once: extending what is gone', $server->modack('once-sub', 30, $held[1]));
    $server->publish('once', 'c');
    arrives($server, 'once-sub', 5);
    @held = @{ $server->{last} };
    $server->modack('once-sub', 0, @held);
    arrives($server, 'once-sub', 5);
    step('exactly once: a superseded id', $server->ack('once-sub', @held));
    @held = @{ $server->{last} };
    $server->modack('once-sub', 1, @held);
    sleep(2.5);
    step('exactly once: an expired id',  $server->ack('once-sub', @held)->{status});
    step('exactly once: a malformed id', $server->ack('once-sub', 'garbage')->{status});
    return;
}

sub order
{
    my ($server) = @_;
    my $run = sub {
        my ($id, $messages, %settings) = @_;
        $server->topic($id);
        $server->subscription(
            "$id-sub", $id,
            enableMessageOrdering => JSON::PP::true,
            ackDeadlineSeconds    => 60,
            %settings);
        $server->publish($id, { data => "A$_", orderingKey => 'A' }) for 0 .. $messages - 1;

        # The emulator has not sorted them in when it answers.
        sleep(1);
        return "$id-sub";
    };
    my $take = sub { my ($sub, $max) = @_; return $server->data_now($sub, $max); };
    my $sub  = $run->('order-run', 4);
    step('ordered: a run', $take->($sub, 2));
    my @held = @{ $server->{last} };
    $server->publish('order-run', 'free');
    sleep(1);
    step('ordered: others go on', $take->($sub, 10));
    $server->ack($sub, $held[1]);
    step('ordered: the second alone releases nothing', $take->($sub, 10));
    $server->ack($sub, $held[0]);
    step('ordered: both release the rest', arrives($server, $sub, 5));
    $sub = $run->('order-expire', 5);
    $take->($sub, 3);
    @held = @{ $server->{last} };
    $server->ack($sub, $held[2]);
    $server->modack($sub, 1, $held[0]);
    sleep(2.5);
    step('ordered: after the first expired', arrives($server, $sub, 5));
    $sub = $run->('order-nack', 5);
    $take->($sub, 3);
    @held = @{ $server->{last} };
    $server->modack($sub, 0, $held[0]);
    step('ordered: after the first was given back', arrives($server, $sub, 3));
    $sub = $run->('order-once', 2, enableExactlyOnceDelivery => JSON::PP::true);
    $take->($sub, 2);
    @held = @{ $server->{last} };
    step('ordered, exactly once: out of order',    $server->ack($sub, $held[1])->{status});
    step('ordered, exactly once: the first',       $server->ack($sub, $held[0])->{status});
    step('ordered, exactly once: then the second', $server->ack($sub, $held[1])->{status});
    $sub = $run->('order-request', 3, enableExactlyOnceDelivery => JSON::PP::true);
    $take->($sub, 3);
    step(
        'ordered, exactly once: all in one request',
        $server->ack($sub, @{ $server->{last} })->{status});
    return;
}

sub dead_letters
{
    my ($server) = @_;
    $server->topic($_) foreach 'dead-from', 'dead-to';
    $server->subscription('dead-to-sub', 'dead-to');
    $server->subscription(
        'dead-sub', 'dead-from',
        ackDeadlineSeconds => 60,
        deadLetterPolicy   =>
            { deadLetterTopic => 'projects/p/topics/dead-to', maxDeliveryAttempts => 5 });
    $server->publish('dead-from', { data => 'x', attributes => { k => 'v' }, orderingKey => 'o' });
    my @attempts;
    for (1 .. 5)
    {
        arrives($server, 'dead-sub', 5);
        push @attempts, map { $_->{deliveryAttempt} } @{ $server->{last} };
        $server->modack('dead-sub', 0, @{ $server->{last} });
    }
    step('attempts are counted',        "@attempts");
    step('then it does not come again', arrives($server, 'dead-sub', 1));
    my $data = arrives($server, 'dead-to-sub', 5);
    step('but to the dead-letter topic', $json->encode(plain($server->{last})));
    $server->topic('retry');
    $server->subscription('retry-sub', 'retry',
        retryPolicy => { minimumBackoff => '2s', maximumBackoff => '4s' });
    $server->publish('retry', 'x');
    arrives($server, 'retry-sub', 5);
    my $start = time;
    $server->modack('retry-sub', 0, @{ $server->{last} });
    arrives($server, 'retry-sub', 8);
    step('the first backoff', time - $start > 1.5 ? 'waits' : 'does not wait');
    $start = time;
    step('an attempt count with a retry policy alone',
        defined $server->{last}[0]{deliveryAttempt} ? 'there' : 'absent');
    $server->modack('retry-sub', 0, @{ $server->{last} });
    arrives($server, 'retry-sub', 10);
    step('the second backoff', time - $start > 2.5 ? 'waits longer' : 'does not wait longer');
    return;
}

sub filters
{
    my ($server) = @_;
    $server->topic('filter');
    $server->subscription('filter-sub', 'filter', filter => 'attributes.a = "1"');
    $server->publish('filter', { data => 'in', attributes => { a => '1' } }, { data => 'out' });
    step('a filter', arrives($server, 'filter-sub', 5));
    return;
}

sub seeks
{
    my ($server) = @_;
    $server->topic('seek');
    $server->subscription('seek-sub', 'seek', retainAckedMessages => JSON::PP::true);
    $server->publish('seek', 'a', 'b');
    my @held = map { $server->pull('seek-sub', 10) } 1;
    $server->ack('seek-sub', @held);
    my $seek = sub { return $server->call('POST', 'subscriptions/seek-sub:seek', $_[0]); };
    step('a seek to nothing',      $seek->({}));
    step('a seek into the past',   $seek->({ time => '2000-01-01T00:00:00Z' }));
    step('brings all again',       join(' ', sort split(/ /, arrives($server, 'seek-sub', 5))));
    step('a seek into the future', $seek->({ time => '2100-01-01T00:00:00Z' }));
    step('drops all',              arrives($server, 'seek-sub', 1));
    $server->publish('seek', 'c');
    my $snapshot = $server->call('PUT', 'snapshots/seek-snap',
        { subscription => 'projects/p/subscriptions/seek-sub' });
    step('a snapshot', $snapshot);
    arrives($server, 'seek-sub', 5);
    $server->ack('seek-sub', @{ $server->{last} });
    step('a seek to it', $seek->({ snapshot => 'projects/p/snapshots/seek-snap' }));
    step('brings what was unacknowledged', arrives($server, 'seek-sub', 5));
    step('a missing snapshot',             $seek->({ snapshot => 'projects/p/snapshots/none' }));
    step('the snapshot is deleted',        $server->call('DELETE', 'snapshots/seek-snap'));
    return;
}

sub run
{
    my ($server) = @_;
    @outcomes = ();
    my @groups = (
        [names         => \&names],
        [subscriptions => \&subscriptions],
        [publishing    => \&publishing],
        [leases        => \&leases],
        [waiting       => \&waiting],
        [exactly_once  => \&exactly_once],
        [order         => \&order],
        [dead_letters  => \&dead_letters],
        [filters       => \&filters],
        [seeks         => \&seeks]);
    foreach my $group (@groups)
    {
        my ($name, $code) = @$group;
        step("$name died", "$@") if !eval { $code->($server); 1 };
    }
    return @outcomes;
}

1;
