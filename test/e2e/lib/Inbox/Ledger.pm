# SPDX-License-Identifier: PostgreSQL
# A throw-away PostgreSQL with inbox and a ledger that can show a payment applied twice. With
# INBOX_VARIANT=managed that is inbox-managed.sql, which belongs, as the ledger does, to a role that
# owns the database and is no superuser; and pullers are a role that was granted 'puller', no more.
package Inbox::Ledger;
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More ();
use Inbox::Child;
use Inbox::Wait;

my $holders = 0;

# Durable as in real life: the test framework's own default switches fsync off.
sub start
{
    my ($class, $name, %args) = @_;
    my $node = PostgreSQL::Test::Cluster->new($name);
    $node->init(extra => [ '--encoding=UTF8', '--no-locale' ], %{ $args{init} // {} });
    $node->append_conf('postgresql.conf', "fsync = on\nlog_min_messages = warning\n"
          . "log_statement = none\nmax_connections = 60\n" . ($args{conf} // ''));
    $node->start;
    $node->safe_psql('postgres', join(' ', map { "CREATE ROLE $_ LOGIN;" } owner(), puller()))
      if defined owner();
    install($node, 'postgres', $args{before});
    return $node;
}

sub owner
{
    return ($ENV{INBOX_VARIANT} // '') eq 'managed' ? 'inbox_installer' : undef;
}

# Whom a puller is unless its --dbname says so.
sub puller
{
    return defined owner() ? 'inbox_puller' : undef;
}

sub as_owner
{
    return defined owner() ? ('-U', owner()) : ();
}

# inbox, as it is built here or as it was released "before", and the ledger.
sub install
{
    my ($node, $database, $before) = @_;
    defined owner() ? install_managed($node, $database, $before)
      : $node->safe_psql($database, 'CREATE EXTENSION inbox' . ($before ? " VERSION '$before'" : ''));
    $node->safe_psql($database, schema(), extra_params => [ as_owner() ]);
    $node->safe_psql($database, 'GRANT ALL ON account, effect TO ' . puller()) if defined puller();
}

sub install_managed
{
    my ($node, $database, $before) = @_;
    my ($owner, $puller) = (owner(), puller());
    $node->safe_psql($database, "ALTER DATABASE $database OWNER TO $owner");
    system_or_bail('psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-v', 'schema=public', '-d',
        $node->connstr($database), as_owner(),
        '-f', "$ENV{INBOX_ROOT}/" . ($before ? "test/upgrade/inbox-managed-$before.sql" : 'sql/inbox-managed.sql'));
    $node->safe_psql($database, "SELECT inbox_grant('$puller', 'puller')");
    # What tests make for their handlers to work with.
    $node->safe_psql($database,
        join(' ', map { "ALTER DEFAULT PRIVILEGES GRANT ALL ON $_ TO $owner, $puller;" } qw(TABLES SEQUENCES)));
}

# effect has no unique constraint: it must be able to show that a message was applied twice.
sub schema
{
    return <<'SQL';
CREATE TABLE account (id int PRIMARY KEY, balance bigint NOT NULL DEFAULT 0);
INSERT INTO account SELECT g FROM generate_series(0, 50) g;
CREATE TABLE effect (n bigint GENERATED ALWAYS AS IDENTITY, key text NOT NULL,
	account int NOT NULL, amount bigint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
-- Account 0 pays: the sum of all balances is zero, whatever happens.
CREATE FUNCTION apply_payment(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO effect (key, account, amount)
		VALUES (key, (payload->>'account')::int, (payload->>'amount')::bigint);
	UPDATE account SET balance = balance - (payload->>'amount')::bigint WHERE id = 0;
	UPDATE account SET balance = balance + (payload->>'amount')::bigint
		WHERE id = (payload->>'account')::int;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'no account %', payload->>'account';
	END IF;
END $$;
SQL
}

# What a payload of payment() holds besides, and no log may show.
use constant MEMO => 'for your eyes only';

# A payment as Inbox::Service->publish() takes it.
sub payment
{
    my ($key, $account, $amount, %more) = @_;
    return { data => qq({"account": $account, "amount": $amount, "memo": "${\MEMO}"}),
        attributes => { idempotency_key => $key }, %more };
}

# Of all accounts in turn, however many are wanted.
sub payments
{
    my ($prefix, $first, $last) = @_;
    return map { payment("$prefix$_", ($_ - 1) % 50 + 1, 1) } $first .. $last;
}

# "N M S B": effects, keys with an effect, keys with more than one, the sum of all balances.
sub summary
{
    my ($node) = @_;
    return $node->safe_psql('postgres', <<'SQL');
SELECT concat_ws(' ', (SELECT count(*) FROM effect), (SELECT count(DISTINCT key) FROM effect),
	(SELECT count(*) FROM (SELECT key FROM effect GROUP BY key HAVING count(*) > 1) t),
	(SELECT sum(balance) FROM account))
SQL
}

sub count
{
    my ($node, $sql) = @_;
    return $node->safe_psql('postgres', $sql);
}

# Waits until a query gives this text.
sub wait_for
{
    my ($node, $sql, $expected, $seconds) = @_;
    my $got = '';
    eval {
        wait_until($sql, sub { $got = count($node, $sql); $got eq $expected }, $seconds, 0.25);
    } or die $@ . "it gives \"$got\", not \"$expected\"\n";
    return $got;
}

# What only the owner of inbox may do.
sub owner_runs
{
    my ($node, $sql) = @_;
    return $node->safe_psql('postgres', $sql, extra_params => [ as_owner() ]);
}

# One test: so many keys that begin with the topic's name took effect, once each, and the subscription
# of that name has nothing left.
sub is_consumed
{
    my ($node, $service, $name, $count) = @_;
    wait_for($node, 'SELECT count(*), count(DISTINCT key) FROM effect '
          . "WHERE key LIKE '$name%'", "$count|$count", 60);
    wait_until('all to be acknowledged', sub { $service->stats($name)->{unacked} == 0 });
    Test::More::pass("$name: $count payments, each applied once and acknowledged");
}

# A session that has run this in a transaction and keeps it open; ends with release().
sub hold
{
    my ($node, $sql, $database) = @_;
    my $name = 'holder ' . ++$holders;
    my $log = "$PostgreSQL::Test::Utils::log_path/holder.log";
    my $pid = Inbox::Child::spawn($log, 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1',
        '-d', $node->connstr($database // 'postgres') . " application_name='$name'",
        '-c', "BEGIN; $sql; SELECT pg_sleep(600)");
    wait_for($node, "SELECT count(*) FROM pg_stat_activity WHERE application_name = '$name' "
          . "AND wait_event = 'PgSleep'", 1, 20);
    return { node => $node, name => $name, pid => $pid };
}

sub release
{
    my ($holder) = @_;
    $holder->{node}->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
          . "WHERE application_name = '$holder->{name}'");
    waitpid($holder->{pid}, 0);
}

1;
