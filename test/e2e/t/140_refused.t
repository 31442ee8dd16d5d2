# SPDX-License-Identifier: PostgreSQL
# What a person has to put right is said with the remedy and waited for; what must not go on ends
# the puller with status 2, a wrong usage with 1.
use strict;
use warnings;
use File::Temp qw(tempfile);
use Test::More;
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

my $node = Inbox::Ledger->start('refused');
my $service = Inbox::Service->start('own');
$node->safe_psql('postgres', <<'SQL');
CREATE DATABASE empty;
CREATE DATABASE outdated;
CREATE ROLE stranger LOGIN;
CREATE ROLE puller LOGIN;
SELECT inbox_grant('puller', 'puller');
REVOKE EXECUTE ON FUNCTION apply_payment FROM PUBLIC;
CREATE PROCEDURE a_procedure(payload jsonb) BEGIN ATOMIC END;
CREATE FUNCTION a_set(payload jsonb) RETURNS SETOF int BEGIN ATOMIC SELECT 1; END;
CREATE FUNCTION of_integer(number int) RETURNS void BEGIN ATOMIC END;
CREATE FUNCTION overloaded(payload jsonb) RETURNS void BEGIN ATOMIC END;
CREATE FUNCTION overloaded(payload text) RETURNS void BEGIN ATOMIC END;
CREATE TABLE seen (key text);
CREATE FUNCTION strict(key text, payload bytea) RETURNS void STRICT
	BEGIN ATOMIC INSERT INTO seen VALUES (key || octet_length(payload)); END;
SQL
Inbox::Ledger::install($node, 'outdated');
my $managed = defined Inbox::Ledger::owner();
$node->safe_psql('outdated', $managed ? "UPDATE inbox_managed SET version = '0.0.9'"
    : "UPDATE pg_extension SET extversion = '0.0.9' WHERE extname = 'inbox'");

sub start
{
    my ($name, %args) = @_;
    my $user = delete $args{user};
    my $database = delete $args{database} // 'postgres';
    $args{dbname} = $node->connstr($database) . (defined $user ? " user=$user" : '');
    if (!defined $args{subscription})
    {
        $service->create_topic($name);
        $service->create_subscription($name, $name);
        $args{subscription} = $service->subscription($name);
        $service->publish($name, Inbox::Ledger::payment($name, 1, 1));
    }
    return Inbox::Puller->start(service => $service, handler => 'apply_payment', %args);
}

# Each: how it is started, the line it is to write, and the SQL that puts it right.
my %waiting = (
    no_handler => { start => { handler => 'apply_later' }, sqlstate => '42883',
        err => qr/function "apply_later" does not exist/, hint => qr/--handler.*search_path/,
        cure => 'CREATE FUNCTION apply_later(key text, payload jsonb) RETURNS void SECURITY DEFINER '
          . 'BEGIN ATOMIC SELECT apply_payment(key, payload); END' },
    no_execute => { start => { user => 'puller' }, sqlstate => '42501',
        err => qr/permission denied for handler public\.apply_payment/,
        hint => qr/^GRANT EXECUTE ON FUNCTION public\.apply_payment\(.*\) TO puller;/,
        cure => 'GRANT EXECUTE ON FUNCTION apply_payment TO puller; '
          . 'ALTER FUNCTION apply_payment SECURITY DEFINER' },
    no_rights => { start => { user => 'stranger', handler => 'strict' }, sqlstate => '42501',
        err => qr/permission denied for (?:function|table) inbox_/,
        hint => qr/SELECT inbox_grant\('stranger', 'puller'\)/,
        cure => "SELECT inbox_grant('stranger', 'puller'); GRANT INSERT ON seen TO stranger" },
    no_extension => { start => { database => 'empty' },
        err => qr/the extension inbox is not installed in database "empty"/,
        hint => qr/CREATE EXTENSION inbox/,
        cure => sub { Inbox::Ledger::install($node, 'empty') } },
    procedure => { start => { handler => 'a_procedure' }, sqlstate => 'IX003',
        err => qr/public\.a_procedure\(.*\) cannot be a handler/, detail => qr/It is a procedure/,
        hint => qr/A handler is a plain function/ },
    set => { start => { handler => 'a_set' }, sqlstate => 'IX003',
        err => qr/public\.a_set\(.*\) cannot be a handler/, detail => qr/It returns a set/,
        hint => qr/A handler is a plain function/ },
    arguments => { start => { handler => 'of_integer' }, sqlstate => 'IX003',
        err => qr/public\.of_integer\(.*\) cannot be a handler/, detail => qr/arguments/,
        hint => qr/payload is jsonb, json, text or bytea/ },
    overloaded => { start => { handler => 'overloaded' }, sqlstate => '42725',
        err => qr/more than one function named "overloaded"/,
        hint => qr/argument types.*--handler 'f\(jsonb\)'/ });

