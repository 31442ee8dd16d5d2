# SPDX-License-Identifier: PostgreSQL
# The pattern of one transaction a message, and how near it comes to what pgbench makes of the same
# transaction.
#
#   my $usual = Bench::Usual->new(crowd => $crowd, seconds => 3, raw => $handle);
#   my $best = $usual->best({ 1 => 'subscription', 4 => 'another' });
package Bench::Usual;
use strict;
use warnings;

# A consumer that is slower than this beside pgbench is a bad one, and proves nothing.
use constant FAIR => 0.6;

sub new
{
    my ($class, %args) = @_;
    my $self = bless { %args }, $class;
    $self->{script} = "$args{crowd}{dir}/usual.sql";
    open(my $script, '>', $self->{script}) or die "could not write $self->{script}: $!\n";
    print $script <<'SQL';
\set n random(1, 9000000000000000000)
\set account random(1, 10000)
BEGIN;
INSERT INTO usual_claim (key) VALUES ('bench-' || :n) ON CONFLICT DO NOTHING;
SELECT apply_payment('bench-' || :n, jsonb_build_object('account', :account::int, 'amount', 5));
COMMIT;
SQL
    close($script);
    return $self;
}

sub run
{
    my ($self, @command) = @_;
    open(my $run, '-|', @command) or die "could not run $command[0]: $!\n";
    my $output = join '', <$run>;
    close($run) or die "$command[0] failed, see above\n";
    return $output;
}

sub clear
{
    my ($self) = @_;
    $self->{crowd}{database}->query('-c', 'TRUNCATE entry, usual_claim', '-c', 'VACUUM account');
}

# Transactions a second.
sub pgbench
{
    my ($self, $connections) = @_;
    $self->clear;
    my $output = $self->run("$self->{crowd}{database}{bin}/pgbench", '--no-vacuum',
        '--protocol=prepared', "--client=$connections", "--jobs=$connections",
        "--time=$self->{seconds}", "--file=$self->{script}",
        $self->{crowd}{database}->conninfo('postgres') . ' options=-cclient_min_messages=warning');
    return $output =~ /^tps = ([0-9.]+)/m ? $1 : die "pgbench said no rate:\n$output";
}

# Of the consumer, which has ended, the service and the database: in seconds.
sub cpu
{
    my ($self) = @_;
    my %others = $self->{crowd}->cpu;
    return (times)[2] + (times)[3] + $others{service} + $others{database};
}

# Messages a second and microseconds of all processes a message, from a subscription that has
# enough of them.
sub consume
{
    my ($self, $subscription, $connections) = @_;
    my ($crowd, $service) = ($self->{crowd}, $self->{crowd}{service});
    $self->clear;
    my $cpu = $self->cpu;
    my ($acked, $seconds) = split ' ', $self->run("$crowd->{root}/build/bench/usual", '--dbname',
        $crowd->{database}->conninfo('postgres'), '--subscription',
        "$service->{url}/v1/" . $service->subscription($subscription), '--connections',
        $connections, '--seconds', $self->{seconds});
    $cpu = $self->cpu - $cpu;
    my ($entries) = $crowd->{database}->query('-c', 'SELECT count(*) FROM entry');
    die "acknowledged are $acked and in the ledger $entries->[0]: the run is void\n"
      if $entries->[0] != $acked;
    return ($acked / $seconds, 1e6 * $cpu / $acked);
}

# Each number of connections with a subscription of its own. Returns rate, cpu, connections and
# fair, the ratio to pgbench, of the fastest; dies when that is not fair.
sub best
{
    my ($self, $subscriptions) = @_;
    my $best;
    foreach my $connections (sort { $a <=> $b } keys %$subscriptions)
    {
        my ($rate, $cpu) = $self->consume($subscriptions->{$connections}, $connections);
        my $pgbench = $self->pgbench($connections);
        $self->{raw}->print("usual $connections $rate $cpu pgbench $pgbench\n");
        $best = { rate => $rate, cpu => $cpu, connections => $connections,
            fair => $rate / $pgbench }
          if !$best || $rate > $best->{rate};
    }
    die sprintf("with %d connections the usual consumer makes %.2f of pgbench's rate, not %.2f: "
          . "the run is void\n", $best->{connections}, $best->{fair}, FAIR)
      if $best->{fair} < FAIR;
    return $best;
}

1;
