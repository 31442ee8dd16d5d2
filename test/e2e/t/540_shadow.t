# SPDX-License-Identifier: PostgreSQL
# --shadow: every message of a second subscription runs and is rolled back, whatever becomes of it, and
# what would have happened is reported. A dump shows that nothing has changed.
use strict;
use warnings;
use IPC::Run ();
use JSON::PP;
use PostgreSQL::Test::Utils;
use Test::More;
use Inbox::Check;
use Inbox::Ledger;
use Inbox::Scene;
use Inbox::Wait;

my $scene = Inbox::Scene->new('own', 'shadow', conf => "restart_after_crash = on\n", sql => <<'SQL');
CREATE TABLE posted (key text NOT NULL, amount int NOT NULL CHECK (amount < 900),
	account int REFERENCES account DEFERRABLE INITIALLY DEFERRED);
CREATE FUNCTION post(key text, payload jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO posted VALUES (key, (payload->>'amount')::int, (payload->>'account')::int);
	IF key = 'kills' THEN
		COPY (SELECT) TO PROGRAM 'kill -9 $PPID';
	END IF;
	IF key = 'commits' THEN
		COMMIT;
	END IF;
	RETURN payload;
END $$;
GRANT ALL ON posted TO PUBLIC;
SQL
my ($service, $node) = @$scene{qw(service node)};
$service->create_subscription('second', 'shadow');

sub owner_runs { return Inbox::Ledger::owner_runs($node, @_) }

# What a kept message takes from its sequence is not given back.
sub dump_all
{
    my @dump = ('pg_dump', '--no-sync', '-d', $node->connstr('postgres'));
    IPC::Run::run(\@dump, '>', \my $dump) or die "could not dump\n";
    return $dump =~ s/^\\(?:un)?restrict .*\n//gmr =~ s/^.*setval\('public\.inbox_failure_id_seq'.*\n//mr;
}

sub shadow
{
    my (%args) = @_;
    return $scene->puller(handler => 'post', subscription => $service->subscription('second'),
        log_level => 'debug', %args, options => [ '--shadow', '--source=ledger', @{ $args{options} // [] } ]);
}

# Refused at first: there is no such source, and then the subscription is somebody's.
my $early = shadow();
my $refused = $early->wait_event('db_refused');
like("$refused->{err} $refused->{hint}", qr/source is not there.*inbox_configure\('ledger'\)/,
    'it makes no source');
is($early->stop, 0, 'it can be stopped all the same');
is($node->safe_psql('postgres', 'SELECT count(*) FROM inbox_source'), 0, 'there is none');
owner_runs("SELECT inbox_import(ARRAY['old 1', 'old 2'], 'ledger')");
my $work = $scene->puller;
$work->wait_event('db_connected');
is($work->stop, 0, 'another one has served');
my $thief = shadow(subscription => $service->subscription('shadow-sub'));
is($thief->wait_end(20), 2, 'a shadow of the same subscription ends');
($refused) = $thief->events('db_refused');
like("$refused->{err} $refused->{hint}", qr/take the messages .* away.*second subscription/,
    'as it would take messages away');

# --check sees a shadow as it would be seen.
my %check = (dbname => $node->connstr('postgres'), handler => 'post', source => 'ledger',
    env => { PUBSUB_EMULATOR_HOST => $service->host }, options => ['--shadow']);
like(Inbox::Check->run(%check, subscription => $service->subscription('shadow-sub'))->problem('source') // '',
    qr/take its messages away -> .*second subscription/, '--check: of the same subscription');
like(Inbox::Check->run(%check, source => 'other', subscription => $service->subscription('second'))
      ->problem('source') // '', qr/makes nothing -> .*inbox_configure\('other'\)/, '--check: no source');
is(Inbox::Check->run(%check, subscription => $service->subscription('second'))->problem('source'), undef,
    '--check: of a second one');

my $before = dump_all();
my $claims = $node->safe_psql('postgres', "SELECT count(*), max(xmin::text::bigint) FROM inbox_claim");
my @messages = (map({ Inbox::Ledger::payment("good $_", $_ % 50, $_) } 1 .. 100),
    map({ Inbox::Ledger::payment("old $_", 1, 1) } 1, 2),
    Inbox::Ledger::payment('deferred', 4711, 1), Inbox::Ledger::payment('commits', 1, 1),
    map({ Inbox::Ledger::payment("bad $_", 1, 900) } 1 .. 3),
    { data => '{}', attributes => { other => 'x' } });
# Two of a key, in one batch perhaps.
push @messages, Inbox::Ledger::payment('good 1', 2, 2);
$scene->publish(@messages);
my $shadow = shadow();
wait_until('all to be acknowledged', sub { $service->stats('second')->{unacked} == 0 }, 60);
is($shadow->stop, 0, 'it ends well');
is($service->stats('shadow-sub')->{unacked}, scalar @messages, 'the other subscription has them all');
is(dump_all(), $before, 'nothing has changed');
is($node->safe_psql('postgres', "SELECT count(*), max(xmin::text::bigint) FROM inbox_claim"), $claims,
    'no claim either');

my $report = join '', grep { !/^\{/ } map { "$_\n" } split /\n/, $shadow->slurp_log;
like($report, qr/^post would have made of \d+ deliveries from \S+second:$/m, 'there is a report');
my %said = $report =~ /^  ([a-z]+) +(\d+)$/mg;
cmp_ok($said{applied}, '>=', 100, 'what would be applied');
is($said{duplicate} // 0, 2, 'what would be a duplicate of the imported keys');
is($said{retrying}, 5, 'what would have failed');
is($said{dead}, 1, 'what could never be applied');
like($report, qr/^  23514 +3  handler: .*posted_amount_check.*key bad \d$/m, 'an error, by its SQLSTATE');
like($report, qr/^  23503 +1  handler: .*foreign key.*key deferred$/m, 'one that only the end would show');
like($report, qr/^  2D000 +1  handler: .*key commits$/m, 'a handler that would commit by itself');
like($report, qr/^  - +1  no_key: .*key \(none\)$/m, 'a message without a key');
like($report, qr/^a message took [0-9.]+ ms on average; half of them at most /m, 'and times');

# A message that takes its backend along is found, and given up at its second turn; those that were with
# it are run alone. It takes a superuser.
if (!defined Inbox::Ledger::owner())
{
    my @with = map { Inbox::Ledger::payment("lives $_", 1, 1) } 1 .. 40;
    $scene->publish(@with[ 0 .. 19 ], Inbox::Ledger::payment('kills', 1, 1), @with[ 20 .. 39 ]);
    $shadow = shadow();
    wait_until('all to be acknowledged', sub { $service->stats('second')->{unacked} == 0 }, 60);
    is($shadow->stop, 0, 'it ends well after a crash');
    %said = $shadow->slurp_log =~ /^  ([a-z]+) +(\d+)$/mg;
    is($said{applied}, 40, 'what was with the one that crashed it would be applied');
    like($shadow->slurp_log, qr/^  IX006 +1  handler: .*key kills$/m, 'and it says what brought it about');
    is($node->safe_psql('postgres', 'SELECT count(*) FROM posted'), 0, 'nothing is left of it');
}
done_testing;
