# SPDX-License-Identifier: PostgreSQL
# A message whose handler takes its backend along is found although no error ever names it: it ends
# as a dead letter with five attempts, and nobody else is blamed.
use strict;
use warnings;
use Test::More;
use Inbox::Ledger;
use Inbox::Scene;
use Inbox::Service;
use Inbox::Wait;
use Inbox::Workload;

# As a crash does it, and as an administrator does: the first leaves no word, the second does.
my %ways = (
    crash => q{COPY (SELECT) TO PROGRAM 'kill -9 $PPID'},
    terminate => q{SELECT pg_terminate_backend(pg_backend_pid())});

# As who made it: running programs is for superusers.
sub handler
{
    my ($way) = @_;
    return <<SQL;
CREATE FUNCTION deadly(key text, payload jsonb) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS \$\$
BEGIN
	PERFORM apply_payment(key, payload);
	IF key = 'killer' THEN
		EXECUTE \$way\$$ways{$way}\$way\$;
	END IF;
END \$\$;
SQL
}

sub rows
{
    my ($scene) = @_;
    return $scene->count("SELECT string_agg(concat_ws(' ', key, status, attempts, sqlstate), ', ')"
          . ' FROM inbox_failure');
}

sub check
{
    my ($kind, $way) = @_;
    my $scene = Inbox::Scene->new($kind, $way, sql => handler($way),
        conf => "restart_after_crash = on\n");
    my $work = Inbox::Workload->new(count => 200);
    splice(@{ $work->{messages} }, 120, 0, Inbox::Ledger::payment('killer', 1, 1));
    $work->publish($scene->{service}, $way);
    my @pullers = map { $scene->puller(handler => 'deadly', options => ['--workers=2']) } 1 .. 2;

    # Not by a query: the server is down now and then.
    wait_until('a dead letter', sub { grep { $_->events('dead_letter') } @pullers }, 120);
    $work->wait_applied($scene->{node}, 90);
    is($pullers[0]->stop, 0, 'one stops with status 0');
    Inbox::Workload->all_acked($scene->{service}, "$way-sub", $pullers[1], 'all is acknowledged');
    is(rows($scene), 'killer dead 5 IX006', 'it is dead after five attempts, it alone');
    is(Inbox::Ledger::summary($scene->{node}), '200 200 0 0', 'the others are applied once');
    my %tried = map { $_->{key} => 1 } map { $_->events('suspect_tried') } @pullers;
    note 'suspects: ' . keys %tried;
    is(scalar(grep { $_->{key} ne 'killer' } map { $_->events('dead_letter', 'message_failed') }
              @pullers), 0, 'no other message is blamed');
    $scene->{node}->stop;
}

foreach my $kind (Inbox::Service::kinds())
{
    foreach my $way (sort keys %ways)
    {
        subtest "$kind: $way" => sub { check($kind, $way) };
    }
}
done_testing;
