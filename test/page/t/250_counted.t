# SPDX-License-Identifier: PostgreSQL
# What a puller counts of Pub/Sub and of its connections is what was done to it: each number of
# /metrics against the service, the log or the database.
use strict;
use warnings;
use JSON::PP;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);
use Inbox::File;
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;
use Inbox::StatusPage;
use Inbox::Wait;

my $dir = PostgreSQL::Test::Utils::tempdir();
write_file("$dir/token", "ya29.one\n");
write_file("$dir/accepted", "ya29.one\nya29.two\n");
my $node = Inbox::Ledger->start('counted');
# While there is a gate, a handler that has begun does not end.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE gate ();
CREATE FUNCTION gated(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	WHILE to_regclass('gate') IS NOT NULL AND key LIKE 'held%' LOOP
		PERFORM pg_sleep(0.1);
	END LOOP;
	PERFORM apply_payment(key, payload);
END $$;
SQL
my $service = Inbox::Service->start('own', '--long-poll=1', '--token-file', "$dir/accepted");
$service->{token} = 'ya29.one';
$service->create_topic('pay');
$service->create_subscription('ledger', 'pay', enableExactlyOnceDelivery => JSON::PP::true);
my $started = time;
my $puller = Inbox::Puller->start(node => $node, handler => 'gated',
    subscription => $service->subscription('ledger'),
    options => [ '--endpoint', $service->{url}, '--token-file', "$dir/token", '--listen=0', '--workers=2', '--handler-timeout=50s' ]);
my $url = Inbox::StatusPage::url($puller);

sub metric { return Inbox::StatusPage::metrics($url)->{ $_[0] } }

# One test: a number comes to be what is expected, which may come to be as well.
sub becomes
{
    my ($name, $expected, $what) = @_;
    my ($value, $wanted);
    eval {
        wait_until($name, sub {
            $value = metric($name) // 'missing';
            $wanted = ref $expected ? $expected->() : $expected;
            $value eq $wanted;
        }, 60, 0.2);
    };
    return is($value, $wanted, $what);
}

sub publish { $service->publish('pay', @_) }
sub acked { wait_until('all to be acknowledged', sub { $service->stats('ledger')->{unacked} == 0 }, 120) }

subtest 'pulls' => sub {
    foreach my $number (1 .. 3)
    {
        publish(Inbox::Ledger::payment("one$number", $number, 1));
        acked();
    }
    becomes('inbox_pulls_total{result="messages"}', 3, 'three that brought a message');
    becomes('inbox_pulled_messages_total', 3, 'one each');
    becomes('inbox_acks_total{result="ok"}', 3, 'each is acknowledged');
    my $before = metric('inbox_pulls_total{result="empty"}');
    wait_until('pulls that bring nothing', sub { metric('inbox_pulls_total{result="empty"}') > $before + 1 });
    my ($metrics, $asked);
    wait_until('no pull to end meanwhile', sub {
        $asked = $service->stats->{counters}{pulls};
        $metrics = Inbox::StatusPage::metrics($url);
        $asked == $service->stats->{counters}{pulls};
    });
    cmp_ok(abs(Inbox::StatusPage::sum($metrics, 'inbox_pulls_total') + $metrics->{inbox_pulls_in_flight} - $asked),
        '<=', 1, "with those that brought nothing, as many as Pub/Sub has seen: $asked");
    $service->add_faults({ on => 'pull', do => 'status', code => 503, times => 2, every => 1 });
    becomes('inbox_pulls_total{result="failed"}', 2, 'and two that failed');
    is($service->fired('status'), 2, 'which were made to');
};

subtest 'acknowledgements' => sub {
    $service->clear_faults;
    $service->add_faults({ on => 'ack_id', do => 'fail', nth => 1, reason => 'TRANSIENT_FAILURE_OTHER' });
    publish(Inbox::Ledger::payment('again', 1, 1));
    becomes('inbox_acks_total{result="again"}', 1, 'one that is refused for now');
    acked();
    $service->clear_faults;
    $service->add_faults({ on => 'ack_id', do => 'fail', nth => 1, reason => 'PERMANENT_FAILURE_INVALID_ACK_ID' });
    publish(Inbox::Ledger::payment('lost', 1, 1));
    becomes('inbox_acks_total{result="lost"}', 1, 'one that is refused for good');
    acked();
    becomes('inbox_messages_total{verdict="duplicate"}', 1, 'whose message comes again');
    becomes('inbox_acks_total{result="ok"}', 5, 'and is acknowledged then');
};

subtest 'leases' => sub {
    $service->clear_faults;
    $service->add_faults({ on => 'modack', do => 'status', code => 503, every => 1 });
    publish(map { my $payment = Inbox::Ledger::payment("held$_", $_, 1);
        $payment->{data} =~ s/\}$/', "more": "' . 'x' x 10000 . '"}'/e; $payment } 1 .. 5);
    becomes('inbox_leases_expired_total', sub { $service->stats->{counters}{expired} || 'some' },
        'those that ended while nothing could be extended, as Pub/Sub has seen it');
    $service->clear_faults;
    wait_until('all to be held', sub { Inbox::StatusPage::sum(Inbox::StatusPage::metrics($url),
        'inbox_outstanding_messages') >= 5 });
    becomes('inbox_lease_extensions_total', sub { $service->stats->{counters}{extended} || 'some' },
        'and those that were extended');
    my $metrics = Inbox::StatusPage::metrics($url);
    my $held = Inbox::StatusPage::sum($metrics, 'inbox_outstanding_messages');
    cmp_ok($held, '>=', 5, "messages are held: $held");
    cmp_ok($metrics->{inbox_outstanding_bytes} / $held, '>', 10000, 'with their payloads');
    cmp_ok($metrics->{inbox_outstanding_bytes} / $held, '<', 12000, 'and not much else');
    $node->safe_psql('postgres', 'DROP TABLE gate');
    acked();
    becomes("inbox_outstanding_messages{state=\"$_\"}", 0, "none is $_ any more") foreach qw(ready running acking returning);
    becomes('inbox_outstanding_bytes', 0, 'nor any byte held');
};

