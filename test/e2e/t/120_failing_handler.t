# SPDX-License-Identifier: PostgreSQL
# A message whose handler fails is tried again with growing pauses and is dead after five attempts;
# the messages beside it are applied, whatever kind of error it is.
use strict;
use warnings;
use JSON::PP;
use Test::More;
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

my $memo = Inbox::Ledger::MEMO;
my $node = Inbox::Ledger->start('failing');
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE entry (key text, memo text CHECK (memo <> 'for your eyes only'),
	parent int REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE audit (key text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'permission denied for table notes' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE CONSTRAINT TRIGGER note AFTER INSERT ON audit DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION note();
CREATE FUNCTION trouble(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	CASE payload->>'do'
	WHEN 'fail' THEN
		RAISE EXCEPTION 'no such account' USING ERRCODE = 'AC404', HINT = 'open it';
	WHEN 'recover' THEN
		IF nextval((payload->>'sequence')::regclass) <= 2 THEN
			RAISE EXCEPTION 'not yet';
		END IF;
	WHEN 'check' THEN
		INSERT INTO entry VALUES (key, payload->>'memo');
	WHEN 'defer' THEN
		INSERT INTO entry VALUES (key, NULL, 7);
	WHEN 'right' THEN
		INSERT INTO audit VALUES (key);
	WHEN 'sleep' THEN
		PERFORM pg_sleep(20);
	ELSE
	END CASE;
	INSERT INTO entry VALUES (key);
END $$;
SQL

# Each: the key, and what becomes of it: the row's status, attempts, SQLSTATE and error.
my %trouble = (
    fail => [ 'dead', 5, 'AC404', 'no such account' ],
    check => [ 'dead', 5, '23514',
        'new row for relation "entry" violates check constraint "entry_memo_check"' ],
    defer => [ 'dead', 5, '23503',
        'insert or update on table "entry" violates foreign key constraint "entry_parent_fkey"' ],
    right => [ 'dead', 5, '42501', 'permission denied for table notes' ],
    nul => [ 'dead', 5, '22P05', 'unsupported Unicode escape sequence' ],
    broken => [ 'dead', 5, '22P02', 'invalid input syntax for type json' ],
    sleep => [ 'retrying', undef, '57014', 'canceling statement due to statement timeout' ]);

sub message
{
    my ($kind, $name, $data, %more) = @_;
    return { data => $data // qq({"do": "$name", "memo": "$memo", "sequence": "tries_$kind"}),
        attributes => { idempotency_key => "$kind $name" }, %more };
}

sub start
{
    my ($kind) = @_;
    my $self = { kind => $kind, service => Inbox::Service->start($kind) };
    my $name = "trouble-$kind";

    $node->safe_psql('postgres', "CREATE SEQUENCE tries_$kind");
    $self->{service}->create_topic('trouble');
    # With ordering the emulator brings acknowledged messages without an ordering key again, too.
    $self->{service}->create_subscription($name, 'trouble',
        $kind eq 'own' ? (enableMessageOrdering => JSON::PP::true) : ());
    my @messages = map { message($kind, "good$_") } 1 .. 40;
    splice(@messages, 33, 0, message($kind, 'sleep'));
    splice(@messages, 21, 0, message($kind, 'nul', qq({"a": "\\u0000", "memo": "$memo"})));
    splice(@messages, 20, 0, message($kind, 'defer'), message($kind, 'right'));
    splice(@messages, 10, 0, message($kind, 'check'), message($kind, 'recover'));
    splice(@messages, 4, 0, message($kind, 'broken', qq({"memo": "$memo", )));
    push @messages, message($kind, 'fail', undef, orderingKey => 'order 1');
    $self->{service}->publish('trouble', @messages);
    $self->{puller} = Inbox::Puller->start(service => $self->{service}, node => $node,
        handler => 'trouble', subscription => $self->{service}->subscription($name),
        options =>
          [ '--handler-timeout', '1s', '--batch-time', '900ms', '--lock-timeout', '500ms' ]);
    return $self;
}

sub check
{
    my ($self) = @_;
    my ($kind, $puller) = @$self{qw(kind puller)};
    my $source = "(SELECT id FROM inbox_source WHERE name LIKE '%/trouble-$kind')";

    wait_until('six messages to be dead', sub { $puller->events('dead_letter') >= 6 }, 50);
    my ($copy) = $self->{service}->publish('trouble', message($kind, 'fail'));
    $puller->wait_event('message',
        sub { $_[0]{message_id} eq $copy && $_[0]{verdict} eq 'duplicate' });
    pass('a later copy of a dead message is a duplicate');
    is($puller->stop, 0, 'stops with status 0');
    is(Inbox::Ledger::count($node, "SELECT count(*), count(DISTINCT key) FROM entry "
                . "WHERE key LIKE '$kind %'"), '41|41',
        'what is beside the failing messages is applied');
    my ($end) = $puller->events('stopped');
    is($end->{acked}, 40 + 1 + 6 + 1, 'dead letters are acknowledged, those that retry are not');
    check_rows($kind, $source);
    check_lines($kind, $puller);
    is(Inbox::Ledger::count($node, "SELECT last_value FROM tries_$kind") >= 3, 1,
        'the one that recovers failed twice');
    is(Inbox::Ledger::count($node,
            "SELECT count(*) FROM inbox_failure WHERE key = '$kind recover'"), 0,
        'and leaves no row behind');
    is(Inbox::Ledger::count($node, "SELECT count(*) FROM inbox_claim WHERE source_id = $source"),
        40 + 1 + 6, 'applied and dead messages are claimed, those that retry are not');
}

sub check_rows
{
    my ($kind, $source) = @_;
    my $rows = decode_json(Inbox::Ledger::count($node, <<"SQL"));
SELECT jsonb_object_agg(key, to_jsonb(f)
	|| jsonb_build_object('text', convert_from(payload, 'UTF8')))
FROM inbox_failure f WHERE source_id = $source
SQL
    is_deeply([ sort keys %$rows ], [ map { "$kind $_" } sort keys %trouble ],
        'each failing message has a row');
    foreach my $name (sort keys %trouble)
    {
        my ($status, $attempts, $sqlstate, $error) = @{ $trouble{$name} };
        my $row = $rows->{"$kind $name"};
        is("$row->{status} $row->{sqlstate} $row->{error}", "$status $sqlstate $error",
            "$name: its row");
        is($row->{attempts}, $attempts, "$name: attempts") if defined $attempts;
        like($row->{text}, qr/$memo/, "$name: the payload is kept");
    }
    is($rows->{"$kind fail"}{hint}, 'open it', "fail: the row keeps the error's hint");
    like($rows->{"$kind check"}{detail}, qr/Failing row contains.*$memo/,
        "check: the row keeps the error's detail");
}

sub check_lines
{
    my ($kind, $puller) = @_;
    my @lines = grep { $_->{key} eq "$kind fail" }
      map { $puller->events($_) } qw(message_failed dead_letter);

    is(join(' ', map { "$_->{event} $_->{level} $_->{verdict} $_->{attempt}" } @lines),
        join(' ', (map { "message_failed warning retrying $_" } 1 .. 4),
            'dead_letter error dead 5'), 'each attempt has its line');
    is_deeply([ grep { abs($lines[$_]{retry_in} / 2**$_ - 1) > 0.2 } 0 .. 3 ], [],
        'the pauses double from about a second');
    foreach my $line (@lines)
    {
        is(join(' ', map { $_ // 'NULL' } @$line{qw(source ordering_key sqlstate err hint)}),
            "projects/p/subscriptions/trouble-$kind order 1 AC404 no such account "
              . ($line->{attempt} < 5 ? 'open it'
                : 'it is a row of inbox_failure; see inbox_retry() and inbox_discard()'),
            "attempt $line->{attempt}: the line has all fields");
        like("$line->{ts} $line->{publish_time} $line->{message_id}",
            qr/^\d{4}-\S+Z \d{4}-\S+Z \d+$/, "attempt $line->{attempt}: and times and ids");
        ok(!exists $line->{delivery_attempt}, 'and no count of deliveries that nobody gave');
    }
}

my @all = map { start($_) } Inbox::Service::kinds();
foreach my $self (@all)
{
    subtest $self->{kind} => sub { check($self) };
}
is_deeply([ Inbox::Puller->leaks($memo) ], [], 'no log shows a payload, not even in a detail');
done_testing;
