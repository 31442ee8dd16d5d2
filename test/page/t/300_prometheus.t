# SPDX-License-Identifier: PostgreSQL
# Under load, with a Prometheus that scrapes and a browser that looks: the numbers of the page, of
# /metrics, of Prometheus, of inbox_status() and of the ledger agree to the message. An alert rings.
use strict;
use warnings;
use File::Temp qw(tempdir);
use HTTP::Tiny;
use JSON::PP;
use Test::More;
use Inbox::Child;
use Inbox::Ledger;
use Inbox::StatusPage;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;
use Inbox::Workload;

plan(skip_all => Inbox::StatusPage::missing()) if defined Inbox::StatusPage::missing();
plan(skip_all => 'Prometheus is not on this machine (the Debian package prometheus)')
  if system('prometheus --version >/dev/null 2>&1') != 0;

my $json = JSON::PP->new->utf8;
my $node = Inbox::Ledger->start('watched');
my $service = Inbox::Service->start('own');
$service->create_topic('pay');
$service->create_subscription('ledger', 'pay');
my $puller = Inbox::Puller->start(service => $service, node => $node, handler => 'apply_payment',
    log_level => 'info', subscription => $service->subscription('ledger'),
    options => [ '--listen=0', '--workers=2' ]);
my $url = Inbox::StatusPage::url($puller);

# ---- Prometheus -----------------------------------------------------------------------------

my $dir = tempdir(CLEANUP => 1);
my $port = Inbox::Service::free_port();
open(my $config, '>', "$dir/prometheus.yml") or die "no file: $!\n";
print $config <<"YAML";
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [ '$ENV{INBOX_ROOT}/deploy/prometheus/inbox.rules.yml' ]
scrape_configs:
  - job_name: inbox-puller
    static_configs: [ { targets: [ '@{[ $url =~ s{http://}{}r ]}' ] } ]
YAML
close($config);
my $prometheus = bless { pid => Inbox::Child::spawn("$PostgreSQL::Test::Utils::log_path/prometheus.log",
        'prometheus', "--config.file=$dir/prometheus.yml", "--storage.tsdb.path=$dir/data",
        "--web.listen-address=127.0.0.1:$port") }, 'Inbox::Child';

sub api
{
    my ($path) = @_;
    my $answer = HTTP::Tiny->new(timeout => 5)->get("http://127.0.0.1:$port/api/v1/$path");
    return $answer->{success} ? $json->decode($answer->{content})->{data} : undef;
}

# The value of an expression that gives one; undef as long as there is none.
sub query
{
    my ($expression) = @_;
    my $data = api('query?' . HTTP::Tiny->new->www_form_urlencode({ query => $expression }))
      or return undef;
    return @{ $data->{result} } ? $data->{result}[0]{value}[1] : undef;
}

# ---- the load ---------------------------------------------------------------------------------

my $browser = Inbox::StatusPage->browse;
$browser->open_page($url);
my $work = Inbox::Workload->new(count => 2000, twice => 400);
my @dead = map { { data => '{}', attributes => { nothing => "$_" } } } 1 .. 7;
my @failing = map { Inbox::Ledger::payment("failing$_", 77, 1) } 1 .. 3;
$node->safe_psql('postgres',
    "SELECT inbox_configure('" . $service->subscription('ledger') . "', max_attempts => 2)");
my @messages = @{ $work->{messages} };
while (my @some = splice(@messages, 0, 200))
{
    $service->publish('pay', @some, splice(@dead, 0, 1), splice(@failing, 0, 1));
}
$work->wait_applied($node, 60);
Inbox::Ledger::wait_for($node, q{SELECT count(*) FROM inbox_failure WHERE status = 'dead'}, 10, 30);
wait_until('all to be acknowledged', sub { $service->stats('ledger')->{unacked} == 0 }, 30);

# ---- the numbers --------------------------------------------------------------------------------

my %truth;
@truth{qw(applied claims dead)} = split /\|/, Inbox::Ledger::count($node, <<'SQL');
SELECT (SELECT count(*) FROM effect), (SELECT count(*) FROM inbox_claim),
	(SELECT count(*) FROM inbox_failure WHERE status = 'dead')
