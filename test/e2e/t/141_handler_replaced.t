# SPDX-License-Identifier: PostgreSQL
# A handler that is dropped, replaced or loses a grant while messages come: no message is blamed,
# and all goes on when it is back.
use strict;
use warnings;
use Test::More;
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

my $node = Inbox::Ledger->start('replaced');
my $function = 'CREATE OR REPLACE FUNCTION NAME(key text, payload jsonb) RETURNS void '
  . 'BEGIN ATOMIC SELECT apply_payment(key, payload); END';
# Each: how it goes, how it comes back, and the SQLSTATE; NAME is the handler and the role.
my %away = (
    dropped => [ 'DROP FUNCTION NAME', "$function;", '42883' ],
    unfit => [ 'DROP FUNCTION NAME; CREATE FUNCTION NAME(key text, payload jsonb) '
          . 'RETURNS SETOF int BEGIN ATOMIC SELECT 1; END',
        "DROP FUNCTION NAME; $function;", 'IX003' ],
    revoked => [ 'REVOKE EXECUTE ON FUNCTION NAME FROM PUBLIC',
        'GRANT EXECUTE ON FUNCTION NAME TO PUBLIC', '42501' ],
    moved => [ 'ALTER FUNCTION NAME SET SCHEMA attic',
        'ALTER FUNCTION attic.NAME SET SCHEMA public', '42883' ],
    rights => [ "SELECT inbox_revoke('NAME', 'puller')", "SELECT inbox_grant('NAME', 'puller')",
        '42501' ]);

$node->safe_psql('postgres',
    'CREATE SCHEMA attic; ALTER FUNCTION apply_payment SECURITY DEFINER');

sub run_sql
{
    my ($sql, $name) = @_;
    $node->safe_psql('postgres', $sql =~ s/NAME/$name/gr);
}

sub start
{
    my ($service, $name) = @_;
    run_sql("$function; CREATE ROLE NAME LOGIN; SELECT inbox_grant('NAME', 'puller')", $name);
    $service->create_topic($name);
    $service->create_subscription($name, $name);
    return Inbox::Puller->start(service => $service, handler => $name,
        subscription => $service->subscription($name),
        dbname => $node->connstr('postgres') . " user=$name");
}

sub payments
{
    my ($name, @numbers) = @_;
    return map { Inbox::Ledger::payment("$name$_", 1 + $_ % 50, 1) } @numbers;
}

my $service = Inbox::Service->start('own');
my @all = map { { name => $_, puller => start($service, $_) } } sort keys %away;

subtest 'away' => sub {
    foreach my $one (@all)
    {
        $service->publish($one->{name}, payments($one->{name}, 1 .. 100));
        wait_until("$one->{name}: all to be applied",
            sub { $one->{puller}->verdicts('applied') >= 100 });
        run_sql($away{ $one->{name} }[0], $one->{name});
    }
    foreach my $one (@all)
    {
        $service->publish($one->{name}, payments($one->{name}, 101 .. 130));
        my $event = $one->{puller}->wait_event('transaction_failed');
        is($event->{sqlstate}, $away{ $one->{name} }[2], "$one->{name}: $event->{err}");
        $event = $one->{puller}->wait_event('db_refused');
        is("$event->{level} $event->{sqlstate}", "error $away{ $one->{name} }[2]",
            "$one->{name}: says so: $event->{err}");
        isnt($event->{hint} // '', '', "$one->{name}: with the remedy: " . ($event->{hint} // ''));
        run_sql($away{ $one->{name} }[1], $one->{name});
    }
};

subtest 'back' => sub {
    my $keys = 'SELECT count(*), count(DISTINCT key) FROM effect';
    Inbox::Ledger::wait_for($node, $keys, join('|', (130 * @all) x 2), 50);
    pass('all are applied once');
    foreach my $one (@all)
    {
        wait_until("$one->{name}: all to be acknowledged",
            sub { $service->stats($one->{name})->{unacked} == 0 });
        is($one->{puller}->stop, 0, "$one->{name}: stops with status 0");
        is(scalar(map { $one->{puller}->events($_) } qw(message_failed dead_letter)), 0,
            "$one->{name}: no message is blamed");
    }
    is(Inbox::Ledger::count($node, 'SELECT count(*) FROM inbox_failure'), 0, 'no row of a failure');
};
# A function of the same name that stands before it in the search_path is another handler.
subtest 'hidden' => sub {
    my $puller = start($service, 'hidden');
    $service->publish('hidden', payments('hidden', 1 .. 10));
    wait_until('some to be applied', sub { $puller->verdicts('applied') >= 10 });
    run_sql('CREATE SCHEMA NAME; GRANT USAGE ON SCHEMA NAME TO NAME; CREATE FUNCTION '
          . 'NAME.NAME(key text, payload jsonb) RETURNS void BEGIN ATOMIC SELECT; END', 'hidden');
    $service->publish('hidden', payments('hidden', 11 .. 20));
    wait_until('the others to be applied', sub { $puller->verdicts('applied') >= 20 });
    is(Inbox::Ledger::count($node, "SELECT count(*) FROM effect WHERE key LIKE 'hidden%'"), 20,
        'by the handler that the source is served with');
    is($puller->stop, 0, 'stops with status 0');
};
is_deeply([ Inbox::Puller->leaks(Inbox::Ledger::MEMO) ], [], 'no log shows a payload');
done_testing;
