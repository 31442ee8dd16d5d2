# SPDX-License-Identifier: PostgreSQL
# Pub/Sub delivers messages twice, to two pullers at once, out of order and with leases that end
# early; acknowledgements get lost, are ignored or refused. The ledger is exact all the same, and
# whatever is acknowledged is in the database by then.
use strict;
use warnings;
use JSON::PP;
use Test::More;
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

my $count = 150;
my $node = Inbox::Ledger->start('deliveries');
# The server looks up, in the ledger itself, each key that is acknowledged.
my $service = Inbox::Service->start('own', '--lookup', $node->connstr('postgres'),
    '--lookup-sql', 'SELECT key FROM effect WHERE key = ANY ($1) OR key = ANY ($2)');

# Each: the rules, the least number of duplicates, how many pullers, fields of the subscription.
my %case = (
    'acks-answer-lost' =>
      [ [ { on => 'ack', do => 'reset', when => 'after', nth => [ 1, 3 ] } ], 0 ],
    'acks-not-arrived' => [ [ { on => 'ack', do => 'reset', nth => [ 1, 3 ] } ], 0 ],
    'acks-ignored' => [ [ { on => 'ack', do => 'ignore', nth => [ 1, 2, 4 ] } ], 3 ],
    'ids-ignored' => [ [ { on => 'ack_id', do => 'ignore', every => 4, times => 30 } ], 30 ],
    'acked-and-again' => [ [ { on => 'ack_id', do => 'redeliver', every => 4, times => 30 } ], 30 ],
    'twice-in-an-answer' => [ [ { on => 'deliver', do => 'duplicate', every => 3 } ], 40 ],
    'to-two-pullers' => [ [ { on => 'deliver', do => 'share', every => 2, times => 70 } ], 10, 2 ],
    'leases-end-at-once' => [ [ { on => 'deliver', do => 'expire', every => 5, times => 25 } ], 5 ],
    'all-leases-end' => [ [ { on => 'pull', do => 'expire', nth => [ 3, 6, 9 ] } ], 0 ],
    'abandoned-pulls' =>
      [ [ { on => 'pull', do => 'reset', when => 'after', nth => [ 1, 3, 4 ] } ], 0 ],
    'half-answers' => [ [ { on => 'pull', do => 'half', nth => [ 2, 3 ] } ], 0 ],
    'out-of-order' => [ [ { on => 'pull', do => 'reorder', every => 1 } ], 0 ],
    'exactly-once' => [ [ { on => 'ack_id', do => 'fail', every => 7, times => 15,
                reason => 'TRANSIENT_FAILURE_UNORDERED_ACK_ID' },
            { on => 'ack_id', do => 'fail', every => 10, times => 10,
                reason => 'PERMANENT_FAILURE_INVALID_ACK_ID' } ], 1, 1,
        enableExactlyOnceDelivery => JSON::PP::true ]);
my %puller;

foreach my $name (sort keys %case)
{
    my ($rules, $duplicates, $pullers, %fields) = @{ $case{$name} };
    $service->create_topic($name);
    $service->create_subscription($name, $name, %fields);
    $service->add_faults(map { { %$_, subscription => $name } } @$rules);
    $service->publish($name,
        map { Inbox::Ledger::payment("$name $_", 1 + $_ % 50, 1) } 1 .. $count);
    $puller{$name} = [ map { Inbox::Puller->start(service => $service, node => $node,
                handler => 'apply_payment', subscription => $service->subscription($name))
      } 1 .. $pullers // 1 ];
}

sub verdicts
{
    my ($name, $verdict) = @_;
    my $sum = 0;
    $sum += $_->verdicts($verdict) foreach @{ $puller{$name} };
    return $sum;
}

foreach my $name (sort keys %case)
{
    subtest $name => sub {
        my $duplicates = $case{$name}[1];
        wait_until('all to be acknowledged',
            sub { $service->stats($name)->{unacked} == 0 }, 50, 0.2);
        is(Inbox::Ledger::count($node, 'SELECT count(*), count(DISTINCT key) FROM effect '
                    . "WHERE key LIKE '$name %'"), "$count|$count", 'each payment is applied once');
        is($_->stop, 0, 'stops with status 0') foreach @{ $puller{$name} };
        is(verdicts($name, 'applied'), $count, 'each is said to be applied once');
        cmp_ok(verdicts($name, 'duplicate'), '>=', $duplicates, "$duplicates duplicates at least");
        my @blamed = map { ($_->events('message_failed'), $_->events('dead_letter')) }
          @{ $puller{$name} };
        is(scalar @blamed, 0, 'no message is blamed');
    };
}

subtest 'refused acknowledgements' => sub {
    my ($puller) = @{ $puller{'exactly-once'} };
    my ($end) = $puller->events('stopped');
    is(scalar(() = $puller->events('ack_lost')), $end->{acks_lost}, 'each that is lost is said');
    cmp_ok($end->{acks_lost}, '>=', 5, 'an id that is refused for good is given up');
    my ($line) = $puller->events('ack_lost');
    like("$line->{level} $line->{key} $line->{err}", qr/^info exactly-once \d+ .*duplicate/,
        'which is no cause for alarm');
    ($line) = $puller->events('ack_failed');
    like("$line->{level} $line->{err}", qr/^warning HTTP 4\d\d/,
        'the request is said to have failed');
};

subtest 'nothing lost' => sub {
    my @unfired = grep { $_->{fired} == 0 } @{ $service->call('GET', '/control/faults')->{rules} };
    is_deeply(\@unfired, [], 'every fault happened');
    wait_until('all to be looked up', sub { $service->stats->{lookup}{primary}{pending} == 0 });
    my $lookup = $service->stats->{lookup}{primary};
    cmp_ok($lookup->{lookedUp}, '>=', $count * keys %case, 'every acknowledged key was looked up');
    is($lookup->{lost}, 0, 'and all of them were there');
    is(Inbox::Ledger::summary($node), join(' ', ($count * keys %case) x 2, 0, 0),
        'the ledger is exact');
    is_deeply([ Inbox::Puller->leaks(Inbox::Ledger::MEMO) ], [], 'no log shows a payload');
};
done_testing;
