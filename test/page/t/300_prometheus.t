# SPDX-License-Identifier: PostgreSQL
# Under load, with a Prometheus that scrapes and a browser that looks: the numbers of the page, of
# /metrics, of Prometheus, of inbox_status() and of the ledger agree to the message. An alert rings.
use strict;
use warnings;
use JSON::PP;
use Test::More;
use Inbox::Agreement;
use Inbox::Ledger;
use Inbox::Prometheus;
use Inbox::StatusPage;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;
use Inbox::Workload;

plan(skip_all => Inbox::StatusPage::missing()) if defined Inbox::StatusPage::missing();
plan(skip_all => Inbox::Prometheus::missing()) if defined Inbox::Prometheus::missing();

my $node = Inbox::Ledger->start('watched');
my $service = Inbox::Service->start('own');
$service->create_topic('pay');
$service->create_subscription('ledger', 'pay', enableMessageOrdering => JSON::PP::true);
my $puller = Inbox::Puller->start(service => $service, node => $node, handler => 'apply_payment',
    log_level => 'info', subscription => $service->subscription('ledger'),
    options => [ '--listen=0', '--workers=2' ]);
my $url = Inbox::StatusPage::url($puller);

my $prometheus = Inbox::Prometheus->start($url =~ s{http://}{}r);

# ---- the load ---------------------------------------------------------------------------------

my $browser = Inbox::StatusPage->browse;
$browser->open_page($url);
my $work = Inbox::Workload->new(count => 2000, twice => 400);
my @dead = map { { data => '{}', attributes => { nothing => "$_" } } } 1 .. 7;
my @failing = map { failing("failing$_") } 1 .. 3;

sub failing { return Inbox::Ledger::payment($_[0], 77, 1, @_[ 1 .. $#_ ]) }

sub configure
{
    my ($settings) = @_;
    $node->safe_psql('postgres', "SELECT inbox_configure('" . $service->subscription('ledger') . "', $settings)");
}

sub wait_kept
{
    my ($status, $count) = @_;
    Inbox::Ledger::wait_for($node, "SELECT count(*) FROM inbox_failure WHERE status = '$status'", $count, 60);
}

configure(q{max_attempts => 2, order_policy => 'park'});
my @messages = @{ $work->{messages} };
while (my @some = splice(@messages, 0, 200))
{
    $service->publish('pay', @some, splice(@dead, 0, 1), splice(@failing, 0, 1));
}
$work->wait_applied($node, 120);
wait_kept(dead => 10);
$service->publish('pay', failing('head', orderingKey => 'o'));
wait_kept(dead => 11);
$service->publish('pay', map { Inbox::Ledger::payment("behind$_", 1, 1, orderingKey => 'o') } 1 .. 2);
$service->publish('pay', map { Inbox::Ledger::payment("k$_", 1, 1001) } 1 .. 4);
wait_kept(parked => 2);
wait_kept(conflict => 4);
# As if keys had been forgotten up to now.
$node->safe_psql('postgres', q{UPDATE inbox_source SET purged_before = now() + interval '1 hour'});
$service->publish('pay', map { Inbox::Ledger::payment("late$_", 1, 1) } 1 .. 5);
wait_kept(expired => 5);
$node->safe_psql('postgres', 'UPDATE inbox_source SET purged_before = NULL');
wait_until('all to be acknowledged', sub { $service->stats('ledger')->{unacked} == 0 }, 60);
is(Inbox::StatusPage::metrics($url)->{'inbox_failures_total{sqlstate_class="P0"}'}, 8,
    '/metrics: attempts that failed');
# These stay, while they are tried again and again.
configure('max_attempts => 1000');
$service->publish('pay', map { failing("again$_") } 1 .. 3);
wait_kept(retrying => 3);

# ---- the numbers --------------------------------------------------------------------------------

my %truth = (duplicate => 400);
@truth{qw(applied claims died dead retrying parked conflict conflicts expired)} =
  split /\|/, Inbox::Ledger::count($node, <<'SQL');
SELECT (SELECT count(*) FROM effect), (SELECT count(*) FROM inbox_claim),
	count(*) FILTER (WHERE status = 'dead'), count(*) FILTER (WHERE status = 'dead'),
	count(*) FILTER (WHERE status = 'retrying'), count(*) FILTER (WHERE status = 'parked'),
	count(*) FILTER (WHERE status = 'conflict'), count(*) FILTER (WHERE status = 'conflict'),
	count(*) FILTER (WHERE status = 'expired') FROM inbox_failure
SQL
is_deeply(\%truth, { applied => 2000, claims => 2013, duplicate => 400, died => 11, dead => 11, retrying => 3,
        parked => 2, conflict => 4, conflicts => 4, expired => 5 }, 'the ledger has what was published');
Inbox::Agreement::agree(\%truth, url => $url, browser => $browser, prometheus => $prometheus,
    status => Inbox::Ledger::count($node, 'SELECT ' . Inbox::Agreement::STATUS . ' FROM inbox_status()'));

my $metrics = Inbox::StatusPage::metrics($url);
my $acked = 2000 + 400 + 11 + 2 + 4 + 5;
is($metrics->{'inbox_acks_total{result="ok"}'}, $acked, '/metrics: acknowledged');
is($metrics->{inbox_batch_size_messages_sum}, $metrics->{inbox_handler_seconds_count},
    '/metrics: the messages of all batches');
my %expected = ('inbox_acks_total{result="ok"}' => $acked, 'inbox_healthy' => 1, 'up' => 1,
    'inbox_publish_to_commit_seconds_bucket{le="+Inf"}' => $metrics->{inbox_publish_to_commit_seconds_count});
is($prometheus->settled($_, $expected{$_}), $expected{$_}, "Prometheus: $_") foreach sort keys %expected;
my ($target) = @{ $prometheus->api('targets')->{activeTargets} };
is("$target->{health} $target->{lastError}", 'up ', 'Prometheus can read all of it');

subtest 'dashboard' => sub {
    open(my $file, '<', "$ENV{INBOX_ROOT}/deploy/grafana/inbox.json") or die "no dashboard: $!\n";
    my $dashboard = JSON::PP->new->utf8->decode(join '', <$file>);
    # As Grafana fills them in when nothing is picked.
    my %variable = (job => '.+', instance => '.+', __rate_interval => '1m');
    my @expressions = map { map { $_->{expr} =~ s/\$(\w+)/$variable{$1}/gr } @{ $_->{targets} } } @{ $dashboard->{panels} };
    is_deeply([ grep { !defined $prometheus->settled($_, undef, 5) } @expressions ], ['max(inbox_token_age_seconds{job=~".+",instance=~".+"})'],
        'each of ' . @expressions . ' plots has something to show, but for the token that an emulator wants none of');
};

subtest 'alerts' => sub {
    my @rules = map { @{ $_->{rules} } } @{ $prometheus->api('rules')->{groups} };
    cmp_ok(scalar @rules, '>=', 15, 'all are there');
    is_deeply([ grep { $_->{health} ne 'ok' } @rules ], [], 'and can be evaluated');
    my $ringing = wait_until('the alert of dead letters', sub {
        my @alerts = grep { $_->{labels}{alertname} eq 'InboxDeadLetters'
          && $_->{state} eq 'firing' } @{ $prometheus->api('alerts')->{alerts} };
        @alerts && $alerts[0] }, 30, 0.5);
    like($ringing->{annotations}{summary}, qr/has dead letters/, 'that of dead letters rings');
    is_deeply([ grep { $_->{labels}{severity} eq 'critical'
      && $_->{state} eq 'firing' } @{ $prometheus->api('alerts')->{alerts} } ], [],
        'no other that wakes people');
    $node->safe_psql('postgres',
        "SELECT inbox_discard(id, 'a test') FROM inbox_failure WHERE status = 'dead'");
    is($prometheus->settled('inbox_dead_letters', 0), 0, 'discarded, they are gone from Prometheus');
    $browser->wait_look('and from the page',
        sub { $_[0]{numbers}{'n-dead'} == 0 && @{ $_[0]{dead} } == 0 });
};
is($puller->stop, 0, 'stops with status 0');
done_testing;
