# SPDX-License-Identifier: PostgreSQL
# A message published twice under new message ids takes effect once; every form of handler sees
# what was published; the rules of --key find the key.
use strict;
use warnings;
use Test::More;
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

my $node = Inbox::Ledger->start('applied_once');
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE seen (handler text, key text, payload text, message inbox_message);
CREATE FUNCTION takes_jsonb(payload jsonb) RETURNS void
	BEGIN ATOMIC INSERT INTO seen VALUES ('takes_jsonb', NULL, payload->>'word'); END;
CREATE FUNCTION takes_text(payload text) RETURNS void
	BEGIN ATOMIC INSERT INTO seen VALUES ('takes_text', NULL, payload); END;
CREATE FUNCTION takes_bytea(key text, payload bytea) RETURNS void
	BEGIN ATOMIC INSERT INTO seen VALUES ('takes_bytea', key, encode(payload, 'hex')); END;
CREATE FUNCTION takes_json(key text, payload json) RETURNS jsonb
	BEGIN ATOMIC
		INSERT INTO seen VALUES ('takes_json', key, payload::text);
		SELECT to_jsonb(upper(payload->>'word'));
	END;
CREATE FUNCTION takes_message(message inbox_message) RETURNS void
	BEGIN ATOMIC INSERT INTO seen VALUES ('takes_message', (message).key, NULL, message); END;
SQL

sub seen
{
    my ($handler, $columns) = @_;
    return Inbox::Ledger::count($node,
        "SELECT $columns FROM seen WHERE handler = '$handler' ORDER BY key, payload");
}

