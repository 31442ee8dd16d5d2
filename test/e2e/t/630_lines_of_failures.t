# SPDX-License-Identifier: PostgreSQL
# What the line of a failure has: the trace context always, the payload only where --log-payloads
# asks for it; and a flood of lines is counted instead of written.
use strict;
use warnings;
use Test::More;
use Inbox::Puller;
use Inbox::Scene;
use Inbox::Wait;

my $trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
my $scene = Inbox::Scene->new('own', 'lines', sql => <<'SQL');
CREATE TABLE seen (key text, trace text);
CREATE FUNCTION refuse(message inbox_message) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF (message).key LIKE 'good%' THEN
		INSERT INTO seen VALUES ((message).key, (message).attributes->>'googclient_traceparent');
		RETURN;
	END IF;
	RAISE EXCEPTION 'no';
END $$;
SQL

sub failing
{
    my ($key, %attributes) = @_;
    return { data => 'for your ' . "\0eyes only\n{}", attributes => { idempotency_key => $key,
        %attributes } };
}

my $puller = $scene->puller(handler => 'refuse', log_level => 'info');
$scene->publish(failing('bad one', googclient_traceparent => $trace), failing('bad two',
    traceparent => $trace),
    failing('bad three', traceparent => "$trace\n"), failing('good',
        googclient_traceparent => $trace));
$scene->wait_for('SELECT trace FROM seen', $trace, 30);
pass('a handler can read the trace context');
foreach my $expected ([ 'bad one', $trace ], [ 'bad two', $trace ], [ 'bad three', undef ])
{
    my ($key, $parent) = @$expected;
    my $line = $puller->wait_event('message_failed', sub { $_[0]{key} eq $key });
    is($line->{traceparent}, $parent,
        "$key: the trace context" . (defined $parent ? '' : ' only where it is one'));
    ok(!exists $line->{payload}, "$key: no payload");
}
is($puller->stop, 0, 'stops with status 0');
is_deeply([ Inbox::Puller->leaks('eyes only') ], [], 'no line has a payload');

$puller = $scene->puller(handler => 'refuse', log_level => 'info', options => ['--log-payloads']);
$scene->publish(failing('bad four'));
my $line = $puller->wait_event('message_failed', sub { $_[0]{key} eq 'bad four' });
is($line->{payload}, "for your \x{fffd}eyes only\n{}", 'with --log-payloads the line has it');
is($puller->stop, 0, 'stops with status 0');

$puller = $scene->puller(handler => 'refuse', log_level => 'info');
my $dead = 1500;
$scene->publish(map { { data => '{}', attributes => { nothing => "$_" } } } 1 .. $dead);
$scene->wait_for(q{SELECT count(*) FROM inbox_failure WHERE reason = 'no_key'}, $dead, 60);
is($puller->stop, 0, 'stops with status 0');
my $written = grep { $_->{reason} eq 'no_key' } $puller->events('dead_letter');
my $others = $puller->events('dead_letter') - $written;
my $left_out = 0;
$left_out += $_->{count}
  foreach grep { $_->{of} eq 'dead_letter' } $puller->events('log_lines_left_out');
cmp_ok($written, '<', $dead, "of $dead dead letters $written have a line");
cmp_ok($written, '>=', 500, 'the first 500 at least');
# A line of the messages above may be among those that are left out.
cmp_ok($written + $left_out, '>=', $dead, 'and the others are counted');
cmp_ok($written + $left_out, '<=', $dead + 4 - $others, 'no line twice');
done_testing;
