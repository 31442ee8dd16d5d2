# SPDX-License-Identifier: PostgreSQL
# docs/managed.md, its commands from managed to the extension and back as they stand there, while pullers
# work: nobody stops them, no claim is lost, every payment takes effect once and none is blamed.
use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use Inbox::Ledger;
use Inbox::Scene;
use Inbox::Workload;

BEGIN { $ENV{INBOX_VARIANT} = 'managed' }

use constant PAYMENTS => 4000;

my ($section) = slurp_file("$ENV{INBOX_ROOT}/docs/managed.md") =~ /^(## From managed .*?)(?=^## )/ms;
my @commands = $section =~ /^```sh\n(.*?)^```/gms;
is(scalar(@commands), 2, 'the page has the commands');
# The ledger of tests has inbox in this schema.
s/\b(SCHEMA |schema=)inbox\b/$1public/ || die foreach @commands;

my $scene = Inbox::Scene->new('own', 'moving', ms => 2);
my $node = $scene->{node};
my $work = Inbox::Workload->new(count => PAYMENTS, twice => PAYMENTS / 5);
my @messages = @{ $work->{messages} };
my %published;
my @pullers = map { $scene->puller(options => [ '--batch-size=20', '--workers=2' ]) } 1, 2;

sub publish
{
    my ($count) = @_;
    my @some = splice(@messages, 0, $count);
    $published{ $_->{attributes}{idempotency_key} } = 1 foreach @some;
    $scene->publish(@some);
    return scalar keys %published;
}

# Runs this as a superuser does, while there is work.
sub move
{
    my ($command, $language) = @_;
    local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGDATABASE => 'postgres');
    my $before = $work->applied($node);
    my $published = publish(PAYMENTS / 4);
    $work->wait_applied($node, 120, $before + 100);
    is(system('sh', '-euc', "cd $ENV{INBOX_ROOT}; $command"), 0, "moved: $command");
    cmp_ok($work->applied($node), '<', $published, 'while messages were on their way');
    is($node->safe_psql('postgres', q{SELECT string_agg(DISTINCT l.lanname, ',') FROM pg_proc p}
          . q{ JOIN pg_language l ON l.oid = p.prolang WHERE p.proname = 'inbox_process_batch'}),
        $language, "to functions in $language");
    $work->wait_applied($node, 120, publish(200));
}

move($commands[0], 'c');
move($commands[1], 'plpgsql');
publish(scalar @messages);
$work->wait_applied($node, 120);
$work->is_exact($node);
ok($_->is_running, 'a puller went on') foreach @pullers;
is($scene->count('SELECT count(*) FROM inbox_failure'), 0, 'nothing is blamed');
is(scalar(map { $_->events('message_failed'), $_->events('dead_letter') } @pullers), 0, 'nor logged as failed');
$pullers[0]->stop;
$work->all_acked($scene->{service}, 'moving-sub', $pullers[1], 'all is acknowledged');
done_testing();
