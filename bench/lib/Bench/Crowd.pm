# SPDX-License-Identifier: PostgreSQL
# Pullers that work off a backlog together, and how fast they were.
#
#   my $crowd = Bench::Crowd->new(database => …, service => …, root => …, dir => …);
#   $crowd->publish('t', \@subscriptions, $count, sub { account of payment $_[0] }, $bytes);
#   my $result = $crowd->run('subscription', pullers => 2, workers => 4, seconds => 10);
package Bench::Crowd;
use strict;
use warnings;
use Time::HiRes qw(time);
use Bench::Cpu qw(seconds_of seconds_of_tree);
use Demo::Puller;
use Inbox::Wait;

# How fast it goes while pullers start and batches grow is left out.
use constant RAMP => 0.5;

sub new
{
    my ($class, %args) = @_;
    return bless { runs => 0, program => "$args{root}/puller/inbox-puller", %args }, $class;
}

# The same messages for each of the subscriptions; their keys are k1, k2, …, and their payloads
# have 200 bytes unless told otherwise.
sub publish
{
    my ($self, $topic, $subscriptions, $count, $account, $bytes) = @_;
    my $service = $self->{service};
    $service->create_topic($topic);
    $service->create_subscription($_, $topic, ackDeadlineSeconds => 600) foreach @$subscriptions;
    for (my $n = 1; $n <= $count; $n += 500)
    {
        $service->publish($topic, map { payment($_, $account->($_), $bytes // 200) }
            $n .. ($n + 499 < $count ? $n + 499 : $count));
    }
}

sub payment
{
    my ($n, $account, $bytes) = @_;
    my $start = sprintf '{"account": %d, "amount": %d, "memo": "', $account, 1 + $n % 1000;
    return { data => $start . 'x' x ($bytes - 2 - length($start)) . '"}',
        attributes => { idempotency_key => "k$n" } };
}

# A puller with that log; options of its own may follow.
sub start_one
{
    my ($self, $subscription, $log, $workers, $source, @options) = @_;
    local $ENV{PUBSUB_EMULATOR_HOST} = $self->{service}->host;
    return Demo::Puller->start($self->{program}, $log, '--log-level=info',
        '--subscription', $self->{service}->subscription($subscription), '--dbname',
        $self->{database}->conninfo('postgres'), '--handler', 'apply_payment', '--source', $source,
        '--workers', $workers, @options);
}

sub start
{
    my ($self, $subscription, @rest) = @_;
    push @{ $self->{logs} }, sprintf('%s/puller-%d-%d.log', $self->{dir}, $self->{runs},
        @{ $self->{logs} } + 1);
    return $self->start_one($subscription, $self->{logs}[-1], @rest);
}

# As a source that knows no keys, on a ledger without entries. Ends when the backlog is empty or
# the seconds are over. Returns rate (messages a second), messages (that are acknowledged), seconds, cpu
# (seconds of the pullers, the service and the database), deadlocks (that PostgreSQL found) and
# met (batches that ran into each other in any way). "options" are the pullers' own, "program" is
# another puller than the usual one.
sub run
{
    my ($self, $subscription, %args) = @_;
    local $self->{program} = $args{program} // $self->{program};
    my $run = $self->begin($subscription, %args);
    eval {
        wait_until('the backlog to be worked off', sub { $self->is_done($run) }, $args{seconds},
            0.1);
    };
    return $self->finish($run);
}

sub begin
{
    my ($self, $subscription, %args) = @_;
    my $source = 'run-' . ++$self->{runs};
    my $run = { subscription => $subscription, deadlocks => $self->deadlocks,
        unacked => $self->unacked($subscription), began => time };
    $self->{logs} = [];
    $self->{database}->query('-c', 'TRUNCATE entry', '-c', 'VACUUM account');
    $run->{cpu} = { $self->cpu };
    push @{ $run->{pullers} },
      $self->start($subscription, $args{workers}, $source, @{ $args{options} // [] })
      for 1 .. $args{pullers};
    return $run;
}

sub unacked
{
    my ($self, $subscription) = @_;
    return $self->{service}->stats($subscription)->{unacked};
}

sub is_done
{
    my ($self, $run) = @_;
    return $self->unacked($run->{subscription}) == 0;
}

sub finish
{
    my ($self, $run) = @_;
    my %used = $self->cpu(@{ $run->{pullers} });
    my $left = $self->unacked($run->{subscription});
    my $seconds = time - $run->{began};
    $used{$_} -= $run->{cpu}{$_} // 0 foreach keys %used;
    $_->end('TERM') or die "a puller failed:\n" . $_->last_events foreach @{ $run->{pullers} };
    return { rate => $self->rate, messages => $run->{unacked} - $left, seconds => $seconds, cpu => \%used,
        deadlocks => $self->deadlocks - $run->{deadlocks}, met => $self->met };
}

sub cpu
{
    my ($self, @pullers) = @_;
    my $puller = 0;
    $puller += seconds_of($_->pid) foreach @pullers;
    return (puller => $puller, service => seconds_of($self->{service}{pid}),
        database => seconds_of_tree($self->{database}->pid));
}

sub rate
{
    my ($self) = @_;
    my $ramp = RAMP;
    my ($row) = $self->{database}->query('-c', <<"SQL");
SELECT coalesce(round(count(*) / nullif(extract(epoch FROM max(e.at) - min(e.at)), 0)), 0)
	FROM entry e, (SELECT min(at) AS first, max(at) AS last FROM entry) s
	WHERE e.at > s.first + interval '$ramp s' AND e.at < s.last
SQL
    return $row->[0];
}

sub deadlocks
{
    my ($self) = @_;
    my ($row) = $self->{database}->query('-c',
        'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()');
    return $row->[0];
}

sub met
{
    my ($self) = @_;
    my $count = 0;
    foreach my $file (@{ $self->{logs} })
    {
        open(my $log, '<', $file) or die "could not read $file: $!\n";
        $count += grep { /"event":"contention"/ } <$log>;
    }
    return $count;
}

1;