SQL
is("$truth{applied} $truth{claims} $truth{dead}", '2000 2010 10',
    'the ledger has what was published');
is(Inbox::Ledger::count($node, 'SELECT dead FROM inbox_status()'), $truth{dead},
    'inbox_status(): dead letters');

my $seen = $browser->wait_look('the page to have it all',
    sub { $_[0]{numbers}{'n-applied'} == 2000 && ($_[0]{numbers}{'n-dead'} // -1) == 10
          && $_[0]{numbers}{'n-duplicate'} == 400 });
is($seen->{numbers}{'n-applied'}, $truth{applied}, 'the page: applied');
is($seen->{numbers}{'n-duplicate'}, 400, 'the page: duplicates');
is($seen->{numbers}{'n-dead'}, $truth{dead}, 'the page: dead letters in the database');
is($seen->{numbers}{'v-dead'}, $truth{dead}, 'the page: dead letters made');

my $metrics = Inbox::StatusPage::metrics($url);
is(Inbox::StatusPage::sum($metrics, 'inbox_messages_total', 'verdict="applied"'), $truth{applied},
    '/metrics: applied');
is(Inbox::StatusPage::sum($metrics, 'inbox_messages_total', 'verdict="duplicate"'), 400,
    '/metrics: duplicates');
is(Inbox::StatusPage::sum($metrics, 'inbox_messages_total', 'verdict="dead"'), $truth{dead},
    '/metrics: dead');
is($metrics->{inbox_dead_letters}, $truth{dead}, '/metrics: dead letters in the database');
is($metrics->{'inbox_acks_total{result="ok"}'}, 2410, '/metrics: acknowledged');
is($metrics->{inbox_batch_size_messages_sum}, $metrics->{inbox_handler_seconds_count},
    '/metrics: the messages of all batches');
is($metrics->{'inbox_failures_total{sqlstate_class="P0"}'}, 6, '/metrics: attempts that failed');

my %expected = ('sum(inbox_messages_total{verdict="applied"})' => $truth{applied},
    'sum(inbox_messages_total{verdict="duplicate"})' => 400, 'inbox_dead_letters' => $truth{dead},
    'inbox_publish_to_commit_seconds_bucket{le="+Inf"}' => $metrics->{inbox_publish_to_commit_seconds_count},
    'inbox_healthy' => 1, 'up' => 1);
foreach my $expression (sort keys %expected)
{
    my $value;
    eval { wait_until($expression,
        sub { $value = query($expression); defined $value && $value == $expected{$expression} }, 20,
            0.5) };
    is($value, $expected{$expression}, "Prometheus: $expression");
}
my ($target) = @{ api('targets')->{activeTargets} };
is("$target->{health} $target->{lastError}", 'up ', 'Prometheus can read all of it');

subtest 'alerts' => sub {
    my @rules = map { @{ $_->{rules} } } @{ api('rules')->{groups} };
    cmp_ok(scalar @rules, '>=', 15, 'all are there');
    is_deeply([ grep { $_->{health} ne 'ok' } @rules ], [], 'and can be evaluated');
    my $ringing = wait_until('the alert of dead letters', sub {
        my @alerts = grep { $_->{labels}{alertname} eq 'InboxDeadLetters'
          && $_->{state} eq 'firing' } @{ api('alerts')->{alerts} };
        @alerts && $alerts[0] }, 30, 0.5);
    like($ringing->{annotations}{summary}, qr/has dead letters/, 'that of dead letters rings');
    is_deeply([ grep { $_->{labels}{severity} eq 'critical'
      && $_->{state} eq 'firing' } @{ api('alerts')->{alerts} } ], [],
        'no other that wakes people');
    $node->safe_psql('postgres',
        "SELECT inbox_discard(id, 'a test') FROM inbox_failure WHERE status = 'dead'");
    my $left;
    eval { wait_until('none to be left',
        sub { $left = query("inbox_dead_letters"); defined $left && $left == 0 }, 30, 0.5) };
    is($left, 0, 'discarded, they are gone from Prometheus');
    $browser->wait_look('and from the page',
        sub { $_[0]{numbers}{'n-dead'} == 0 && @{ $_[0]{dead} } == 0 });
};
is($puller->stop, 0, 'stops with status 0');
done_testing;
