# SPDX-License-Identifier: PostgreSQL
# The status page in a browser, in each state: what it shows is what the database has, nothing that
# a publisher wrote becomes markup, and no payload is shown. Screenshots are kept for people.
use strict;
use warnings;
use PostgreSQL::Test::Utils qw(slurp_file);
use Test::More;
use Inbox::Ledger;
use Inbox::StatusPage;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

plan(skip_all => Inbox::StatusPage::missing()) if defined Inbox::StatusPage::missing();

my $hostile = q{<img src=x onerror="alert(1)"></td>&amp;'};
my $secret = 'open-sesame';
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
    dbname => $node->connstr('postgres') . " user=page password=$secret",
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

# What the database has, by the ids of the page; "claims" is for those that were applied, died or
# were parked. Of what a failed message left there is nothing else.
sub truth
{
    my @ids = qw(n-applied claims n-dead n-retrying n-parked n-conflicts n-expired);
    my %truth;
    @truth{@ids} = split /\|/, Inbox::Ledger::count($node, <<'SQL');
SELECT (SELECT count(*) FROM effect), (SELECT count(*) FROM inbox_claim),
	count(*) FILTER (WHERE status = 'dead'), count(*) FILTER (WHERE status = 'retrying'),
	count(*) FILTER (WHERE status = 'parked'), count(*) FILTER (WHERE status = 'conflict'),
	count(*) FILTER (WHERE status = 'expired') FROM inbox_failure
SQL
    return \%truth;
}

sub shown
{
    my ($seen) = @_;
    my $numbers = $seen->{numbers};
    my %shown = map { $_ => $numbers->{$_} } grep { /^n-(?!rate|held|duplicate)/ } keys %$numbers;
    $shown{claims} = $numbers->{'n-applied'} + $numbers->{'v-dead'} + ($numbers->{'v-parked'} // 0);
    return \%shown;
}

# One test: the numbers of the page are those of the database, which may change until they are, or
# those that it had.
sub agrees
{
    my ($what, $had) = @_;
    my ($shown, $truth);
    eval {
        wait_until('the numbers to agree', sub {
            $truth = $had // truth();
            $shown = shown($browser->look);
            join(' ', map { "$_ $truth->{$_}" } sort keys %$truth)
              eq join(' ', map { "$_ " . ($shown->{$_} // '') } sort keys %$shown);
        }, 60, 0.5);
    };
    return is_deeply($shown, $truth, "$what: every number is the database's");
}

sub each_number { return $_[0] =~ /\d+/g }

# "average 3 ms", "oldest 1.2 s" or "average 2 min" as seconds.
sub seconds
{
    my ($number, $unit) = $_[0] =~ /^\w+ ([\d.]+) (ms|s|min|h)$/ or return -1;
    return $number * { ms => 0.001, s => 1, min => 60, h => 3600 }->{$unit};
}

# What the plots say of the busiest step is what was counted in it.
sub plots_agree
{
    my $applied_so_far = $browser->look->{numbers}{'n-applied'};
    my $history = wait_until('the steps to add up to what was applied', sub {
        my $counted = Inbox::StatusPage::status($url)->{history};
        Inbox::StatusPage::sum_of($counted->{applied}) == $applied_so_far && $counted });
    my $steps = @{ $history->{applied} };
    $browser->wait_look('them to be drawn',
        sub { $_[0]{steps}{rate} >= $steps && $_[0]{steps}{age} >= $steps });
    my ($place) = sort { $history->{applied}[$b] <=> $history->{applied}[$a] } 0 .. $#{ $history->{applied} };
    my $rate = $history->{applied}[$place] / ($history->{step} / 1000);
    my (undef, $applied) = $browser->point('plot-rate', $place);
    my ($said) = ($applied // '') =~ /^applied ([\d.]+)$/;
    cmp_ok($rate, '>', 0, 'there is a step with messages');
    cmp_ok(abs(($said // -1) - $rate), '<=', 0.05 + ($rate >= 10 ? 0.5 : 0), "the plot of rates has its rate: $rate");
    my (undef, @ages) = $browser->point('plot-age', $place);
    foreach my $line ([ average => 'age' ], [ oldest => 'age_max' ])
    {
        my ($name, $member) = @$line;
        my ($text) = grep { /^$name / } @ages;
        my $age = $history->{$member}[$place];
        cmp_ok(abs(seconds($text // '') - $age), '<=', 0.0006 + $age * 0.06,
            "the plot of ages has its $name one: " . ($text // 'none'));
    }
}

# Of "#000" or "rgb(0, 0, 0)": how light it is, from 0 to 1.
sub lightness
{
    my @parts = $_[0] =~ /(\d+)/g;
    return (0.2126 * $parts[0] + 0.7152 * $parts[1] + 0.0722 * $parts[2]) / 255;
}

sub picture
{
    my ($name) = @_;
    my $seen = $browser->shoot($name);
    cmp_ok($seen->{overflow}, '<=', 0, "$name: nothing is too wide, on a phone either");
    my %light = map { $_ => [ map { lightness($_) } @{ $seen->{colors}{$_} } ] } qw(light dark phone);
    cmp_ok($light{light}[0] - $light{light}[1], '>', 0.6, "$name, light: dark on light");
    cmp_ok($light{$_}[1] - $light{$_}[0], '>', 0.6, "$name, $_: light on dark") foreach qw(dark phone);
    isnt(slurp_file("$browser->{shots}/$name-light.png"), slurp_file("$browser->{shots}/$name-dark.png"),
        "$name: the two are not one picture");
}

subtest 'healthy' => sub {
    $service->publish('pay', payments('a', 500), payments('a', 40));
    my $seen = $browser->wait_look('all to be applied', sub {
        $_[0]{numbers}{'n-applied'} == 500 && $_[0]{numbers}{'n-duplicate'} == 40
          && $_[0]{state} eq 'working' && $_[0]{numbers}{'n-dead'} == 0 });
    agrees('healthy');
    is_deeply([ grep { !$seen->{checks}{$_} } keys %{ $seen->{checks} } ], [],
        'every check is well');
    like($seen->{flow}, qr{projects/p/subscriptions/ledger.*maybe},
        'says what it consumes and into what');
    is(scalar @{ $seen->{workers} }, 2, 'shows each connection');
    picture('healthy');
};

subtest 'idle' => sub {
    my $seen = $browser->wait_look('it to be idle',
        sub { $_[0]{state} eq 'idle' && $_[0]{steps}{rate} > 0 && $_[0]{steps}{age} > 0
              && $_[0]{leases}{held} =~ /^0 / });
    is($seen->{numbers}{'n-rate'}, 0, 'no message a second');
    agrees('idle');
    plots_agree();
    is_deeply([ each_number($seen->{leases}{'ready, running, acking, returning'}) ], [ 0, 0, 0, 0 ],
        'no message is held');
    is($seen->{leases}{'ack deadline of the subscription'}, '10 s', 'says how long a lease is');
    is($seen->{advice}, undef, 'nothing to be said');
    picture('idle');
};

subtest 'dead letters' => sub {
    $node->safe_psql('postgres', q{SELECT inbox_configure('projects/p/subscriptions/ledger',
        max_attempts => 1, order_policy => 'park')});
    $service->publish('pay', failing($hostile), failing('second'), failing('third',
        orderingKey => "o$hostile"));
    $puller->wait_event('dead_letter', sub { $_[0]{key} eq 'third' });
    $service->publish('pay', payments('parked', 1, orderingKey => "o$hostile"), failing('second'),
        Inbox::Ledger::payment('a1', 1, 1000));
    my $seen = $browser->wait_look('three to be dead, one parked, one in conflict',
        sub { @{ $_[0]{dead} } == 3 && @{ $_[0]{blocked} } == 1
          && $_[0]{numbers}{'v-duplicate'} == 41 && $_[0]{numbers}{'n-conflicts'} == 1
              && $_[0]{blocked}[0][2] =~ /^1 / });
    agrees('dead letters');
    my @rows = split /\n/, Inbox::Ledger::count($node,
        q{SELECT concat_ws('|', id, key, sqlstate, error) FROM inbox_failure WHERE status = 'dead'
        ORDER BY last_failed_at DESC, id DESC});
    is_deeply([ map { join '|', @$_[ 0, 3, 2, 4 ] } @{ $seen->{dead} } ], \@rows,
        'the rows of the database, newest first');
    is($seen->{blocked}[0][0], "o$hostile", 'the blocked ordering key');
    is_deeply([ @{ $seen->{numbers} }{qw(n-dead n-parked n-conflicts)} ], [ 3, 1, 1 ], 'and their numbers');
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
    agrees('halted');
    picture('halted');
    $node->safe_psql('postgres', 'DELETE FROM trouble');
    $browser->wait_look('it to go on', sub { $_[0]{state} =~ /^(?:working|idle)$/
              && $_[0]{numbers}{'n-retrying'} == 0 && $_[0]{numbers}{'n-applied'} == 540 }, 60);
    agrees('resumed');
};

subtest 'Pub/Sub down' => sub {
    $service->stop;
    my $seen = $browser->wait_look('it to be seen', sub { $_[0]{state} eq 'no_pubsub' }, 60);
    is($seen->{checks}{pubsub}, 0, 'the check says so');
    is(Inbox::StatusPage::get("$url/healthz")->{status}, 503, '/healthz: 503');
    agrees('Pub/Sub down');
    picture('pubsub-down');
    $service->begin;
    $service->create_topic('pay');
    $service->create_subscription('ledger', 'pay');
    $service->publish('pay', payments('p', 10));
    $browser->wait_look('it to be back',
        sub { $_[0]{numbers}{'n-applied'} == 550 && $_[0]{checks}{pubsub} }, 60);
};

subtest 'database down' => sub {
    agrees('before');
    my $had = truth();
    $node->stop('immediate');
    my $seen = $browser->wait_look('it to be seen', sub { $_[0]{state} eq 'no_database' });
    # These come by the pull that was under way, and wait with their leases.
    $service->publish('pay', payments('w', 20));
    my $leased = wait_until('some to be held', sub { $service->stats('ledger')->{leased} });
    $seen = $browser->wait_look('their leases to be extended', sub {
        ($leased = $service->stats('ledger')->{leased}) && $_[0]{leases}{held} =~ /^$leased /
              && $_[0]{leases}{extended} >= $leased }, 60);
    is($seen->{numbers}{'n-held'}, $leased, "what is held is what Pub/Sub has leased: $leased");
    is_deeply([ each_number($seen->{leases}{'ready, running, acking, returning'}) ], [ $leased, 0, 0, 0 ],
        'all of it waits');
    like($seen->{leases}{'next one ends in'}, qr/^[\d.]+ m?s$/, 'and when the next lease ends');
    is($seen->{leases}{'expired while held'}, 0, 'none ended');
    agrees('database down', $had);
    is($seen->{checks}{database}, 0, 'the check says so');
    is(scalar(grep { $_->[1] =~ /^(?:down|connecting|greeting)/ } @{ $seen->{workers} }), 2,
        'no connection is there');
    is(Inbox::StatusPage::get("$url/livez")->{status}, 200, '/livez: 200');
    is(Inbox::StatusPage::get("$url/healthz")->{status}, 503, '/healthz: 503');
    is(Inbox::StatusPage::get("$url/readyz")->{status}, 503, '/readyz: 503');
    is(scalar @{ $seen->{dead} }, 3, 'the dead letters are shown as they were');
    picture('database-down');
    $node->start;
    $browser->wait_look('it to be back',
        sub { $_[0]{state} =~ /^(?:working|idle)$/ && $_[0]{numbers}{'n-applied'} == 570 }, 60);
    agrees('back');
};

subtest 'secrets' => sub {
    foreach my $path (qw(/ /status.json /metrics /livez /readyz /healthz))
    {
        my $answer = Inbox::StatusPage::get("$url$path")->{content};
        cmp_ok(length($answer), '>', 0, "$path: answers");
        unlike($answer, qr/\Q$secret\E|${\Inbox::Ledger::MEMO}/, 'with neither a password nor a payload');
    }
};

subtest 'no answer' => sub {
    is($puller->stop, 0, 'the puller stops');
    my $seen = $browser->wait_look('it to be seen', sub { $_[0]{state} eq 'no_answer' });
    like($seen->{advice}, qr/does not answer/, 'the page says that it is old');
    is($seen->{leaked}, 0, 'no payload was shown');
    is_deeply($seen->{scriptErrors}, [], 'the script made no error');
};
is_deeply([ Inbox::Puller->leaks(Inbox::Ledger::MEMO, $secret) ], [], 'no log shows a payload or a password');
done_testing;
