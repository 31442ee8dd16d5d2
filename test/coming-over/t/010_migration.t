# SPDX-License-Identifier: PostgreSQL
# docs/migration.md, its commands as they stand there: a consumer that remembers keys in a real Redis is
# replaced while messages come, and then the subscription. Every payment is there once.
use strict;
use warnings;
use IO::Socket::INET;
use JSON::PP;
use MIME::Base64 qw(decode_base64);
use PostgreSQL::Test::Utils;
use Test::More;
use Inbox::Child;
use Inbox::Ledger;
use Inbox::Page;
use Inbox::Scene;
use Inbox::Wait;
use Inbox::Workload;

my $scene = Inbox::Scene->new('own', 'coming');
my ($service, $node) = @$scene{qw(service node)};
my $dir = PostgreSQL::Test::Utils::tempdir();
my $port = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1)->sockport;
my $redis = Inbox::Child::spawn("$dir/redis.log", 'redis-server', '--port', $port, '--bind', '127.0.0.1',
    '--save', '', '--dir', $dir);
my @left = ($redis);
END { local $? = $?; kill 'KILL', @left if @left }

# redis-cli of the page finds it without a word about where it is.
my $page = Inbox::Page->new('migration.md', service => $service, node => $node, env => {
        SUBSCRIPTION => $service->subscription('coming-sub'), TOPIC => $service->topic('coming'),
        SHADOW => $service->subscription('shadow'), NEW_SUBSCRIPTION => $service->subscription('anew') });
my $env = $page->{env};
my $cli = qx{sh -c 'command -v redis-cli'};
chomp $cli;
append_to_file("$page->{dir}/bin/redis-cli", "#!/bin/sh\nexec $cli -h 127.0.0.1 -p $port \"\$@\"\n");
chmod 0755, "$page->{dir}/bin/redis-cli";
is(scalar @{ $page->{blocks} }, 8, 'the page has its commands');
wait_until('Redis to listen', sub { qx{$cli -p $port ping 2>/dev/null} =~ /PONG/ }, 20);

my $work = Inbox::Workload->new(count => 240, twice => 40);
my @messages = @{ $work->{messages} };

sub sql
{
    my ($sql) = @_;
    return $node->safe_psql('postgres', $sql, extra_params => [ Inbox::Ledger::as_owner() ]);
}

# The consumer of old: SETNX, apply, acknowledge. The last of what it is given it does not acknowledge.
sub consume
{
    my ($forgotten) = @_;
    my @got = $service->pull_now('coming-sub', 1000);
    my (%first, @sql);
    foreach my $got (@got)
    {
        my $key = $got->{message}{attributes}{idempotency_key};
        next if qx{$cli -p $port setnx 'processed:$key' 1} != 1;
        my $payload = decode_base64($got->{message}{data});
        push @sql, "SELECT apply_payment('$key', '$payload');";
    }
    sql(join "\n", 'BEGIN;', @sql, 'COMMIT;');
    my @acked = map { $_->{ackId} } @got[ 0 .. $#got - $forgotten ];
    $service->call('POST', '/v1/' . $service->subscription('coming-sub') . ':acknowledge', { ackIds => \@acked });
}

my @first = splice(@messages, 0, 100);
$scene->publish(@first);
consume(0);
my $had = qx{$cli -p $port dbsize} + 0;
like($page->run('1. the keys of Redis', 0), qr/^ +$had$/m, 'all are imported');
like($page->run('once more', 0), qr/^ +0$/m, 'which does nothing');

sql(q{CREATE TABLE processed_events (event_id text PRIMARY KEY, processed_at timestamptz NOT NULL);
    INSERT INTO processed_events SELECT 'event-' || g, timestamptz '2026-01-01Z' + g * interval '1 s'
        FROM generate_series(1, 25000) g});
like($page->run('1. those of a table', 1), qr/^ +25000$/m, 'all are imported');
is(sql(q{SELECT count(*) FROM inbox_claim c JOIN processed_events e ON e.event_id = c.key
        AND e.processed_at = c.claimed_at}), 25000, 'with their times');

my $before = Inbox::Ledger::summary($node);
$page->run('2. a shadow is started', 2);
$env->{SHADOW_PULLER} = $page->background;
push @left, $env->{SHADOW_PULLER};
$scene->publish(splice(@messages, 0, 50), @first[ 0, 1 ]);
wait_until('the shadow to have seen them', sub { $service->stats('shadow')->{unacked} == 0 }, 30);
my $report = $page->run('2. and ended', 3);
like($report, qr/^  duplicate +([2-9]|\d\d+)$/m, 'it has told what is imported from what is not');
is(Inbox::Ledger::summary($node), $before, 'and has changed nothing');

# The old consumer has applied these, and seven of its acknowledgements never come.
consume(7);
$env->{OLD_CONSUMERS} = qx{sleep 600 >/dev/null & echo \$!} + 0;
push @left, $env->{OLD_CONSUMERS};
$page->run('3. the old consumer is ended', 4);
$page->run('4. the rest is imported', 0);
$scene->publish(splice(@messages, 0, 90));
$page->run('5. the puller is started', 5);
$env->{PULLERS} = $page->background;
push @left, $env->{PULLERS};
wait_until('all to be acknowledged', sub { $service->stats('coming-sub')->{unacked} == 0 }, 60);

$page->run('the subscription is replaced', 6);
push @left, $page->background;
$scene->publish(@messages);
wait_until('both to be empty', sub {
        $service->stats('coming-sub')->{unacked} == 0 && $service->stats('anew')->{unacked} == 0 }, 60);
$page->run('the old one is given up', 7);
ok(!defined $service->stats('coming-sub'), 'and is gone');
$work->is_exact($node);
is(sql("SELECT subscription FROM inbox_status() WHERE source = 'ledger'"), $env->{NEW_SUBSCRIPTION},
    'the source is served from the new one');
done_testing;
