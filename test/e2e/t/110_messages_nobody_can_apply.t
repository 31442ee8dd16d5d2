# SPDX-License-Identifier: PostgreSQL
# What can never be handed to the handler becomes a dead letter with the reason and is
# acknowledged; the messages beside it are applied.
use strict;
use warnings;
use JSON::PP;
use MIME::Base64 qw(encode_base64);
use Test::More;
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

my $node = Inbox::Ledger->start('unstorable');
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE number (key text, value numeric);
CREATE FUNCTION keep_number(key text, payload jsonb) RETURNS void
	BEGIN ATOMIC INSERT INTO number VALUES (key, (payload->>'value')::numeric); END;
SQL
my $payload = encode_base64('{"account": 1, "amount": 1}', '');
my $thirty = '123456789012345678901234567890';

# A message as text, as nobody can publish it. What stands in front stays in front.
sub raw
{
    my ($id, $members) = @_;
    return qq({$members, "messageId": "$id", "publishTime": "2026-01-31T12:00:00Z"});
}

# Each: the id, the members, and what becomes of it: key, reason, error.
sub cases
{
    my $data = qq("data": "$payload");
    my $sound = q("attributes": {"idempotency_key": "%s"});
    my $no_rule = 'no rule of --key gives a key: attribute:idempotency_key';
    my $nul = 'U+0000';
    my $half = 'half of a surrogate pair';

    return (
        [ 'r1', qq($data, "attributes": {"idempotency_key": "a\\u0000b"}), 'mid:r1', 'unstorable',
            qr/\Q$nul\E.*PostgreSQL cannot store/ ],
        [ 'r2', qq($data, "attributes": {"idempotency_key": "a\\ud800"}), 'mid:r2', 'unstorable',
            qr/$half.*PostgreSQL cannot store/ ],
        [ 'r3', qq($data, "attributes": {"idempotency_key": "a\\udc00\\ud800"}), 'mid:r3',
            'unstorable', qr/$half/ ],
        [ 'r4', qq($data, "attributes": {"x": "\\u0000", "idempotency_key": "r4"}), 'r4',
            'unstorable', qr/\Q$nul\E in attributes/ ],
        [ 'r5', qq($data, "attributes": {"x\\u0000y": "", "idempotency_key": "r5"}), 'r5',
            'unstorable', qr/\Q$nul\E in attributes/ ],
        [ 'r6', qq($data, "attributes": {"x": "\\udfff", "idempotency_key": "r6"}), 'r6',
            'unstorable', qr/$half in attributes/ ],
        [ 'r7', qq($data, "attributes": {"colour": "red"}), 'mid:r7', 'no_key',
            qr/^\Q$no_rule\E is absent/ ],
        [ 'r8', qq($data, "attributes": {"idempotency_key": ""}), 'mid:r8', 'no_key',
            qr/^\Q$no_rule\E is empty/ ],
        [ 'r9', $data, 'mid:r9', 'no_key', qr/^\Q$no_rule\E is absent/ ],
        [ 'r10', "$data, " . sprintf($sound, 'k' x 1025), 'mid:r10', 'unstorable',
            qr/key of 1025 bytes, at most 1024/ ],
        [ 'r11', '"data": "!!!!", ' . sprintf($sound, 'r11'), 'r11', 'undecodable',
            qr/^data is not base64/ ],
        [ 'r12', '"data": "YWJj=", ' . sprintf($sound, 'r12'), 'r12', 'undecodable',
            qr/^data is not base64/ ],
        [ 'r13', '"data": 7, ' . sprintf($sound, 'r13'), 'r13', 'undecodable',
            qr/^data is not a string/ ],
        [ 'r14', "$data, $data, " . sprintf($sound, 'r14'), 'r14', 'undecodable',
            qr/^data occurs twice/ ],
        [ 'r15', "$data, \"orderingKey\": \"o\\u0000\", " . sprintf($sound, 'r15'), 'r15',
            'unstorable', qr/\Q$nul\E in orderingKey/ ],
        [ 'r16', qq($data, "attributes": {"idempotency_key": 7}), 'mid:r16', 'undecodable',
            qr/attributes holds a value that is not a string/ ]);
}

sub failures
{
    my $rows = Inbox::Ledger::count($node, <<'SQL');
SELECT coalesce(jsonb_object_agg(message_id, to_jsonb(f) ||
	jsonb_build_object('text', CASE reason WHEN 'no_key' THEN encode(payload, 'base64')
		ELSE convert_from(payload, 'UTF8') END)), '{}')
FROM inbox_failure f
SQL
    return decode_json($rows);
}

