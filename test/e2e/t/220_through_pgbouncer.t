# SPDX-License-Identifier: PostgreSQL
# Works through pgbouncer in transaction mode, with fewer server connections than workers, also
# when the pooler is restarted or killed at work.
use strict;
use warnings;
use Test::More;
use Time::HiRes qw(sleep);
use Inbox::Child;
use Inbox::Puller;
use Inbox::Ledger;
use Inbox::Scene;
use Inbox::Service;
use Inbox::Wait;
use Inbox::Workload;

my ($pgbouncer) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin';
if (!$pgbouncer)
{
    BAIL_OUT('pgbouncer is missing; install the Debian package pgbouncer') if $ENV{CI};
    plan skip_all => 'there is no pgbouncer';
}

my $dir = PostgreSQL::Test::Utils::tempdir();
my $port = Inbox::Service::free_port();

sub write_settings
{
    my ($node) = @_;
    my $user = Inbox::Ledger::puller() // getpwuid($<);
    PostgreSQL::Test::Utils::append_to_file("$dir/pgbouncer.ini", <<INI);
[databases]
postgres = host=${\$node->host} port=${\$node->port} dbname=postgres user=$user
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
admin_users = admin
INI
}

sub start_pooler
{
    my $pid = Inbox::Child::spawn("$dir/pgbouncer.log", $pgbouncer, "$dir/pgbouncer.ini");
    wait_until('pgbouncer to listen',
        sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) }, 20);
    return $pid;
}

sub stop_pooler
{
    my ($pid, $signal) = @_;
    kill($signal, $pid);
    waitpid($pid, 0);
}

foreach my $kind (Inbox::Service::kinds())
{
    subtest $kind => sub {
        my $scene = Inbox::Scene->new($kind, 'pooled');
        my $work = Inbox::Workload->new(count => 1500, twice => 200);
        unlink "$dir/pgbouncer.ini";
        write_settings($scene->{node});
        my $pooler = start_pooler();
        my $puller = $scene->puller(
            dbname => "host=127.0.0.1 port=$port dbname=postgres user=whoever",
            options => [ '--workers=5', '--batch-size=20' ]);
        $work->publish($scene->{service}, 'pooled');
        foreach my $signal (qw(INT KILL INT KILL))
        {
            $work->wait_applied($scene->{node}, 30, $work->applied($scene->{node}) + 150);
            is($scene->count('SELECT count(*) <= 2 FROM pg_stat_activity WHERE backend_type'
                      . " = 'client backend' AND pid <> pg_backend_pid()"
                      . " AND application_name <> 'lookup'"), 't',
                'five workers share two server connections');
            stop_pooler($pooler, $signal);
            $pooler = start_pooler();
        }
        $work->wait_applied($scene->{node}, 40);
        $work->is_exact($scene->{node});
        is(leftovers(), 'notice, 0, 0', 'no setting of a transaction is left in the session');
        is($scene->count('SELECT count(*) FROM pg_locks WHERE locktype = \'advisory\''), 0,
            'and no lock');
        $work->all_acked($scene->{service}, 'pooled-sub', $puller, 'all is acknowledged');
        cmp_ok(scalar($puller->events('outcome_unknown')), '>', 0, 'restarts hit transactions');
        is(scalar($puller->events('dead_letter')), 0, 'no message is blamed');
        is($scene->count('SELECT count(*) FROM inbox_failure'), 0, 'no failure is left');
        stop_pooler($pooler, 'INT');
        $scene->{node}->stop;
    };
}

# What one transaction sets must not be left to whoever gets the connection next.
sub leftovers
{
    my ($out) = PostgreSQL::Test::Utils::run_command([ 'psql', '-XAtq', '-d',
        "host=127.0.0.1 port=$port dbname=postgres user=whoever", '-c',
        "SELECT concat_ws(', ', current_setting('client_min_messages'),"
          . " current_setting('statement_timeout'), current_setting('lock_timeout'))" ]);
    return $out;
}
done_testing;
