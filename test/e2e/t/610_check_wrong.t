# SPDX-License-Identifier: PostgreSQL
# --check when one thing is wrong: that it is found, alone, with its cause and its remedy; and what
# is no problem, though it may look like one.
use strict;
use warnings;
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;
use Inbox::Check;
use Inbox::File;
use Inbox::Ledger;
use Inbox::Service;

my $dir = tempdir(CLEANUP => 1);
my $managed = defined Inbox::Ledger::owner();
my $node = Inbox::Ledger->start('check_wrong', conf => "autovacuum_naptime = 1h\n");
my %sound = (retainAckedMessages => JSON::PP::true, expirationPolicy => {});

sub owner_runs { return Inbox::Ledger::owner_runs($node, @_) }

my $service = Inbox::Service->start('own', '--token-file', write_file("$dir/tokens", "s3cret-token\n"));
$service->{token} = 's3cret-token';
my $token = write_file("$dir/token", "s3cret-token\n");
$service->create_topic($_) foreach qw(pay given-up gone);
$service->create_subscription($_, 'pay', %sound) foreach qw(pay-sub till);

$node->safe_psql('postgres', 'CREATE DATABASE empty; CREATE DATABASE latin ENCODING \'LATIN1\' '
      . "TEMPLATE template0 LOCALE 'C'");
$node->safe_psql('postgres', "CREATE ROLE $_ LOGIN")
  foreach qw(puller stranger writer reader hasty idle member caller);
owner_runs("SELECT inbox_grant(r, 'puller') FROM unnest('{puller,writer,reader,hasty,idle,member,caller}'"
      . '::regrole[]) r');
owner_runs(<<'SQL');
REVOKE EXECUTE ON FUNCTION inbox_fail FROM member;
GRANT EXECUTE ON FUNCTION inbox_erase TO caller;
SELECT inbox_grant('reader', 'monitor');
CREATE FUNCTION strangers(payload jsonb) RETURNS void BEGIN ATOMIC END;
REVOKE EXECUTE ON FUNCTION strangers FROM PUBLIC;
CREATE PROCEDURE a_procedure(payload jsonb) BEGIN ATOMIC END;
CREATE FUNCTION overloaded(payload jsonb) RETURNS void BEGIN ATOMIC END;
CREATE FUNCTION overloaded(payload text) RETURNS void BEGIN ATOMIC END;
SELECT inbox_serve('till', 'apply_payment', 'projects/p/subscriptions/till');
SELECT inbox_configure('short', dedup_window => '5 days', force => true, reason => 'a test');
SELECT inbox_serve('halted', 'apply_payment', 'projects/p/subscriptions/pay-sub');
UPDATE inbox_source SET halted_since = now() WHERE name = 'halted';
SQL
$node->safe_psql('postgres', "ALTER ROLE hasty SET statement_timeout = '200ms'; "
      . "ALTER ROLE idle SET idle_session_timeout = '10s'");

