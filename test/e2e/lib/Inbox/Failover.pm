# SPDX-License-Identifier: PostgreSQL
# A primary, a standby or a restored copy in its place, and pullers that find whichever is writable.
package Inbox::Failover;
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use Inbox::Ledger;
use Inbox::Wait;

# A primary that others may be made of, with a ledger; conf as Inbox::Ledger takes it.
sub primary
{
    my ($name, $conf, %init) = @_;
    return Inbox::Ledger->start($name, conf => $conf, init => { allows_streaming => 1, %init });
}

sub standby
{
    my ($primary, $name) = @_;
    my $standby = PostgreSQL::Test::Cluster->new($name);
    $primary->backup("base_$name");
    $standby->init_from_backup($primary, "base_$name", has_streaming => 1);
    $standby->start;
    $primary->wait_for_catchup($standby, 'replay');
    return $standby;
}

# What libpq tries one after the other until one of them accepts writes.
sub dbname
{
    my @nodes = @_;
    return sprintf('host=%s port=%s dbname=postgres target_session_attrs=read-write '
          . 'connect_timeout=2', join(',', map { $_->host } @nodes), join(',', map { $_->port } @nodes));
}

# The primary dies at work and never comes back.
sub promote
{
    my ($primary, $standby) = @_;
    $primary->stop('immediate');
    $standby->promote;
}

# What is published from this moment on comes again by seek().
sub now
{
    my ($primary) = @_;
    return $primary->safe_psql('postgres',
        q{SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')});
}

sub seek
{
    my ($service, $name, $moment) = @_;
    $service->call('POST', '/v1/' . $service->subscription($name) . ':seek', { time => $moment });
}

1;