# A puller of its own for each handler, all at the same time. What the environment says of encodings
# must not change a byte, or two pullers would store one key as two.
sub start
{
    my ($service, $name, %args) = @_;
    my $subscription = "$name-$service->{kind}";
    $service->create_topic($name);
    $service->create_subscription($subscription, $name, %{ delete $args{fields} // {} });
    return Inbox::Puller->start(service => $service, node => $node,
        subscription => $service->subscription($subscription),
        env => { PGCLIENTENCODING => 'LATIN1' }, %args);
}

sub consume
{
    my ($service, $puller, $topic, $pulled, @messages) = @_;
    my @ids = $service->publish($topic, @messages);
    wait_until("$pulled messages of $topic to be judged",
        sub { $puller->events('message') >= $pulled }, 30);
    is($puller->stop, 0, "$topic: stops with status 0");
    return @ids;
}

sub check_twice
{
    my ($service) = @_;
    my $puller = start($service, 'pay', handler => 'apply_payment');
    my @payments = map { Inbox::Ledger::payment("k\x{e9}$_", 1 + $_ % 50, $_) } 1 .. 20;

    consume($service, $puller, 'pay', 60, @payments, @payments, reverse @payments);
    is(Inbox::Ledger::summary($node), '20 20 0 0', 'each payment is applied once');
    is(Inbox::Ledger::count($node, q(SELECT count(DISTINCT key) FROM inbox_claim WHERE key ~ ('^k' || chr(233) || '[0-9]+$'))), 20,
        'each key is the bytes that were published');
    is_deeply([ $puller->verdicts('applied'), $puller->verdicts('duplicate') ], [ 20, 40 ],
        'the others are duplicates');
    my ($end) = $puller->events('stopped');
    is($end->{acked}, 60, 'all copies are acknowledged');
}

sub check_forms
{
    my ($service) = @_;
    my $word = "na\x{c3}\x{af}ve \x{f0}\x{9f}\x{92}\x{b6}";
    my %puller = map {
        $_ => start($service, $_, handler => $_,
            fields => $_ eq 'takes_message' ? { enableMessageOrdering => JSON::PP::true } : {})
    } qw(takes_jsonb takes_text takes_bytea takes_json takes_message);
    my %attributes = (attributes => { idempotency_key => 'one', colour => "gr\x{fc}n" });

    consume($service, $puller{takes_jsonb}, 'takes_jsonb', 1,
        { data => qq({"word": "$word"}), %attributes });
    is(seen('takes_jsonb', 'payload'), $word, 'a handler of jsonb');
    consume($service, $puller{takes_text}, 'takes_text', 1,
        { data => "not {json}\n", %attributes });
    is(seen('takes_text', 'quote_literal(payload)'), "'not {json}\n'", 'a handler of text');
    consume($service, $puller{takes_bytea}, 'takes_bytea', 2, { data => "\0\xff\x80", %attributes },
        { attributes => { idempotency_key => 'two' } });
    is(seen('takes_bytea', 'key, payload IS NULL, payload'), "one|f|00ff80\ntwo|f|",
        'a handler of bytea, with the key; a message without data is empty to it');
    consume($service, $puller{takes_json}, 'takes_json', 1,
        { data => '{"word":  "b", "word": "a"}', %attributes });
    is(seen('takes_json', 'key, payload'), 'one|{"word":  "b", "word": "a"}',
        'a handler of json sees the text as it was');
    is(Inbox::Ledger::count($node, "SELECT inbox_result('one', "
                . "'projects/p/subscriptions/takes_json-$service->{kind}')"),
        '"A"', 'its result is kept');
    check_message($service, $puller{takes_message}, %attributes);
    $node->safe_psql('postgres', 'TRUNCATE seen');
}

sub check_message
{
    my ($service, $puller, %attributes) = @_;
    my ($id) = consume($service, $puller, 'takes_message', 1,
        { data => 'bytes', orderingKey => 'order 7', %attributes });
    is(seen('takes_message', "(message).key, convert_from((message).payload, 'UTF8'), "
                . '(message).attributes, (message).ordering_key, (message).message_id, '
                . '(message).source'),
        qq(one|bytes|{"colour": "gr\xc3\xbcn", "idempotency_key": "one"}|order 7|$id|)
          . "projects/p/subscriptions/takes_message-$service->{kind}",
        'a handler of inbox_message sees all there is');
    is(seen('takes_message', "abs(extract(epoch FROM (message).publish_time - now())) < 60, "
                . '(message).delivery_attempt IS NULL'),
        't|t', 'with the time it was published, and no delivery attempt where none is counted');
}

sub check_keys
{
    my ($service) = @_;
    my $puller = start($service, 'keys', handler => 'takes_bytea', options =>
          [ '--key', 'attribute:id', '--key', 'json:/payment/ids/1', '--key', 'message-id' ]);
    my @ids = consume($service, $puller, 'keys', 6,
        { data => '{"payment": {"ids": ["x", "y"]}}', attributes => { id => 'attribute first' } },
        { data => '{"payment": {"ids": ["x", "pointer"]}}', attributes => { id => '' } },
        { data => '{"payment": {"ids": ["z", "pointer"]}}' },
        { data => '{"payment": {"ids": ["x", 123456789012345678]}}' },
        { data => '{"payment": {"ids": ["x", 123456789012345678901234567890]}}' },
        { data => 'no JSON' });
    is(seen('takes_bytea', 'key'), join("\n", sort('123456789012345678', 'attribute first',
        'pointer', "mid:$ids[4]", "mid:$ids[5]")),
        'the first rule that finds a key wins; a number of 30 digits is none');
    is($puller->verdicts('conflict'), 1, 'the same key with another payload is a conflict');
    is(Inbox::Ledger::count($node,
            "SELECT key, status, reason, sqlstate FROM inbox_failure WHERE message_id = '$ids[2]'"),
        'pointer|conflict|conflict|IX001', 'which is kept');
    my ($line) = grep { $_->{verdict} eq 'conflict' } $puller->events('message');
    is("$line->{level} $line->{key} $line->{message_id} $line->{sqlstate} $line->{err}",
        "warning pointer $ids[2] IX001 the key was claimed with another payload",
        'and said in the log');
    like($line->{hint}, qr/inbox_retry\(\) and another key/, 'with what to do');
    $node->safe_psql('postgres', 'TRUNCATE seen');
}

foreach my $kind (Inbox::Service::kinds())
{
    subtest $kind => sub {
        my $service = Inbox::Service->start($kind);
        check_twice($service);
        check_forms($service);
        check_keys($service);
        $node->safe_psql('postgres', 'TRUNCATE effect; UPDATE account SET balance = 0;');
    };
}
is_deeply([ Inbox::Puller->leaks(Inbox::Ledger::MEMO) ], [], 'no log shows a payload');
done_testing;
