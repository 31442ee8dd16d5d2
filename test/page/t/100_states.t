# SPDX-License-Identifier: PostgreSQL
# The status page in a browser, in each state: what it shows is what the database has, nothing that
# a publisher wrote becomes markup, and no payload is shown. Screenshots are kept for people.
use strict;
use warnings;
use Test::More;
use Inbox::Ledger;
use Inbox::StatusPage;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

plan(skip_all => Inbox::StatusPage::missing()) if defined Inbox::StatusPage::missing();

my $hostile = q{<img src=x onerror="alert(1)"></td>&amp;'};
my $node = Inbox::Ledger->start('page');
my $service = Inbox::Service->start('own');
my $browser = Inbox::StatusPage->browse;

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE trouble (on_all boolean);
CREATE FUNCTION maybe(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF payload->>'fail' IS NOT NULL OR EXISTS (SELECT FROM trouble) THEN
		RAISE EXCEPTION 'no such account <b>%</b>', key USING ERRCODE = 'AC404';
	END IF;
	PERFORM apply_payment(key, payload);
END $$;
CREATE ROLE page LOGIN;
GRANT ALL ON ALL TABLES IN SCHEMA public TO page;
REVOKE ALL ON inbox_source, inbox_claim, inbox_claim_result, inbox_failure FROM page;
SELECT inbox_grant('page', 'puller');
SQL
$service->create_topic('pay');
$service->create_subscription('ledger', 'pay', enableMessageOrdering => JSON::PP::true);

my $puller = Inbox::Puller->start(service => $service, handler => 'maybe', log_level => 'info',
    dbname => $node->connstr('postgres') . ' user=page',
    subscription => $service->subscription('ledger'),
    options => [ '--listen=127.0.0.1:0', '--workers=2', '--label=attribute:event_type',
        '--halt-after=5' ]);
my $url = Inbox::StatusPage::url($puller);
$browser->open_page($url);

sub payments
{
    my ($prefix, $count, %more) = @_;
    return map { my $n = $_; my %payment = %{ Inbox::Ledger::payment("$prefix$n", 1 + $n % 50, 1) };
        $payment{attributes}{event_type} = $n % 3 ? 'payment' : 'refund';
        +{ %payment, %more } } 1 .. $count;
}

sub failing
{
    my ($key, %more) = @_;
    return { data => '{"fail": 1, "memo": "' . Inbox::Ledger::MEMO . '"}',
        attributes => { idempotency_key => $key }, %more };
}

# The numbers of the page, and those of the database.
sub agrees
{
    my ($seen, $what) = @_;
    my ($claims, $effects, $dead, $retrying) = split /\|/, Inbox::Ledger::count($node, <<'SQL');
SELECT (SELECT count(*) FROM inbox_claim), (SELECT count(*) FROM effect),
	(SELECT count(*) FROM inbox_failure WHERE status = 'dead'),
	(SELECT count(*) FROM inbox_failure WHERE status = 'retrying')
SQL
    is($seen->{numbers}{'n-applied'}, $effects, "$what: applied is what the ledger has");
    is($seen->{numbers}{'n-applied'} + $seen->{numbers}{'v-dead'}
        + ($seen->{numbers}{'v-parked'} // 0),
        $claims, "$what: with dead and parked ones, the claims");
    is($seen->{numbers}{'n-dead'}, $dead, "$what: dead letters");
    is($seen->{numbers}{'n-retrying'}, $retrying, "$what: what is tried again");
    return;
}

sub picture
{
    my ($name) = @_;
    cmp_ok($browser->shoot($name)->{overflow}, '<=', 0,
        "$name: nothing is too wide, on a phone either");
}

subtest 'healthy' => sub {
    $service->publish('pay', payments('a', 500), payments('a', 40));
    my $seen = $browser->wait_look('all to be applied', sub {
        $_[0]{numbers}{'n-applied'} == 500 && $_[0]{numbers}{'n-duplicate'} == 40
          && $_[0]{state} eq 'working' && $_[0]{numbers}{'n-dead'} == 0 });
    agrees($seen, 'healthy');
    is_deeply([ grep { !$seen->{checks}{$_} } keys %{ $seen->{checks} } ], [],
        'every check is well');
    like($seen->{flow}, qr{projects/p/subscriptions/ledger.*maybe},
        'says what it consumes and into what');
    is(scalar @{ $seen->{workers} }, 2, 'shows each connection');
    picture('healthy');
};

subtest 'idle' => sub {
    my $seen = $browser->wait_look('it to be idle',
        sub { $_[0]{state} eq 'idle' && $_[0]{steps} > 0 });
    is($seen->{numbers}{'n-rate'}, 0, 'no message a second');
    is($seen->{advice}, undef, 'nothing to be said');
    picture('idle');
};

subtest 'dead letters' => sub {
    $node->safe_psql('postgres', q{SELECT inbox_configure('projects/p/subscriptions/ledger',
        max_attempts => 1, order_policy => 'park')});
    $service->publish('pay', failing($hostile), failing('second'), failing('third',
        orderingKey => "o$hostile"));
    $puller->wait_event('dead_letter', sub { $_[0]{key} eq 'third' });
    $service->publish('pay', payments('parked', 1, orderingKey => "o$hostile"), failing('second'));
    my $seen = $browser->wait_look('three to be dead, one parked',
        sub { @{ $_[0]{dead} } == 3 && @{ $_[0]{blocked} } == 1
          && $_[0]{numbers}{'v-duplicate'} == 41
              && $_[0]{blocked}[0][2] =~ /^1 / });
    my @rows = split /\n/, Inbox::Ledger::count($node,
        q{SELECT concat_ws('|', id, key, sqlstate, error) FROM inbox_failure WHERE status = 'dead'
        ORDER BY last_failed_at DESC, id DESC});
    is_deeply([ map { join '|', @$_[ 0, 3, 2, 4 ] } @{ $seen->{dead} } ], \@rows,
        'the rows of the database, newest first');
    is($seen->{blocked}[0][0], "o$hostile", 'the blocked ordering key');
    is($seen->{numbers}{'n-dead'}, 3, 'and their number');
    like(join(' ', map { @$_ } @{ $seen->{errors} }), qr/dead_letter AC404/, 'the last errors');
    is(Inbox::StatusPage::metrics($url)->{inbox_dead_letter_duplicates_total}, 1,
        'a copy of one is counted');
    is($seen->{markup}, 0, 'a hostile key is text');
    picture('dead-letters');
};

subtest 'halted' => sub {
    $node->safe_psql('postgres', q{INSERT INTO trouble VALUES (true);
        SELECT inbox_configure('projects/p/subscriptions/ledger', max_attempts => 20)});
    $service->publish('pay', payments('h', 40));
    my $seen = $browser->wait_look('it to be halted', sub { $_[0]{state} eq 'halted' }, 40);
    is($seen->{checks}{progress}, 0, 'the check says so');
    like($seen->{advice}, qr/look at the handler/, 'and what to do');
    is(Inbox::StatusPage::get("$url/healthz")->{status}, 503, '/healthz: 503');
    is(Inbox::StatusPage::get("$url/readyz")->{status}, 200, '/readyz: 200');
    is(Inbox::StatusPage::metrics($url)->{inbox_source_halted}, 1, '/metrics');
    picture('halted');
    $node->safe_psql('postgres', 'DELETE FROM trouble');
    $seen = $browser->wait_look('it to go on', sub { $_[0]{state} =~ /^(?:working|idle)$/
              && $_[0]{numbers}{'n-retrying'} == 0 && $_[0]{numbers}{'n-applied'} == 540 }, 60);
    agrees($seen, 'resumed') if is($seen->{numbers}{'n-applied'}, 540, 'all are applied');
};

subtest 'Pub/Sub down' => sub {
    $service->stop;
    my $seen = $browser->wait_look('it to be seen', sub { $_[0]{state} eq 'no_pubsub' }, 60);
    is($seen->{checks}{pubsub}, 0, 'the check says so');
    is(Inbox::StatusPage::get("$url/healthz")->{status}, 503, '/healthz: 503');
    picture('pubsub-down');
    $service->begin;
    $service->create_topic('pay');
    $service->create_subscription('ledger', 'pay');
    $service->publish('pay', payments('p', 10));
    $browser->wait_look('it to be back',
        sub { $_[0]{numbers}{'n-applied'} == 550 && $_[0]{checks}{pubsub} }, 60);
};

subtest 'database down' => sub {
    $node->stop('immediate');
    my $seen = $browser->wait_look('it to be seen', sub { $_[0]{state} eq 'no_database' });
    is($seen->{checks}{database}, 0, 'the check says so');
    is(scalar(grep { $_->[1] =~ /^(?:down|connecting|greeting)/ } @{ $seen->{workers} }), 2,
        'no connection is there');
    is(Inbox::StatusPage::get("$url/livez")->{status}, 200, '/livez: 200');
    is(Inbox::StatusPage::get("$url/healthz")->{status}, 503, '/healthz: 503');
    is(Inbox::StatusPage::get("$url/readyz")->{status}, 503, '/readyz: 503');
    is(scalar @{ $seen->{dead} }, 3, 'the dead letters are shown as they were');
    picture('database-down');
    $node->start;
    $seen = $browser->wait_look('it to be back',
        sub { $_[0]{state} =~ /^(?:working|idle)$/ && $_[0]{numbers}{'n-dead'} == 3 }, 60);
    agrees($seen, 'back');
};

subtest 'no answer' => sub {
    is($puller->stop, 0, 'the puller stops');
    my $seen = $browser->wait_look('it to be seen', sub { $_[0]{state} eq 'no_answer' });
    like($seen->{advice}, qr/does not answer/, 'the page says that it is old');
    is($seen->{leaked}, 0, 'no payload was shown');
    is_deeply($seen->{scriptErrors}, [], 'the script made no error');
};
is_deeply([ Inbox::Puller->leaks(Inbox::Ledger::MEMO) ], [], 'no log shows a payload');
done_testing;