sub dbname
{
    my ($user, $database) = @_;
    return $node->connstr($database // 'postgres') . ' user=' . ($user // 'puller');
}

my %how = (dbname => dbname(), handler => 'apply_payment', endpoint => $service->{url},
    'token-file' => $token, subscription => $service->subscription('pay-sub'));
my $seen = '';

sub check
{
    my (%args) = @_;
    my $check = Inbox::Check->run(%how, %args);
    $seen .= $check->{out} . $check->{err} . encode_json($check->{document});
    return $check;
}

# These problems and no others, the first of them with this text.
sub finds
{
    my ($what, $problems, $text, %args) = @_;
    my $check = check(%args);
    is_deeply([ $check->problems ], $problems, "$what: is found, and nothing else")
      or diag $check->{out}, $check->{err};
    is($check->{status}, @$problems ? 2 : 0, "$what: status");
    like($check->problem($problems->[0]) // '', $text, "$what: the fact and the remedy") if @$problems;
    return $check;
}

is_deeply([ check()->problems ], [], 'nothing is wrong to begin with');

subtest 'the database' => sub {
    finds('a port where nobody listens', ['database'],
        qr/Connection refused.* -> check host and port/, dbname => 'host=127.0.0.1 port=1 user=puller');
    finds('a socket that is not there', ['database'],
        qr/No such file or directory.* -> check host and port/, dbname => 'host=/nowhere dbname=x');
    finds('another database', ['database'], qr/database "nowhere" does not exist -> check dbname/,
        dbname => dbname('puller', 'nowhere'));
    finds('another role', ['database'], qr/role "nobody" does not exist -> check user/,
        dbname => dbname('nobody'));
    my $empty = finds('no inbox', ['inbox'],
        qr/not installed in database "empty" -> .*CREATE EXTENSION inbox.*inbox-managed\.sql/,
        dbname => dbname('puller', 'empty'));
    like($empty->fact($_)->{value}, qr/not looked at/, "no inbox: no $_") foreach qw(handler source);
    is($empty->fact('subscription')->{ok}, JSON::PP::true, 'no inbox: Pub/Sub is looked at');
    finds('another encoding', [ 'encoding', 'inbox' ], qr/^LATIN1 -> .*ENCODING 'UTF8'/,
        dbname => dbname('puller', 'latin'));
    my ($older, $now) = $managed
      ? ('UPDATE inbox_managed SET version = $$0.0.9$$', 'UPDATE inbox_managed SET version = inbox_version()')
      : map { "UPDATE pg_extension SET extversion = $_ WHERE extname = 'inbox'" } "'0.0.9'", 'inbox_version()';
    $node->safe_psql('postgres', $older);
    finds('an update that is not finished', ['inbox'],
        qr/versions of inbox-puller and of the .* do not fit.* -> .*(?:ALTER EXTENSION inbox UPDATE|inbox-managed)/);
    $node->safe_psql('postgres', $now);
    my $password = "host=127.0.0.1 port=1 password=s3cret-password user=puller";
    finds('a password', ['database'], qr/refused/, dbname => $password);
};

subtest 'the role' => sub {
    my $stranger = finds('no grant', ['rights'],
        qr/permission denied for .* -> .*SELECT public\.inbox_grant\('stranger', 'puller'\)/,
        dbname => dbname('stranger'));
    like($stranger->fact('inbox')->{value}, $managed ? qr/^managed in/ : qr/^extension in/,
        'no grant: which inbox it is');
    finds('a right less', ['rights'],
        qr/it lacks EXECUTE ON FUNCTION \S*inbox_fail\(.* -> .*inbox_grant\('member', 'puller'\)/,
        dbname => dbname('member'));
    finds('a superuser', ['role'], qr/is a superuser.* -> CREATE ROLE/,
        dbname => $node->connstr('postgres'));
    finds('the owner', ['role'], qr/inbox_installer, who owns inbox.* -> CREATE ROLE/,
        dbname => dbname(Inbox::Ledger::owner())) if $managed;
    owner_runs('GRANT UPDATE ON inbox_source TO writer');
    my $writer = finds('who may write', [ 'role', 'inbox_check' ],
        qr/writer may write to inbox_source.* -> REVOKE/, dbname => dbname('writer'));
    like($writer->problem('inbox_check'), qr/^rights: .*inbox_source/,
        'who may write: inbox_check() says so, too');
    owner_runs('REVOKE UPDATE ON inbox_source FROM writer');
    like(finds('who may read', [], undef, dbname => dbname('reader'))->fact('role')->{value},
        qr/reader may read inbox_source/, 'who may read: is told');
    like(finds('who may call more', [], undef, dbname => dbname('caller'))->fact('role')->{value},
        qr/caller may call inbox_erase, which/, 'who may call more: is told');
    owner_runs('GRANT UPDATE (payload_hash) ON inbox_claim TO caller');
    finds('who may write a column', ['role'], qr/caller may write to inbox_claim/, dbname => dbname('caller'));
    finds('a statement_timeout that is too short', ['timeouts'],
        qr/statement_timeout is 200 ms.* -> ALTER ROLE hasty SET/, dbname => dbname('hasty'));
    finds('an idle_session_timeout', ['timeouts'],
        qr/idle_session_timeout .*10000 ms -> ALTER ROLE idle SET idle_session_timeout = 0/,
        dbname => dbname('idle'));
};

subtest 'handler and source' => sub {
    finds('a handler that is not there', ['handler'],
        qr/function "apply_later" does not exist -> create the function, or check --handler/,
        handler => 'apply_later');
    finds('a schema that is not there', ['handler'], qr/(?:schema "nowhere"|function "nowhere\.f") does not exist -> /,
        handler => 'nowhere.f');
    finds('no right to execute it', ['handler'],
        qr/permission denied for handler public\.strangers\(.* -> GRANT EXECUTE ON FUNCTION/,
        handler => 'strangers');
    finds('a procedure', ['handler'], qr/a_procedure.*cannot be a handler.* -> A handler is/,
        handler => 'a_procedure');
    finds('an overloaded name', ['handler'], qr/more than one.* -> name one of them with its/,
        handler => 'overloaded');
    finds('one of them', [], undef, handler => 'overloaded(text)');
    finds('another subscription', ['source'],
        qr{from projects/p/subscriptions/till: .*refused -> .*--source.*--take-over},
        source => 'till');
    finds('taken over', [], undef, source => 'till', options => ['--take-over']);
    finds('another handler', ['source'], qr/with public\.apply_payment.*refused -> /,
        source => 'till', handler => 'overloaded(text)',
        subscription => $service->subscription('till'));
    finds('a halted source', ['halted'], qr/since .*failed -> put the handler right/,
        source => 'halted');
    like(finds('keys forgotten before the messages', ['retention'],
            qr/messages for 7 d, keys for 5 d only.* -> SELECT public\.inbox_configure\('short'/,
            source => 'short')->fact('source')->{value}, qr/^short: not served by a puller so far$/,
        'a source that nobody has served');
    finds('a consumer of dead letters', [], undef, source => 'till', handler => undef,
        options => ['--as-dead-letters']);
    owner_runs('CREATE TRIGGER t BEFORE UPDATE ON inbox_claim FOR EACH ROW '
          . 'EXECUTE FUNCTION suppress_redundant_updates_trigger()');
    finds('inbox_check()', ['inbox_check'],
        qr/^triggers: inbox_claim: triggers may .* -> .*SELECT \* FROM public\.inbox_check\(\)/);
    owner_runs('DROP TRIGGER t ON inbox_claim');
};

subtest 'credentials' => sub {
    my $file = write_file("$dir/expired", "s3cret-expired\n");
    my $expired = check('token-file' => $file);
    is(($expired->problems)[0], 'subscription', 'a token that has expired: is found');
    like($expired->problem('subscription'), qr/401 UNAUTHENTICATED.* -> .*token/,
        'with the remedy');
    finds('a file that is not there', ['credentials'],
        qr{/nowhere/token" cannot be used: No such file.* -> Put an access token},
        'token-file' => '/nowhere/token');
    finds('no credentials', ['credentials'], qr/no credentials.* -> .*--credentials-file/,
        'token-file' => undef);
    my $silent = Inbox::Check->run(%how, 'token-file' => undef, text_only => 1,
        env => { GCE_METADATA_HOST => '127.0.0.1:1', NO_GCE_CHECK => undef });
    like($silent->{out}, qr/token +http:.*Failed to connect.*metadata server/,
        'a metadata server that is not there: is waited for, and told');
    like($silent->{out}, qr/credentials +metadata_server, which has given nothing yet/,
        'a metadata server that is not there: no verdict on the credentials');
    my $plain = check('token-file' => undef, endpoint => undef,
        env => { PUBSUB_EMULATOR_HOST => Inbox::Service->start('own')->host });
    is($plain->fact('credentials')->{value}, 'none: an emulator takes none', 'an emulator');
};

# One more setting of a subscription, or what was done to it.
sub subscription
{
    my ($name, %fields) = @_;
    $service->create_subscription($name, delete($fields{topic}) // 'pay', %sound, %fields);
    return (subscription => $service->subscription($name));
}

subtest 'the subscription' => sub {
    finds('a name that is not there', ['subscription'],
        qr{projects/p/subscriptions/none: HTTP 404 NOT_FOUND.* -> check --subscription},
        subscription => 'projects/p/subscriptions/none');
    finds('a service that is not there', ['subscription'], qr/ -> check --endpoint/,
        endpoint => 'http://127.0.0.1:1');
    my %policy = (maxDeliveryAttempts => 100);
    finds('a dead-letter topic without a subscription', ['dead_letters'],
        qr{topics/given-up has no subscription.* -> .*--clear-dead-letter-policy},
        subscription('lost', deadLetterPolicy => { %policy, deadLetterTopic => $service->topic('given-up') }));
    finds('a dead-letter topic that is not there', ['dead_letters'], qr/does not exist/,
        subscription('losing', deadLetterPolicy => { %policy, deadLetterTopic => $service->topic('nowhere') }));
    subscription('given-up-sub', topic => 'given-up');
    finds('a dead-letter policy that moves soon', ['dead_letters'],
        qr/after 99 attempts.* -> .*--dead-letter-topic=\S+ --max-delivery-attempts=100/,
        subscription('soon', deadLetterPolicy =>
              { maxDeliveryAttempts => 99, deadLetterTopic => $service->topic('given-up') }));
    finds('a dead-letter policy that is patient', [], undef,
        subscription('patient', deadLetterPolicy => { %policy, deadLetterTopic => $service->topic('given-up') }));
    finds('an expiration', ['expiration'], qr/for 31 d -> .*--expiration-period=never/,
        subscription('expiring', expirationPolicy => undef));
    finds('no retained messages', ['retained_acks'], qr/ -> .*--retain-acked-messages/,
        subscription('forgetful', retainAckedMessages => JSON::PP::false));
    my %detached = subscription('detached');
    $service->call('POST', "/v1/$detached{subscription}:detach", {});
    finds('a detached one', ['subscription'], qr/detached.* -> make another/, %detached);
    my %orphan = subscription('orphan', topic => 'gone');
    $service->call('DELETE', '/v1/' . $service->topic('gone'));
    finds('a deleted topic', ['topic'], qr/deleted.* -> make the topic/, %orphan);
};

subtest 'permissions' => sub {
    my $deny = sub { $service->call('POST', '/control/permissions', { denied => [@_] }) };
    $deny->('pubsub.subscriptions.get');
    my $unreadable = finds('not to read it', [], undef);
    is($unreadable->fact('subscription')->{ok}, undef, 'not to read it: is no failure');
    like($unreadable->fact('subscription')->{value}, qr/may not be read.*roles\/pubsub\.viewer/,
        'but told');
    is($unreadable->fact('consuming')->{ok}, JSON::PP::true, 'consuming is allowed');
    $deny->('pubsub.subscriptions.consume');
    finds('not to consume it', ['consuming'],
        qr{pubsub\.subscriptions\.consume is missing -> .*add-iam-policy-binding $how{subscription} --role=roles/pubsub\.subscriber});
    $deny->('pubsub.subscriptions.get', 'pubsub.subscriptions.consume');
    finds('neither', ['consuming'], qr/is missing/);
    $deny->();
    $service->add_faults({ on => 'other', do => 'status', code => 503, every => 1 });
    my $asked = finds('a service that does not tell', [], undef)->fact('consuming');
    is($asked->{ok}, undef, 'a service that does not tell: no verdict');
    like($asked->{value}, qr/could not be asked: HTTP 503/, 'a service that does not tell: why');
    $service->clear_faults;
};

subtest 'what is not given is not looked at' => sub {
    my $bare = finds('the database alone', [], undef, handler => undef, subscription => undef,
        'token-file' => undef);
    like($bare->fact($_)->{value}, qr/^not looked at without --/, "no $_")
      foreach qw(handler source subscription);
    my $wrong = check(options => ['--sauce=x'], text_only => 1);
    is($wrong->{status}, 1, 'a wrong usage is status 1, as ever');
};

subtest 'the server' => sub {
    $node->safe_psql('postgres', "ALTER SYSTEM SET synchronous_standby_names = 'absent'");
    $node->reload;
    $node->poll_query_until('postgres', "SELECT current_setting('synchronous_standby_names') = 'absent'")
      or die 'no reload';
    finds('a standby that is waited for and is not there', ['standbys'],
        qr/COMMIT waits for absent, and no standby is connected -> start the standby/);
    $node->safe_psql('postgres', 'ALTER SYSTEM RESET synchronous_standby_names');
    $node->reload;
    $node->safe_psql('postgres', 'SET synchronous_commit = local; '
          . 'ALTER ROLE idle RESET ALL; ALTER ROLE idle SET inbox.min_synchronous_commit = local');
    finds('durability that was given away', [ 'inbox_check', 'synchronous_commit' ],
        qr/^min_synchronous_commit: /, dbname => dbname('idle')) if !$managed;
    $node->safe_psql('postgres', "SET synchronous_commit = local; ALTER ROLE puller SET synchronous_commit = off");
    my $off = check();
    like($off->fact('synchronous_commit')->{value}, qr/^off, which inbox raises to on/,
        'synchronous_commit of the role: is told');
};
unlike($seen, qr/s3cret/, 'no token and no password is shown');
done_testing;
