# SPDX-License-Identifier: PostgreSQL
# A subscription's native dead letters end as rows of inbox_failure, and one whose key was applied
# after all is a duplicate.
use strict;
use warnings;
use Test::More;
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

my $node = Inbox::Ledger->start('native_dead_letters');

# Delivers everything that waits to nobody, until Pub/Sub itself has moved "count" messages away.
sub wear_out
{
    my ($service, $name, $count) = @_;
    my %dead;
    wait_until('every message to be dead-lettered', sub {
        my @messages = $service->pull_now($name);
        $service->call('POST', '/v1/' . $service->subscription($name) . ':modifyAckDeadline',
            { ackIds => [ map { $_->{ackId} } @messages ], ackDeadlineSeconds => 0 })
          if @messages;
        $dead{ $_->{message}{messageId} }++ foreach $service->pull_now('dead-sub');
        return keys %dead == $count;
    });
}

foreach my $kind (Inbox::Service::kinds())
{
    my $service = Inbox::Service->start($kind);
    my $source = $kind . '-source';
    $service->create_topic($_) foreach qw(pay dead);
    $service->create_subscription('dead-sub', 'dead');
    $service->create_subscription('pay-sub', 'pay',
        deadLetterPolicy =>
          { deadLetterTopic => $service->topic('dead'), maxDeliveryAttempts => 5 });
    my ($applied, $never) = map { Inbox::Ledger::payment($_, 1, 1) } qw(applied never);
    $node->safe_psql('postgres',
        "SELECT inbox_process('applied', \$\$$applied->{data}\$\$, 'apply_payment', '$source')");
    $service->publish('pay', $applied, $never);
    wear_out($service, 'pay-sub', 2);

    my $puller = Inbox::Puller->start(service => $service, node => $node,
        subscription => $service->subscription('dead-sub'),
        options => [ '--as-dead-letters', "--source=$source" ]);
    # What looked whether anything had arrived holds a lease of 10 s.
    wait_until('both to be settled',
        sub { $puller->events('dead_letter') == 1 && $puller->verdicts('duplicate') == 1 }, 60);
    is($puller->stop, 0, "$kind: stops cleanly");
    like(
        $node->safe_psql('postgres',
            'SELECT key, status, reason, error, attributes FROM inbox_failure'
              . " WHERE source_id = (SELECT id FROM inbox_source WHERE name = '$source')"),
        qr/^never\|dead\|native_dead_letter\|dead-lettered by Pub\/Sub after 5 deliveries of subscription pay-sub in project p\|.*SourceSubscription/,
        "$kind: the message nobody had applied is a dead letter with its source attributes");
    $service->stop;
}

my $puller = Inbox::Puller->start(node => $node, subscription => 'projects/p/subscriptions/dead-sub',
    env => { PUBSUB_EMULATOR_HOST => '127.0.0.1:1' }, options => ['--as-dead-letters']);
is($puller->wait_end, 1, 'without --source it does not start');
like($puller->slurp_log, qr/--as-dead-letters needs --source.*hint: Name the source/s,
    'and says what to give');

$node->stop;
done_testing();
