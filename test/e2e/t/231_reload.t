# SPDX-License-Identifier: PostgreSQL
# SIGHUP reads the configuration again; a mistake in it changes nothing.
use strict;
use warnings;
use Test::More;
use Inbox::Scene;
use Inbox::Workload;

my $scene = Inbox::Scene->new('own', 'hup');
my $file = PostgreSQL::Test::Utils::tempdir() . '/puller.ini';
PostgreSQL::Test::Utils::append_to_file($file, "log-level = warning\n");
my $puller = $scene->puller(log_level => undef, options => [ '--config', $file ]);
my $work = Inbox::Workload->new(count => 2);
my ($first, $second) = @{ $work->{messages} };
$scene->publish($first);
$work->wait_applied($scene->{node}, 20, 1);
is($puller->events, 0, 'at the level warning nothing is logged');

unlink $file;
PostgreSQL::Test::Utils::append_to_file($file, "log-level = debug\n");
$puller->signal('HUP');
$puller->wait_event('config_reloaded');
$scene->publish($second);
$puller->wait_event('message', sub { $_[0]->{key} eq 'k2' });
is($puller->verdicts('applied'), 1, 'after SIGHUP it is, from the next message on');

unlink $file;
PostgreSQL::Test::Utils::append_to_file($file, "log-level = chatty\n");
$puller->signal('HUP');
my $event = $puller->wait_event('config_invalid');
like($event->{err}, qr/log-level.*chatty/, "a mistake is named: $event->{err}");
ok($puller->is_running, 'and what was set stays');
is($puller->stop, 0, 'stops');
done_testing;