subtest 'the database' => sub {
    my $events = sub { my $name = shift; return sub { scalar(() = $puller->events($name)) || 'none' } };
    becomes('inbox_database_connections', 2, 'two connections');
    my $before = metric('inbox_database_connects_total');
    is($node->safe_psql('postgres', 'SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity '
        . q{WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()}), 2, 'are ended');
    becomes('inbox_database_connects_total', $before + 2, 'and two more made');
    becomes('inbox_database_connects_total', $events->('db_connected'), 'as the log has it');
    my $holder = Inbox::Ledger::hold($node, 'UPDATE account SET balance = balance WHERE id = 0');
    publish(Inbox::Ledger::payment('crossing', 1, 1));
    wait_until('a row not to be had', sub { metric('inbox_contentions_total') > 0 });
    becomes('inbox_contention_exclusive', 1, 'batches run one at a time');
    Inbox::Ledger::release($holder);
    acked();
    becomes('inbox_contentions_total', $events->('contention'), 'as often as the log has it');
    becomes('inbox_contention_exclusive', 0, 'and together again after a while');
};

subtest 'what it is' => sub {
    my ($version) = slurp_file("$ENV{INBOX_ROOT}/inbox.control") =~ /^default_version = '(.*)'$/m;
    is(metric(qq(inbox_build_info{version="$version"})), 1, 'the version');
    is(metric('inbox_source_info{source="projects/p/subscriptions/ledger",'
          . 'subscription="projects/p/subscriptions/ledger",handler="gated"}'), 1, 'from where to where');
    my $age = metric('inbox_token_age_seconds');
    cmp_ok($age, '>', 1, "the token is $age s old");
    cmp_ok($age, '<=', time - $started, 'and not older than the puller');
    write_file("$dir/token", "ya29.two\n");
    wait_until('the token that was replaced', sub { metric('inbox_token_age_seconds') < $age });
    pass('which begins anew with another one');
};
is($puller->stop, 0, 'stops with status 0');
done_testing;
