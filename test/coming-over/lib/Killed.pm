# SPDX-License-Identifier: PostgreSQL
# A consumer that is no puller, killed with -9 while it works, and started again, until every payment is
# in the ledger: three tests, and those of is_exact.
package Killed;
use strict;
use warnings;
use Test::More;
use Inbox::Check;
use Inbox::Child;
use Inbox::Ledger;
use Inbox::Scene;
use Inbox::Wait;
use Inbox::Workload;
use PostgreSQL::Test::Utils;

use constant { COUNT => 160, KILLS => 2 };

# Slow enough to be met in the middle.
my $slow = <<'SQL';
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_sleep(0.01);
	RETURN NULL;
END $$;
CREATE TRIGGER slow AFTER INSERT ON effect FOR EACH ROW EXECUTE FUNCTION slow();
SQL

sub spawn
{
    my ($scene, $log, @command) = @_;
    my $node = $scene->{node};
    local %ENV = Inbox::Check::environment(PUBSUB_EMULATOR_HOST => $scene->{service}->host,
        SUBSCRIPTION => $scene->{service}->subscription($scene->{name}),
        PGHOST => $node->host, PGPORT => $node->port, PGDATABASE => 'postgres',
        PGUSER => 'consumer',
        # Google's client would look for a metadata server, and wait for it.
        METADATA_SERVER_DETECTION => 'none');
    return Inbox::Child::spawn($log, @command);
}

sub in_transaction
{
    my ($node) = @_;
    return Inbox::Ledger::count($node, q{SELECT count(*) FROM pg_stat_activity
        WHERE usename = 'consumer' AND xact_start IS NOT NULL});
}

# kind: of the service, as Inbox::Scene takes it; command: the consumer.
sub test
{
    my ($kind, $name, @command) = @_;
    my $scene = Inbox::Scene->new($kind, $name, sql => $slow);
    my $node = $scene->{node};
    my $log = "$PostgreSQL::Test::Utils::log_path/$name.log";
    my $work = Inbox::Workload->new(count => COUNT, twice => 20);
    my $met = 0;
    $node->safe_psql('postgres', q{CREATE ROLE consumer LOGIN; SELECT inbox_grant('consumer', 'puller');
        GRANT INSERT ON effect TO consumer; GRANT SELECT, UPDATE ON account TO consumer});
    $work->publish($scene->{service}, $name);
    foreach my $kill (1 .. KILLS)
    {
        my $pid = spawn($scene, $log, @command);
        my $before = $work->applied($node);
        eval { wait_until('some to be applied', sub { $work->applied($node) >= $before + 20 }, 60) }
          or die $@ . slurp_file($log);
        eval { wait_until('it to be in a transaction', sub { in_transaction($node) }, 5, 0.005); $met++ };
        kill('KILL', -$pid);
        waitpid($pid, 0);
    }
    cmp_ok($met, '>', 0, 'it was killed in the middle of transactions');
    cmp_ok($work->applied($node), '<', COUNT, 'and before the end');
    my $pid = spawn($scene, $log, @command);
    $work->wait_applied($node, 90);
    wait_until('nothing to be under way', sub { !in_transaction($node) }, 30);
    kill('KILL', -$pid);
    waitpid($pid, 0);
    $work->is_exact($node, $name);
    is($node->safe_psql('postgres', 'SELECT name FROM inbox_source'), 'ledger', 'in the source it names');
}

1;
