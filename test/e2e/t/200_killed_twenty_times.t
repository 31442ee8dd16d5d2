# SPDX-License-Identifier: PostgreSQL
# A puller that is killed with -9 again and again neither loses a message nor applies one twice.
use strict;
use warnings;
use Test::More;
use Inbox::Kills;
use Inbox::Ledger;
use Inbox::Service;
use Inbox::Workload;

use constant KILLS => 20;

my $slow_payment = <<'SQL';
CREATE FUNCTION slow_payment(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_sleep(0.002);
	PERFORM apply_payment(key, payload);
END $$;
SQL

# Where the service tells what it has acknowledged, half of the kills wait for one it has not.
my %moments = (own => [qw(ack transaction any transaction ack)], google => ['transaction']);

foreach my $kind (Inbox::Service::kinds())
{
    my $node = Inbox::Ledger->start("killed_$kind");
    my $dir = PostgreSQL::Test::Utils::tempdir();
    my $service = Inbox::Service->start($kind, "--history=$dir/history",
        '--lookup', $node->connstr('postgres'));
    my $work = Inbox::Workload->new(count => 5000, twice => 1000);
    my $history;
    open($history, '<', "$dir/history") or die "no history: $!\n" if $kind eq 'own';
    my $kills = Inbox::Kills->new(node => $node, service => $service, name => 'pay-sub',
        work => $work, history => $history,
        puller => { handler => 'slow_payment', options => ['--batch-size=50'] });

    $node->safe_psql('postgres', $slow_payment);
    $service->create_topic('pay');
    $service->create_subscription('pay-sub', 'pay');
    $work->publish($service, 'pay');
    # Some acknowledgements get no answer, and do nothing.
    $service->add_faults({ on => 'ack', do => 'stall', every => 5 }) if $kind eq 'own';
    my @moments = @{ $moments{$kind} };
    $kills->live_and_die($moments[ $_ % @moments ]) foreach 1 .. KILLS;

    $service->clear_faults if $kind eq 'own';
    my $last = $kills->start;
    $work->wait_applied($node, 60);
    $work->is_exact($node, $kind);
    # Duplicates of what an earlier life applied may still be on their way.
    $work->all_acked($service, 'pay-sub', $last, "$kind: every message is acknowledged");
    note join ', ', map { "$_: $kills->{$_}" } qw(kills transaction ack void);
    is($kills->{kills}, KILLS, "$kind: all kills were done");
    cmp_ok(KILLS - $kills->{void}, '>=', 15, "$kind: most fell into open work");
    cmp_ok($kills->duplicates, '>=', 10, "$kind: duplicates were seen");
    $node->stop;
}
done_testing;
