# SPDX-License-Identifier: PostgreSQL
# A handler that lets its warnings through to the client: what fails is blamed for it all the same,
# and keeps nobody else from being applied.
use strict;
use warnings;
use Test::More;
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

my $node = Inbox::Ledger->start('warns');
my $service = Inbox::Service->start('own');

$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION warn_payment(key text, payload jsonb) RETURNS void LANGUAGE plpgsql
	SET client_min_messages = warning AS $$
BEGIN
	RAISE WARNING 'an odd payment: %', key;
	PERFORM apply_payment(key, payload);
END $$;
SQL
$service->create_topic('odd');
$service->create_subscription('odd', 'odd');
# There is no account 999.
$service->publish('odd',
    map { Inbox::Ledger::payment("odd$_", $_ == 3 ? 999 : $_, 1) } 1 .. 5);
my $puller = Inbox::Puller->start(service => $service, node => $node, handler => 'warn_payment',
    subscription => $service->subscription('odd'));
Inbox::Ledger::wait_for($node,
    "SELECT status, error FROM inbox_failure WHERE key = 'odd3'", 'retrying|no account 999', 30);
pass('the one that fails is recorded');
Inbox::Ledger::wait_for($node, 'SELECT count(*), count(DISTINCT key) FROM effect', '4|4', 30);
pass('the others are applied once');
# A warning that came with a COMMIT may have been the standby's: they come again as duplicates.
wait_until('the others to be acknowledged', sub { $service->stats('odd')->{unacked} == 1 }, 60);
pass('and acknowledged');
is($puller->stop, 0, 'the puller stops');
done_testing();
