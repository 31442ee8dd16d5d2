# SPDX-License-Identifier: PostgreSQL
# The database is away: at the start, in the middle, for longer than --db-grace. Nothing is pulled
# that could not be run, and when it is back every payment is applied once.
use strict;
use warnings;
use IO::Socket::INET;
use Test::More;
use Time::HiRes qw(time);
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

my $node = Inbox::Ledger->start('away');
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION apply_slowly(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM apply_payment(key, payload);
	PERFORM pg_sleep(0.5);
END $$;
SQL
my $connstr = $node->connstr('postgres');

sub start
{
    my ($service, $name, %args) = @_;
    my $subscription = "$name-$service->{kind}";
    $service->create_topic($name);
    $service->create_subscription($subscription, $name);
    return Inbox::Puller->start(service => $service, handler => 'apply_payment',
        subscription => $service->subscription($subscription), dbname => $connstr, %args);
}

# Nothing will ever answer these; they run beside the rest.
my $service = Inbox::Service->start('own');
my $closed = Inbox::Service::free_port();
my $mute = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5) or die "no socket: $!";
my %hopeless = (
    refused => start($service, 'refused',
        dbname => "host=127.0.0.1 port=$closed user=postgres password=open-sesame"),
    mute => start($service, 'mute', dbname => 'host=127.0.0.1 port=' . $mute->sockport));
$hopeless{no_role} = start($service, 'no_role', dbname => "$connstr user=nobody");
$hopeless{no_database} = start($service, 'no_database', dbname => "$connstr dbname=elsewhere");

my @kinds = map { { kind => $_, service => $_ eq 'own' ? $service : Inbox::Service->start($_) } }
  Inbox::Service::kinds();

sub payments
{
    my ($kind, $prefix, $count) = @_;
    return map { Inbox::Ledger::payment("$kind$prefix$_", 1 + $_ % 50, 1) } 1 .. $count;
}

sub wait_for_effects
{
    my ($count) = @_;
    Inbox::Ledger::wait_for($node, 'SELECT count(DISTINCT key) FROM effect', $count, 60);
    is(Inbox::Ledger::summary($node), "$count $count 0 0", "$count payments, each applied once");
}

subtest 'away at the start' => sub {
    $node->stop('fast');
    foreach my $one (@kinds)
    {
        $one->{puller} = start($one->{service}, 'pay');
        $one->{service}->publish('pay', payments($one->{kind}, 'a', 50));
    }
    foreach my $one (@kinds)
    {
        my $event = $one->{puller}->wait_event('db_connect_failed');
        like($event->{err}, qr/No such file or directory.*Is the server running/s,
            "$one->{kind}: says what is the matter: $event->{err}");
        like($event->{hint}, qr/--dbname/, "$one->{kind}: and what to look at");
        wait_until('a second attempt', sub { $one->{puller}->events('db_connect_failed') >= 2 });
    }
    ok($service->is_untouched('pay-own'), 'nothing is pulled meanwhile');
    $node->start;
    wait_for_effects(50 * @kinds);
};

subtest 'away in the middle' => sub {
    foreach my $one (@kinds)
    {
        $one->{service}->publish('pay', payments($one->{kind}, 'b', 2000));
    }
    wait_until('some to be applied',
        sub { Inbox::Ledger::count($node, 'SELECT count(*) FROM effect') >= 50 * @kinds + 300 });
    $node->stop('immediate');
    $_->{puller}->wait_event('db_connection_lost') foreach @kinds;
    $_->{puller}->wait_event('db_connect_failed') foreach @kinds;
    $node->start;
    wait_for_effects(2050 * @kinds);
    wait_until('all to be acknowledged', sub { $service->stats('pay-own')->{unacked} == 0 });
    foreach my $one (@kinds)
    {
        is($one->{puller}->stop, 0, "$one->{kind}: stops with status 0");
        is($one->{puller}->events('dead_letter') + $one->{puller}->events('message_failed'), 0,
            "$one->{kind}: no message is blamed");
    }
};

subtest 'away for longer than --db-grace' => sub {
    my $puller =
      start($service, 'slow', handler => 'apply_slowly', options => [ '--db-grace', '1s' ]);
    $service->publish('slow', payments('own', 'c', 12));
    wait_until('one to be applied', sub { $puller->verdicts('applied') });
    $node->stop('immediate');
    my $event = $puller->wait_event('db_grace_over');
    cmp_ok($event->{messages}, '>', 0, 'what is held is given up');
    like("$event->{err}; $event->{hint}", qr/--db-grace; .*come back/, 'and the log says so');
    $node->start;
    wait_for_effects(2050 * @kinds + 12);
    is($puller->stop, 0, 'stops with status 0');
};

subtest 'databases that are never there' => sub {
    my %expected = (
        refused => qr/connection to server at "127.0.0.1", port $closed failed: Connection refused/,
        mute => qr/timeout expired/,
        no_role => qr/role "nobody" does not exist/,
        no_database => qr/database "elsewhere" does not exist/);
    foreach my $name (sort keys %expected)
    {
        my $puller = $hopeless{$name};
        my $event =
          $puller->wait_event('db_connect_failed', sub { $_[0]{err} =~ $expected{$name} });
        ok($event, "$name: $event->{err}");
        is("$event->{level} " . ($event->{err} =~ /\n$/ ? 'a line too many' : 'fine'),
            'warning fine', "$name: is a warning, without an empty line at its end");
        ok($puller->is_running, "$name: it is tried again");
        my $start = time;
        is($puller->stop, 0, "$name: stops with status 0");
        cmp_ok(time - $start, '<', 5, "$name: and soon");
    }
    is_deeply([ Inbox::Puller->leaks('open-sesame') ], [], 'no log shows a password');
};
is_deeply([ Inbox::Puller->leaks(Inbox::Ledger::MEMO) ], [], 'no log shows a payload');
done_testing;
