# SPDX-License-Identifier: PostgreSQL
# --check against a real server and the project's own Pub/Sub server: all as it should be, then much
# that is not. It changes nothing. README.md shows both, word for word but for what differs from
# run to run; what it has to show is left in the log folder as check_*.txt.
use strict;
use utf8;
use warnings;
use File::Temp qw(tempdir);
use JSON::PP;
use PostgreSQL::Test::Utils;
use Test::More;
use Inbox::Check;
use Inbox::File;
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;

my $dir = tempdir(CLEANUP => 1);
my $account = 'puller@my-project.iam.gserviceaccount.com';
my $managed = defined Inbox::Ledger::owner();
# Without it, nothing but what is looked at takes a transaction id.
my $node = Inbox::Ledger->start('check', conf => "autovacuum_naptime = 1h\n");
my $service = Inbox::Service->start('own');
$service->{project} = 'my-project';

sub owner_runs { return Inbox::Ledger::owner_runs($node, @_) }

system('openssl', 'genrsa', '-out', "$dir/key.pem", '2048') == 0 or die "openssl failed\n";
my $key = slurp_file("$dir/key.pem");
my $credentials = write_file("$dir/key.json", encode_json({ type => 'service_account',
    client_email => $account, private_key_id => '1', private_key => $key,
    token_uri => 'https://127.0.0.1/token' }));

$node->safe_psql('postgres', 'CREATE ROLE puller LOGIN');
owner_runs("SELECT inbox_grant('puller', 'puller')");
$service->create_topic('payments');
$service->create_subscription('ledger', 'payments', retainAckedMessages => JSON::PP::true,
    expirationPolicy => {});
my %how = (dbname => $node->connstr('postgres') . ' user=puller', handler => 'apply_payment',
    subscription => $service->subscription('ledger'), endpoint => $service->{url},
    options => [ '--credentials-file', $credentials ]);

# ---- all green ----------------------------------------------------------------------------

# Whatever is stored, sequences included, and the next transaction id: no write, not even one that
# was taken back, goes without one.
sub contents
{
    my ($dump) = run_command([ 'pg_dumpall', '-d', $node->connstr('postgres') ]);
    # pg_dump makes up a word for these two each time.
    $dump =~ s/^\\(?:un)?restrict .*\n//mg;
    my $transaction =
      $node->safe_psql('postgres', 'SELECT pg_snapshot_xmax(pg_current_snapshot())');
    my $subscription = $service->call('GET', '/v1/' . $how{subscription});
    my $counters = $service->stats->{counters};
    delete $counters->{requests};
    return { dump => $dump, transaction => $transaction, subscription => $subscription,
        counters => $counters };
}

my $before = contents();
my $green = Inbox::Check->run(%how);
is_deeply(contents(), $before, 'nothing has changed, in the database and in Pub/Sub');
is($green->{status}, 0, 'nothing is wrong: status 0') or diag $green->{out}, $green->{err};
is($green->{json_status}, 0, 'also for machines');
is($green->{err}, '', 'nothing is said besides');
is_deeply([ $green->problems ], [], 'no problems');
is($green->{document}{problems}, 0, 'and none counted');
like($green->{out}, qr/^no problems$/m, 'which is said');

my @facts = qw(database encoding inbox rights role inbox_check handler source timeouts
  synchronous_commit standbys credentials token subscription topic ack_deadline ordering exactly_once
  filter retry_policy retention expiration retained_acks dead_letters consuming);
is_deeply([ map { $_->{name} } @{ $green->{document}{facts} } ], \@facts, 'every fact is there');
is_deeply([ map { $_->{name} =~ tr/ -/_/r } $green->lines ], \@facts, 'in a line each');
is_deeply([ map { $_->{name} } grep { !defined $_->{ok} } @{ $green->{document}{facts} } ],
    ['standbys'], 'with a verdict, but for one');
my $variant = $managed ? qr/^managed in schema public: tables (\S+), functions \1; inbox-puller \1$/
  : qr/^extension in schema public: objects (\S+), library \1; inbox-puller \1$/;
like($green->fact('inbox')->{value}, $variant, 'which inbox it is, with its versions');
like($green->fact('handler')->{value}, qr/^public\.apply_payment\(.*text, ?\S*jsonb\)/,
    'the whole signature');
is($green->fact('credentials')->{value}, "service_account of $account", 'which credentials');
like($green->fact('token')->{value}, qr/^obtained, good for \d+ min$/, 'and the token');

