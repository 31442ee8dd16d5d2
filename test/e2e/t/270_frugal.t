# SPDX-License-Identifier: PostgreSQL
# An idle puller uses next to no processor, and yet a message is applied as soon as it comes; a
# busy one stays small.
use strict;
use warnings;
use Test::More;
use Time::HiRes qw(time sleep);
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Scene;
use Inbox::Wait;

use constant { IDLE_SECONDS => 60, IDLE_CPU => 0.05, RESIDENT_KB => 64 * 1024 };

sub cpu
{
    my ($puller) = @_;
    my @fields = split / /, PostgreSQL::Test::Utils::slurp_file("/proc/$puller->{pid}/stat")
      =~ s/^.*\) //sr;
    return ($fields[11] + $fields[12]) / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

# The most it ever had resident, in kB.
sub peak
{
    my ($puller) = @_;
    my ($kb) = PostgreSQL::Test::Utils::slurp_file("/proc/$puller->{pid}/status")
      =~ /^VmHWM:\s+(\d+) kB/m;
    return $kb;
}

# All idle at the same time, and all with a message before, so that every connection is warm.
my @idle = map { Inbox::Scene->new($_, 'idle', ms => 0) } Inbox::Service::kinds();
foreach my $scene (@idle)
{
    $scene->{puller} = $scene->puller(options => [ '--workers=4', '--listen=0' ]);
    $scene->publish(Inbox::Ledger::payment('first', 1, 1));
    $scene->{puller}->wait_event('message');
}
my $start = time;
$_->{cpu} = cpu($_->{puller}) foreach @idle;

# Meanwhile another has its hands full: batches grow while the handler is fast, and then it stops.
subtest 'a thousand messages of 10 KiB' => sub {
    my $busy = Inbox::Scene->new('own', 'busy', sql => <<'SQL');
CREATE TABLE pace (seconds int);
CREATE FUNCTION paced_payment(payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_sleep(seconds) FROM pace;
END $$;
SQL
    my $puller = $busy->puller(handler => 'paced_payment', log_level => 'info',
        options => [ '--batch-size=500', '--handler-timeout=50s' ]);
    $busy->publish(map { Inbox::Ledger::payment("small$_", 1, 0) } 1 .. 5000);
    $busy->wait_for('SELECT count(*) FROM inbox_claim', 5000, 30);
    $busy->{node}->safe_psql('postgres', 'INSERT INTO pace VALUES (60)');
    $busy->publish(map { {
        data => '{"filler": "' . 'x' x 10240 . '"}', attributes => { idempotency_key => "large$_" }
    } } 1 .. 1200);
    wait_until('a thousand to be held',
        sub { $busy->{service}->stats('busy-sub')->{leased} >= 1000 }, 20);
    my $before = 0;
    wait_until('them to be read', sub { my $last = $before; ($before = peak($puller)) == $last },
        20, 0.5);
    cmp_ok(peak($puller), '<', RESIDENT_KB, 'less than 64 MiB: ' . peak($puller) . ' kB');
    $puller->kill9;
};

sleep(1) while time < $start + IDLE_SECONDS;
foreach my $scene (@idle)
{
    my $puller = $scene->{puller};
    my $used = cpu($puller) - $scene->{cpu};
    cmp_ok($used, '<=', IDLE_CPU, "$scene->{kind}: $used s of processor time in a minute of idleness");
    my $published = time;
    $scene->publish(Inbox::Ledger::payment('last', 1, 1));
    $puller->wait_event('message', sub { $_[0]->{key} eq 'last' }, 10);
    cmp_ok(time - $published, '<', 2, "$scene->{kind}: and a message is applied at once");
    is($puller->stop, 0, "$scene->{kind}: stops");
}
done_testing;