# Each: how it ends with status 2 at once, and the line it writes.
my %ending = (
    outdated => { start => { database => 'outdated' },
        err => qr/versions of inbox-puller and of the (?:extension|managed inbox) do not fit/,
        detail => qr/inbox-puller is \d\S*, the (?:extension's objects|managed tables) are 0\.0\.9, (?:its library is|the functions are) \d/,
        hint => $managed ? qr/run inbox-managed\.sql/ : qr/ALTER EXTENSION inbox UPDATE/ },
    permanent_handler => { start => { handler => 'nowhere.f', options => ['--exit-on-permanent'] },
        err => qr/(?:schema "nowhere"|function "nowhere\.f") does not exist/, hint => qr/--handler/ },
    permanent_rights => { start => { user => 'stranger', options => ['--exit-on-permanent'] },
        err => qr/permission denied/, hint => qr/inbox_grant/ });

$_->{puller} = start("w_$_->{start}{handler}_" . ($_->{start}{user} // $_->{start}{database} // ''),
    %{ $_->{start} }) foreach values %waiting;
foreach my $name (sort keys %ending)
{
    $ending{$name}{puller} = start("e_$name", %{ $ending{$name}{start} });
}

sub check_line
{
    my ($name, $case) = @_;
    my $event = $case->{puller}->wait_event('db_refused');
    is($event->{level}, 'error', "$name: is an error");
    is($event->{sqlstate}, $case->{sqlstate}, "$name: SQLSTATE") if $case->{sqlstate};
    like($event->{err}, $case->{err}, "$name: the fact");
    like($event->{detail} // '', $case->{detail}, "$name: the cause") if $case->{detail};
    like($event->{hint} // '', $case->{hint}, "$name: the remedy: " . ($event->{hint} // ''));
}

subtest 'waited for' => sub {
    check_line($_, $waiting{$_}) foreach sort keys %waiting;
    my @running = grep { $_->{puller}->is_running } values %waiting;
    is(scalar @running, scalar keys %waiting, 'none of them ends');
    my @pulled = grep { !$service->is_untouched(/([^\/]+)$/) }
      keys %{ $service->stats->{subscriptions} };
    is_deeply(\@pulled, [], 'and none of them pulls');
    foreach my $cure (grep { defined } map { $_->{cure} } values %waiting)
    {
        ref $cure ? $cure->() : $node->safe_psql('postgres', $cure);
    }
};

subtest 'an end with status 2' => sub {
    foreach my $name (sort keys %ending)
    {
        check_line($name, $ending{$name});
        is($ending{$name}{puller}->wait_end(10), 2, "$name: ends with status 2");
    }
    foreach my $missing ('projects/p/subscriptions/none', 'projects/q/subscriptions/none')
    {
        my $puller = start('none', subscription => $missing, handler => 'strict',
            options => ['--exit-on-permanent']);
        my $event = $puller->wait_event('subscription_failed');
        like("$event->{subscription} $event->{status} $event->{outcome} $event->{hint}",
            qr/^$missing 404 not_found .*check --subscription/, 'a missing subscription: the line');
        is($puller->wait_end(10), 2, 'a missing subscription: status 2');
    }
};

subtest 'a source that is served otherwise' => sub {
    my @source = (options => [ '--source', 'till' ], handler => 'strict');
    my $puller = start('till', @source);
    Inbox::Ledger::wait_for($node, "SELECT count(*) FROM seen WHERE key LIKE 'till%'", 1, 20);
    is($puller->stop, 0, 'the first stops');
    my $served = "SELECT handler, subscription FROM inbox_source WHERE name = 'till'";
    my $before = Inbox::Ledger::count($node, $served);
    my $first = qr{handler public\.strict\(.*\) from subscription projects/p/subscriptions/till};
    my %other = (
        handler => { @source, handler => 'overloaded(jsonb)',
            subscription => $service->subscription('till') },
        subscription => { @source, subscription => $service->subscription('w_a_set_') });
    foreach my $name (sort keys %other)
    {
        my $case = { puller => start('till', %{ $other{$name} }), sqlstate => 'IX005',
            err => qr/source "till" is served otherwise/, hint => qr/--source.*--take-over/,
            detail => qr{$first.*; this is handler public\.\w+\(.*\) from subscription \S+/\w+\.} };
        check_line("another $name", $case);
        is($case->{puller}->wait_end(10), 2, "another $name: ends with status 2");
    }
    is(Inbox::Ledger::count($node, $served), $before, 'the source is what it was');
    my $taker = start('till', handler => 'overloaded(jsonb)',
        options => [ '--source', 'till', '--take-over' ],
        subscription => $service->subscription('till'));
    $taker->wait_event('db_connected');
    is($taker->stop, 0, 'it is taken over');
    is(Inbox::Ledger::count($node, "SELECT handler FROM inbox_source WHERE name = 'till'"),
        'public.overloaded(pg_catalog.jsonb)', 'and the new handler is noted');
};

subtest 'a wrong usage' => sub {
    my ($fh, $ini) = tempfile(UNLINK => 1);
    print $fh "handler = f\nno-such-option = 1\n";
    close($fh);
    my %wrong = (
        'no subscription' => [ [ handler => 'f' ], qr/--subscription/ ],
        'no handler' => [ [ handler => undef ], qr/--handler/ ],
        'a short name' => [ [ subscription => 'till' ], qr{projects/PROJECT/subscriptions/NAME} ],
        'an unknown flag' => [ [ options => ['--sauce=x'] ], qr/sauce.*--help/s ],
        'a wrong number' => [ [ options => ['--workers=many'] ], qr/--workers.*many/ ],
        'out of bounds' => [ [ options => ['--workers=65'] ], qr/--workers.*1 to 64/ ],
        'a wrong rule' =>
          [ [ options => ['--key=header:x'] ], qr/--key.*header:x.*attribute:NAME/s ],
        'a missing file' =>
          [ [ options => ['--config=/nowhere/x.ini'] ], qr{/nowhere/x\.ini.*No such file} ],
        'an unknown key of the file' => [ [ options => ["--config=$ini"] ], qr/no-such-option/ ],
        'a wrong variable' => [ [ env => { INBOX_PULLS => '0' } ], qr/INBOX_PULLS/ ],
        'no credentials' =>
          [ [ env => { PUBSUB_EMULATOR_HOST => undef, CLOUDSDK_CONFIG => '/nowhere',
                NO_GCE_CHECK => 'true' } ], qr/no credentials.*--credentials-file/s ],
        'a password in the endpoint' =>
          [ [ options => ['--endpoint=http://me:open-sesame@127.0.0.1'] ],
            qr/not shown.*no user, password/s ],
        'a broken connection string' =>
          [ [ dbname => 'host=a password=open-sesame sslmode' ], qr/--dbname/ ]);
    foreach my $name (sort keys %wrong)
    {
        my ($args, $expected) = @{ $wrong{$name} };
        my $puller = Inbox::Puller->start(service => $service, handler => 'f', dbname => 'postgres',
            subscription => $service->subscription('till'),
            $name eq 'no subscription' ? (subscription => undef) : (), @$args);
        is($puller->wait_end(10), 1, "$name: ends with status 1");
        like($puller->slurp_log, $expected, "$name: and says what is wrong: " . $puller->slurp_log);
    }
};

subtest 'put right' => sub {
    Inbox::Ledger::wait_for($node, 'SELECT count(*) FROM effect', 2, 45);
    Inbox::Ledger::wait_for($node, "SELECT count(*) FROM seen WHERE key LIKE 'w_strict%'", 1, 45);
    $node->poll_query_until('empty', 'SELECT count(*) = 1 FROM effect') or die 'no effect';
    is(Inbox::Ledger::summary($node), '2 2 0 0', 'goes on by itself');
    foreach my $case (grep { $_->{cure} } values %waiting)
    {
        is($case->{puller}->stop, 0, 'stops with status 0');
    }
};
is_deeply([ Inbox::Puller->leaks(Inbox::Ledger::MEMO, 'open-sesame') ], [],
    'no log shows a payload or a password');
done_testing;
