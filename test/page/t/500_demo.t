# SPDX-License-Identifier: PostgreSQL
# The demo itself, with a browser on its page and a Prometheus that scrapes it: when all is done, what
# these say is what inbox_status() and the ledger say. The puller that is looked at is the second one.
use strict;
use warnings;
use Inbox::Agreement;
use Inbox::Prometheus;
use Inbox::Service;
use Inbox::StatusPage;
use Inbox::Wait;
use PostgreSQL::Test::Utils;
use Test::More;

foreach my $missing (Inbox::StatusPage::missing(), Inbox::Prometheus::missing())
{
    plan(skip_all => $missing) if defined $missing;
}

my $output = "$PostgreSQL::Test::Utils::log_path/500_demo_output.log";
my $demo = open(my $enter, '|-') // die "could not fork: $!\n";
if ($demo == 0)
{
    @ENV{qw(WATCH PUBSUB PAYMENTS)} = (1, 'own', 1500);
    open(STDOUT, '>', $output) or die "$output: $!\n";
    open(STDERR, '>&', \*STDOUT);
    exec("$ENV{INBOX_ROOT}/demo/run") or die "could not run the demo: $!\n";
}

# What the demo says, as soon as it does.
sub said
{
    my ($pattern, $seconds) = @_;
    return wait_until("the demo to say $pattern", sub {
        my $text = -e $output ? slurp_file($output) : '';
        die "the demo has failed:\n$text" if kill(0, $demo) && $text =~ /failed|interrupted|ended by itself/;
        $text =~ $pattern ? $1 : undef }, $seconds);
}

my $url = said(qr{^Page +(http://\S+?)/ }m, 60);
my $browser = Inbox::StatusPage->browse;
my $prometheus = Inbox::Prometheus->start($url =~ s{http://}{}r);
said(qr/(the puller starts)/, 60);
wait_until('the page', sub { eval { Inbox::StatusPage::status($url) } }, 30);
$browser->open_page($url);
$browser->wait_look('the page to show payments', sub { ($_[0]{numbers}{'n-applied'} // 0) > 0 });
my $database = said(qr/^ +database +psql -d '(.*)'$/m, 300);

sub ask
{
    my ($sql) = @_;
    my ($out, $err) = run_command([ 'psql', '-XAtq', '-d', $database, '-c', $sql ]);
    die "$sql: $err\n" if $err ne '';
    return $out;
}

# What the demo itself has none of: keys that come again with another payload.
my $service = bless { project => 'p', http => HTTP::Tiny->new(timeout => 60),
    url => 'http://' . said(qr/PUBSUB_EMULATOR_HOST=(\S+)$/m) }, 'Inbox::Service';
my @keys = split /\n/, ask(q{SELECT payment FROM ledger.posting WHERE payment NOT LIKE 'opening %'
    GROUP BY payment ORDER BY payment LIMIT 3});
$service->publish('payments', map { { data => '{}', attributes => { idempotency_key => $_ } } } @keys);
wait_until('them to be kept', sub { ask(q{SELECT count(*) FROM inbox_failure WHERE status = 'conflict'}) == 3 });
wait_until('all to be acknowledged', sub { $service->stats('ledger')->{unacked} == 0 });

# A puller counts from its own start, as does what it writes to its log.
my $start = Inbox::StatusPage::metrics($url)->{process_start_time_seconds};
my ($folder) = $database =~ /host=(\S+)/;
my $duplicates = () = slurp_file("$folder/puller-2.log") =~ /"event":"message","verdict":"duplicate"/g;
my %truth = (duplicate => $duplicates);
@truth{qw(applied claims ordered died dead retrying parked conflict conflicts expired)} = split /\|/, ask(<<"SQL");
SELECT (SELECT count(*) FROM (SELECT FROM ledger.posting WHERE payment NOT LIKE 'opening %'
		GROUP BY payment HAVING min(posted_at) >= to_timestamp($start)) p),
	(SELECT count(*) FROM inbox_claim), (SELECT count(*) FROM producer.payment),
	count(*) FILTER (WHERE status = 'dead' AND last_failed_at >= to_timestamp($start)),
	count(*) FILTER (WHERE status = 'dead'), count(*) FILTER (WHERE status = 'retrying'),
	count(*) FILTER (WHERE status = 'parked'), count(*) FILTER (WHERE status = 'conflict'),
	count(*) FILTER (WHERE status = 'conflict'), count(*) FILTER (WHERE status = 'expired') FROM inbox_failure
SQL
is($truth{claims}, $truth{ordered}, 'every payment has had its verdict');
cmp_ok($truth{$_}, '>', 0, "there is something to compare: $truth{$_} $_") foreach qw(applied duplicate dead conflicts);
Inbox::Agreement::agree(\%truth, url => $url, browser => $browser, prometheus => $prometheus,
    status => ask('SELECT ' . Inbox::Agreement::STATUS . ' FROM inbox_status()'));
my $seen = $browser->look;
is_deeply([ map { $_->[0] } @{ $seen->{dead} } ], [ split /\n/, ask(q{SELECT id FROM inbox_dead_letters LIMIT 25}) ],
    'the page lists the dead letters, newest first');
is_deeply($seen->{scriptErrors}, [], 'the script of the page made no error, not while a puller was killed either');

print $enter "\n";
close($enter);
is($?, 0, 'and the books balance') or diag(slurp_file($output));
done_testing;
