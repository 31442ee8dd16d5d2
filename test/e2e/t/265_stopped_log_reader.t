# SPDX-License-Identifier: PostgreSQL
# Whoever reads the log stops reading, and the pipe fills up: the work goes on, and what could not
# be written is counted.
use strict;
use warnings;
use Fcntl qw(O_RDONLY O_NONBLOCK);
use POSIX qw(mkfifo);
use Test::More;
use Time::HiRes qw(time);
use Inbox::Scene;
use Inbox::Wait;
use Inbox::Workload;

my $scene = Inbox::Scene->new('own', 'pipe', ms => 0);
my $pipe = PostgreSQL::Test::Utils::tempdir() . '/log';
mkfifo($pipe, 0600) or die "no pipe: $!\n";
sysopen(my $reader, $pipe, O_RDONLY | O_NONBLOCK) or die "no reader: $!\n";

# Far more lines than the 64 kB that a pipe holds.
my $work = Inbox::Workload->new(count => 3000);
my $puller = $scene->puller(log => $pipe);
$work->publish($scene->{service}, 'pipe');
$work->wait_applied($scene->{node}, 60);
wait_until('all to be acknowledged',
    sub { $scene->{service}->stats('pipe-sub')->{unacked} == 0 }, 20);
pass('a full pipe does not hold up the work');

sysread($reader, my $text, 1 << 20);
cmp_ok(length($text), '>', 50000, 'the pipe was full');
like($text, qr/\n\z/, 'no line is cut');
$scene->publish(Inbox::Ledger::payment('k3001', 1, 0));
my $rest = '';
wait_until('the next lines', sub {
    my $got = sysread($reader, my $some, 1 << 16);
    $rest .= $some if $got;
    $rest =~ /"key":"k3001"/;
}, 20);
my ($dropped) = $rest =~ /"event":"log_lines_dropped","count":(\d+)/;
my $written = () = $text =~ /\n/g;
cmp_ok($dropped + $written, '>=', 3000, 'what was dropped is counted');

$work->wait_applied($scene->{node}, 20, 3000);
my $start = time;
is($puller->stop, 0, 'stops');
cmp_ok(time - $start, '<', 5, 'at once');
done_testing;