# ---- the log of a puller says which inbox it talks to ---------------------------------------

my $puller = Inbox::Puller->start(%how, service => $service,
    env => { PUBSUB_EMULATOR_HOST => undef },
    options => [ @{ $how{options} }, '--endpoint', $service->{url} ]);
my $connected = $puller->wait_event('db_connected');
my ($version) = $green->fact('inbox')->{value} =~ /inbox-puller (\S+)$/;
is($connected->{ $managed ? 'managed' : 'extension' }, $version, 'the log names the variant');
ok(!exists $connected->{ $managed ? 'extension' : 'managed' }, 'and not the other one');
is($puller->stop, 0, 'stops');
like(Inbox::Check->run(%how)->fact('source')->{value},
    qr/last served \S+Z with public\.apply_payment\(.*\) from $how{subscription}$/,
    'what it has served is known');

# ---- much that is wrong -------------------------------------------------------------------

owner_runs('CREATE FUNCTION post(payload jsonb) RETURNS void BEGIN ATOMIC END; '
      . 'REVOKE EXECUTE ON FUNCTION post(jsonb) FROM PUBLIC');
$service->create_topic($_) foreach ('refunds', 'given-up');
$service->create_subscription('given-up', 'given-up');
$service->create_subscription('refunds', 'refunds', ackDeadlineSeconds => 600,
    filter => 'attributes.kind = "refund"', enableMessageOrdering => JSON::PP::true,
    deadLetterPolicy =>
      { deadLetterTopic => $service->topic('given-up'), maxDeliveryAttempts => 5 });
my $wrong = Inbox::Check->run(%how, handler => 'post', source => $how{subscription},
    subscription => $service->subscription('refunds'));
is($wrong->{status}, 2, 'something is wrong: status 2');
is($wrong->{json_status}, 2, 'also for machines');
is_deeply([ $wrong->problems ], [qw(handler source expiration retained_acks dead_letters)],
    'five things are') or diag $wrong->{out}, $wrong->{err};
is($wrong->{document}{problems}, 5, 'counted');
like($wrong->{out}, qr/^5 problems$/m, 'and said to be');
foreach my $line ($wrong->lines)
{
    like($line->{text}, qr/ → \S/, "$line->{name}: has a remedy") if $line->{mark} eq '✗';
    unlike($line->{text}, qr/ → /, "$line->{name}: has none") if $line->{mark} ne '✗';
}
is((grep { $_->{mark} eq '✗' } $wrong->lines), 5, 'five lines are marked');
unlike($_->{out} . encode_json($_->{document}) . $_->{err}, qr/PRIVATE KEY|eyJ/,
    'neither the key nor a token is shown') foreach ($green, $wrong);

my ($grant) = $wrong->problem('handler') =~ /(GRANT EXECUTE .*;)/;
owner_runs($grant);
is_deeply([ Inbox::Check->run(%how, handler => 'post', source => $how{subscription},
        subscription => $service->subscription('refunds'), options => [ @{ $how{options} },
            '--take-over' ])->problems ],
    [qw(expiration retained_acks dead_letters)], 'the remedies for the database are the right ones');
like($wrong->problem('expiration'),
    qr{-> gcloud pubsub subscriptions update projects/my-project/subscriptions/refunds },
    'the others are for gcloud');

# ---- README.md ----------------------------------------------------------------------------

# What differs from one run or machine to the next, as README.md has it.
sub normalized
{
    my ($text) = @_;
    $text =~ s/postgres on \S+ as (\w+), PostgreSQL \S+/books on db.example.com:5432 as $1, PostgreSQL 15.20, TLS/;
    $text =~ s/last served \S+Z/last served 2026-11-30T12:00:00Z/;
    $text =~ s/good for \d+ min/good for 59 min/;
    $text =~ s/all of its \d+ rows/all of its 28 rows/;
    return $text;
}

# README.md shows the extension.
if (!$managed)
{
    my $readme = slurp_file("$ENV{INBOX_ROOT}/README.md");
    utf8::decode($readme);
    my %shown = (green => $green, wrong => $wrong);
    foreach my $name (sort keys %shown)
    {
        my $text = normalized($shown{$name}->text);
        open(my $fh, '>:utf8', "$PostgreSQL::Test::Utils::log_path/check_$name.txt") or die;
        print $fh $text;
        close($fh);
        ok(index($readme, "```\n$text```\n") >= 0, "README.md shows check_$name.txt");
    }
}
done_testing;
