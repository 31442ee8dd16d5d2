# SPDX-License-Identifier: PostgreSQL
# The database is killed again and again in the middle of transactions: nothing is lost, nothing
# applied twice, nothing blamed on a message.
use strict;
use warnings;
use Test::More;
use Inbox::Scene;
use Inbox::Wait;
use Inbox::Workload;

use constant CRASHES => 6;

my $busy = 'SELECT count(*) FROM pg_stat_activity WHERE ' . Inbox::Scene::IN_TRANSACTION;

sub no_blame
{
    my ($scene, $puller) = @_;
    is($scene->count('SELECT count(*) FROM inbox_failure'), 0, 'no message is blamed for it');
    is(scalar($puller->events('dead_letter')), 0, 'and none is dead');
}

# Between two crashes some payments have to be applied, or the same moment is tested again. While no
# transaction is seen there is more to do: this may look more slowly than the puller works.
sub crash
{
    my ($scene, $work, $rest) = @_;
    my $applied = $work->applied($scene->{node});
    $scene->publish(splice(@$rest, 0, 150));
    $work->wait_applied($scene->{node}, 30, $applied + 20 + int(rand(100)));
    wait_until('an open transaction', sub {
        return 1 if $scene->count($busy) > 0;
        $scene->publish(splice(@$rest, 0, 250)) if @$rest;
        return 0;
    }, 10, 0.001);
    $scene->{node}->stop('immediate');
    $scene->{node}->start;
}

foreach my $kind (Inbox::Service::kinds())
{
    subtest "$kind: immediate stops of the server" => sub {
        my $scene = Inbox::Scene->new($kind, 'crash');
        my $work = Inbox::Workload->new(count => 2500, twice => 150);
        my $puller = $scene->puller(options => [ '--workers=2', '--batch-size=50' ]);
        my @rest = @{ $work->{messages} };
        $scene->publish(splice(@rest, 0, 700));
        crash($scene, $work, \@rest) foreach 1 .. CRASHES;
        $scene->publish(@rest);
        $work->wait_applied($scene->{node}, 60);
        $work->is_exact($scene->{node});
        cmp_ok(scalar($puller->events('outcome_unknown')), '>=', CRASHES / 2,
            'most crashes hit a transaction');
        no_blame($scene, $puller);
        $work->all_acked($scene->{service}, 'crash-sub', $puller, 'all is acknowledged');
    };
}

done_testing;
