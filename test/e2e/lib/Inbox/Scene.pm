# SPDX-License-Identifier: PostgreSQL
# What most tests start with: a ledger, a service with one topic and one subscription, a puller.
#
#   my $scene = Inbox::Scene->new('own', 'name', sql => …); my $puller = $scene->puller(…);
package Inbox::Scene;
use strict;
use warnings;
use JSON::PP;
use PostgreSQL::Test::Utils ();
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;

# ms: how long the handler slow_payment() takes; sql: run in the database; conf: of the server;
# before: a release to begin with; ledger: a database to share instead; fields: of the subscription; service: options of the
# project's own server.
sub new
{
    my ($class, $kind, $name, %args) = @_;
    my $dir = PostgreSQL::Test::Utils::tempdir();
    my $self = bless { kind => $kind, name => "$name-sub", topic => $name,
        history_file => "$dir/history" }, $class;
    $self->{node} = $args{node} // Inbox::Ledger->start("$name\_$kind", conf => $args{conf},
        before => $args{before});
    $self->{node}->safe_psql('postgres', slow_payment($args{ms} // 2) . ($args{sql} // ''));
    $self->{service} = Inbox::Service->start($kind, "--history=$self->{history_file}",
        '--lookup', $self->{node}->connstr('postgres') . ' application_name=lookup',
        @{ $args{service} // [] });
    $self->{service}->create_topic($name);
    $self->{service}->create_subscription($self->{name}, $name, %{ $args{fields} // {} });
    return $self;
}

# Slow before it locks a row, or connections would wait for each other.
sub slow_payment
{
    my ($ms) = @_;
    return <<SQL;
CREATE OR REPLACE FUNCTION slow_payment(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS \$\$
BEGIN
	PERFORM pg_sleep($ms / 1000.0);
	PERFORM apply_payment(key, payload);
END \$\$;
SQL
}

sub puller
{
    my ($self, %args) = @_;
    return Inbox::Puller->start(service => $self->{service}, node => $self->{node},
        subscription => $self->{service}->subscription($self->{name}),
        handler => 'slow_payment', %args);
}

sub publish
{
    my ($self, @messages) = @_;
    return $self->{service}->publish($self->{topic}, @messages);
}

sub count
{
    my ($self, $sql) = @_;
    return Inbox::Ledger::count($self->{node}, $sql);
}

sub wait_for
{
    my ($self, $sql, $expected, $seconds) = @_;
    return Inbox::Ledger::wait_for($self->{node}, $sql, $expected, $seconds);
}

# How often each message was delivered, by its id; of the project's own server only.
sub deliveries
{
    my ($self) = @_;
    my %count;
    $count{ $_->{messageId} }++ foreach $self->{service}->history('deliver');
    return \%count;
}

# The condition that a puller's connection runs the handler or commits.
use constant IN_TRANSACTION => "backend_type = 'client backend' AND xact_start IS NOT NULL"
  . " AND pid <> pg_backend_pid() AND application_name <> 'lookup'";

1;
