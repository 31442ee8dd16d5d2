# SPDX-License-Identifier: PostgreSQL
# The connection is cut around the COMMIT: before it reaches the server, in the middle of it,
# behind it, before and in its answer. Nobody can tell the outcome then, so nothing is
# acknowledged; what is there turns out to be a duplicate, what is not is applied.
use strict;
use warnings;
use Test::More;
use Inbox::Proxy;
use Inbox::Scene;
use Inbox::Wait;
use Inbox::Workload;

use constant EACH => 60;

# The trigger, and whether the transaction is there.
my @points = (
    [ 'before COMMIT', 'on=commit-query', 0 ],
    [ 'in the middle of COMMIT', 'on=commit-query offset=3', 0 ],
    [ 'behind COMMIT', 'on=commit-sent', 1 ],
    [ 'before its answer', 'on=commit-answer', 1 ],
    [ 'in the middle of its answer', 'on=commit-answer offset=3', 1 ],
    [ 'between its answer and the end', 'on=commit-answered', 1 ],
);

my $scene = Inbox::Scene->new('own', 'cut', ms => 1);
my $proxy = Inbox::Proxy->before_node($scene->{node});
my $work = Inbox::Workload->new(count => EACH * @points + 1);
my @messages = @{ $work->{messages} };
my $puller = $scene->puller(dbname => $proxy->connstr,
    options => ['--batch-size=4']);
$puller->wait_event('db_connected');

sub duplicates { $puller->verdicts('duplicate') }
sub unknown { scalar $puller->events('outcome_unknown') }

my $done = 0;
foreach my $point (@points)
{
    my ($name, $where, $is_there) = @$point;
    my ($duplicates, $unknown) = (duplicates(), unknown());
    $proxy->command("trigger $where every=8 do=cut");
    $scene->publish(splice(@messages, 0, EACH));
    $done += EACH;
    $work->wait_applied($scene->{node}, 60, $done);
    wait_until('all to be acknowledged',
        sub { $scene->{service}->stats('cut-sub')->{unacked} == 0 }, 60);
    my $fired = $proxy->stats->{triggers}[0]{fired};
    $proxy->command('clear');
    cmp_ok($fired, '>=', 2, "$name: cut $fired times");
    cmp_ok(unknown(), '>', $unknown, "$name: the outcome is not known");
    $is_there
      ? cmp_ok(duplicates(), '>', $duplicates, "$name: what had been committed is a duplicate")
      : is(duplicates(), $duplicates, "$name: what had not been committed is applied");
}

# The verdict has been read when the connection is cut, but the COMMIT has not been forwarded.
my ($duplicates, $unknown) = (duplicates(), unknown());
$proxy->command('trigger on=commit-query nth=1 do=delay ms=20000');
$scene->publish(@messages);
$scene->wait_for(q{SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'}, 1, 20);
$proxy->command('cut');
$work->wait_applied($scene->{node}, 30);
is(unknown(), $unknown + 1, 'a verdict without a COMMIT: the outcome is not known');
is(duplicates(), $duplicates, 'a verdict without a COMMIT: it is applied');

$work->is_exact($scene->{node});
$work->all_acked($scene->{service}, 'cut-sub', $puller, 'all is acknowledged');
is($scene->count('SELECT count(*) FROM inbox_failure'), 0, 'no message is blamed');
done_testing;