subtest 'what cannot be published, the neighbours being sound' => sub {
    my $service = Inbox::Service->start('own');
    my @cases = cases();
    my $place = 1;

    $service->create_topic('pay');
    $service->create_subscription('raw', 'pay');
    $service->add_faults(map {
        { on => 'deliver', do => 'raw', nth => 2 * $place++, json => raw(@$_) }
    } @cases);
    $service->publish('pay', map { Inbox::Ledger::payment("good$_", 1, 1) } 0 .. 2 * @cases);
    my $puller = Inbox::Puller->start(service => $service, node => $node,
        handler => 'apply_payment', subscription => $service->subscription('raw'));
    wait_until('all to be acknowledged', sub { $service->stats('raw')->{unacked} == 0 }, 40);
    is($puller->stop, 0, 'the puller stops with status 0');
    is($service->stats->{counters}{delivered}, 2 * @cases + 1, 'nothing was delivered twice');
    is(Inbox::Ledger::summary($node), join(' ', (@cases + 1) x 2, 0, 0),
        'the neighbours are applied');
    check_rows(@cases);
    check_lines($puller, @cases);
};

sub check_rows
{
    my $failures = failures();

    is(scalar keys %$failures, scalar @_, 'each has its row');
    foreach my $case (@_)
    {
        my ($id, $members, $key, $reason, $error) = @$case;
        my $row = $failures->{$id} // {};
        is(join(' ', map { $_ // 'NULL' } @$row{qw(status key reason attempts)}),
            "dead $key $reason 0", "$id: is dead");
        like($row->{error} // '', $error, "$id: the reason: " . ($row->{error} // ''));
        $reason eq 'no_key'
          ? is($row->{text}, $payload, "$id: the payload is kept, for whoever gives it a key")
          : ok(index($row->{text} // '', $members) > 0, "$id: the envelope is kept as it came");
    }
}

sub check_lines
{
    my ($puller, @cases) = @_;
    my %line = map { $_->{message_id} => $_ } $puller->events('dead_letter');

    is_deeply([ sort keys %line ], [ sort map { $_->[0] } @cases ], 'each has its line in the log');
    foreach my $case (@cases)
    {
        my ($id, $members, $key, $reason, $error) = @$case;
        my $line = $line{$id};
        is($line->{reason}, $reason, "$id: the line has the reason");
        like($line->{err}, $error, "$id: and the error");
        like("$line->{source} $line->{publish_time} $line->{hint}",
            qr{^projects/p/subscriptions/raw 2026-01-31T12:00:00(\.0+)?Z it is a row of },
            "$id: and what identifies the message and tells what to do");
        is($line->{key}, $key =~ /^mid:/ ? undef : $key, "$id: and the key where there is one");
    }
}

foreach my $kind (Inbox::Service::kinds())
{
    subtest "what can be published ($kind)" => sub {
        my $service = Inbox::Service->start($kind);
        my $long = 'x' x 1024;
        # What is acknowledged at first comes again all the same.
        $service->add_faults({ on => 'ack', do => 'ignore', nth => [ 1 .. 3 ] }) if $kind eq 'own';
        $service->create_topic('numbers');
        $service->create_subscription("numbers-$kind", 'numbers');
        my $puller = Inbox::Puller->start(service => $service, node => $node,
            handler => 'keep_number', options => [ '--key', 'json:/id' ],
            subscription => $service->subscription("numbers-$kind"));
        my @bad = $service->publish('numbers', map { { data => $_ } } (
            qq({"id": $thirty, "value": 1}), '{"id": "a\u0000b", "value": 2}',
            '{"id": "\ud83d", "value": 3}', '{"id": "", "value": 4}', '{"id": 1.5, "value": 5}',
            qq({"id": "${long}x", "value": 6}), '{"id": "a", "id": "b", "value": 7}',
            '{"id": "c", "value": 8', "\xff", '{"value": 9}'));
        $service->publish('numbers', map { { data => $_ } } (
            qq({"id": "big", "value": $thirty}), qq({"id": "$long", "value": 1}),
            '{"id": "\ud83d\udc36", "value": 2}', '{"id": 123456789012345678, "value": 3}'));
        wait_until('all to be judged', sub {
            $puller->events('message') + $puller->events('dead_letter') >= 14;
        }, 30);
        wait_until('all to be acknowledged', sub {
            $kind eq 'google' || $service->stats("numbers-$kind")->{unacked} == 0;
        }, 60);
        is($puller->stop, 0, 'the puller stops with status 0');
        my ($end) = $puller->events('stopped');
        cmp_ok($end->{acked}, '>=', 14, 'all are acknowledged');
        is($end->{conflict}, 0, 'what comes again is the same message');
        cmp_ok($end->{duplicate}, '>=', 1, 'and a duplicate') if $kind eq 'own';
        is(Inbox::Ledger::count($node, 'SELECT left(key, 18), value FROM number ORDER BY value'),
            'x' x 18 . "|1\n\xf0\x9f\x90\xb6|2\n123456789012345678|3\nbig|$thirty",
            'sound ones are applied, without loss of digits or bytes');
        my $failures = failures();
        is(join(' ', map { $failures->{$_}{reason} // 'NULL' } @bad),
            'no_key unstorable unstorable no_key no_key unstorable unstorable no_key no_key no_key',
            'the others are dead letters');
        is_deeply([ grep { $failures->{$_}{status} ne 'dead' } @bad ], [], 'all of them');
        $node->safe_psql('postgres', 'TRUNCATE number');
    };
}
is_deeply([ Inbox::Puller->leaks(Inbox::Ledger::MEMO, $payload, '\u0000b') ], [],
    'no log shows a payload');
done_testing;
