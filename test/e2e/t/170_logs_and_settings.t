# SPDX-License-Identifier: PostgreSQL
# Settings from flags, the environment and a file; logs in both formats that no key can forge and
# that show no secret, with the fields that identify a message on every failure's line.
use strict;
use warnings;
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;
use Inbox::Child;
use Inbox::File;
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

my $json = JSON::PP->new->utf8->allow_nonref;
my $dir = tempdir(CLEANUP => 1);
my $memo = Inbox::Ledger::MEMO;
my $node = Inbox::Ledger->start('logs');
my $service = Inbox::Service->start('own');
my $forged = qq(k1" level=error event=forged\n{"event":"forged"}\nevent=forged \x1b[31m\\);
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE entry (memo text CHECK (memo IS NULL));
CREATE FUNCTION refuse(key text, payload jsonb) RETURNS void
	BEGIN ATOMIC INSERT INTO entry VALUES (payload->>'memo'); END;
SQL

sub create
{
    my ($name, @messages) = @_;
    $service->create_topic($name);
    # With a dead-letter policy the service counts deliveries.
    $service->create_topic("$name-dead");
    $service->create_subscription($name, $name, enableMessageOrdering => JSON::PP::true,
        deadLetterPolicy =>
          { deadLetterTopic => $service->topic("$name-dead"), maxDeliveryAttempts => 100 });
    $service->publish($name, @messages);
    return $service->subscription($name);
}

# The fields of a line of logfmt, or undef when it is none.
sub logfmt
{
    my ($line) = @_;
    my %fields;
    while ($line =~ s/^([a-z_]+)=("(?:[^"\\\x00-\x1f]|\\.)*"|[^\s"=\\]+)(?: |$)//)
    {
        return if exists $fields{$1};
        my ($name, $value) = ($1, $2);
        $fields{$name} = $value =~ /^"/ ? $json->decode($value) : $value;
    }
    return $line eq '' ? \%fields : undef;
}

sub read_lines
{
    my ($puller, $format) = @_;
    return map { ($format eq 'logfmt' ? logfmt($_) : eval { decode_json($_) }) // { line => $_ } }
      split /\n/, $puller->slurp_log;
}

foreach my $format (qw(logfmt json))
{
    subtest $format => sub {
        my $subscription = create($format,
            { data => qq({"memo": "$memo"}), attributes => { idempotency_key => $forged },
                orderingKey => 'order 1' },
            { data => qq({"memo": "$memo"}), attributes => { other => 'no key' } });
        my $puller = Inbox::Puller->start(service => $service, handler => 'refuse',
            dbname => $node->connstr('postgres') . ' password=open-sesame', log_format => $format,
            log_level => 'info', subscription => $subscription);
        my @failed;
        wait_until('both failures to be logged', sub {
            @failed = grep { ($_->{event} // '') =~ /^(message_failed|dead_letter)$/ }
              read_lines($puller, $format);
            grep({ $_->{event} eq 'message_failed' } @failed) >= 2
              && grep({ $_->{event} eq 'dead_letter' } @failed);
        });
        is($puller->stop, 0, 'stops with status 0');
        my @lines = read_lines($puller, $format);
        is_deeply([ grep { exists $_->{line} } @lines ], [], 'every line can be read');
        is_deeply([ grep { ($_->{event} // '') eq 'forged' } @lines ], [],
            'no key forges an event');
        unlike($puller->slurp_log, qr/[\x00-\x09\x0b-\x1f\x7f]/, 'no control characters');
        foreach my $event (qw(message_failed dead_letter))
        {
            my ($line) = grep { $_->{event} eq $event } @failed;
            my @missing = grep { !defined $line->{$_} }
              qw(ts level event source message_id publish_time delivery_attempt attempt err verdict
              reason);
            is_deeply(\@missing, [], "$event has the fields of a failure");
        }
        my ($line) = grep { $_->{event} eq 'message_failed' } @failed;
        is($line->{key}, $forged, 'the key can be read as it is');
        is("$line->{ordering_key} $line->{sqlstate}", 'order 1 23514', 'and the fields some have');
        is(scalar(grep { $_->{event} eq 'stopped' && $_->{status} == 0 } @lines), 1,
            'the end is logged');
    };
}

subtest 'settings' => sub {
    my $subscription = create('settings', Inbox::Ledger::payment('settings', 1, 1));
    my $ini = write_file("$dir/puller.ini", "handler = no_such_handler\nsource = from the file\n"
          . "subscription = $subscription\nlog-format = json\nworkers = 3\nlog-level = debug\n");
    local %ENV = (%ENV, PUBSUB_EMULATOR_HOST => $service->host, INBOX_HANDLER => 'apply_payment',
        INBOX_WORKERS => '2', INBOX_DBNAME => $node->connstr('postgres') . ' password=open-sesame');
    my $log = Inbox::Puller::new_log();
    my $puller = bless { log => $log }, 'Inbox::Puller';
    $puller->{pid} = Inbox::Child::spawn($log, "$ENV{INBOX_ROOT}/puller/inbox-puller",
        '--config', $ini, '--workers=1');
    $puller->wait_event('message', sub { $_[0]{verdict} eq 'applied' });
    is($puller->stop, 0, 'stops with status 0');
    my ($started) = $puller->events('started');
    is("$started->{workers} $started->{handler} $started->{source}",
        '1 apply_payment from the file',
        'flags come before the environment, and that before the file');
    is(Inbox::Ledger::count($node,
            "SELECT count(*) FROM inbox_source WHERE name = 'from the file'"), 1,
        'and they take effect');
};
is_deeply([ Inbox::Puller->leaks($memo, 'open-sesame') ], [],
    'no log shows a payload or a password');
done_testing;
