#!/usr/bin/perl
# SPDX-License-Identifier: PostgreSQL
# Every acknowledgement is verified in PostgreSQL, on the primary and on a standby.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PubSub;
use if $> != 0, 'PostgreSQL::Test::Cluster';
use Test::More;

plan(skip_all => 'PostgreSQL refuses to run as root') if $> == 0;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1, extra => [ '--encoding=UTF8', '--no-locale' ]);
$primary->append_conf('postgresql.conf', 'autovacuum = off');
$primary->start;
$primary->safe_psql(
    'postgres', q{
	CREATE TABLE inbox_source (id int PRIMARY KEY, name text);
	CREATE TABLE inbox_claim (source_id int, key text COLLATE "C", PRIMARY KEY (source_id, key));
	CREATE TABLE inbox_failure (message_id text, status text);
	INSERT INTO inbox_source VALUES (1, 'default'); });
$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;

my $server = PubSub->start('--lookup', $primary->connstr('postgres'),
    '--lookup-standby', $standby->connstr('postgres'));
$server->topic('orders');
$server->subscription('sub', 'orders');

my $number = 0;

sub claim
{
    $primary->safe_psql('postgres',
        "INSERT INTO inbox_claim SELECT 1, k FROM unnest('{$_[0]}'::text[]) k");
}

# Delivers messages with these keys and acknowledges them; -KEY is one without the attribute.
sub acknowledge
{
    $server->publish('orders',
        map { { data => 'x', /^-/ ? () : (attributes => { idempotency_key => $_ }) } } @_);
    my @received = $server->pull('sub', 100);
    $server->ack('sub', @received);
    $number += @received;
    return $received[0]{message}{messageId};
}

# The counts once both sides have looked everything up.
sub lookup
{
    my ($side) = @_;
    return PubSub::wait_for(
        "the lookups on the $side",
        sub {
            my $counts = $server->stats->{lookup}{$side};
            return $counts->{lookedUp} == $number ? $counts : undef;
        });
}

claim('a,b');
$primary->safe_psql('postgres', q{INSERT INTO inbox_claim VALUES (1, 'with "quotes" and \')});
acknowledge('a', 'b');
is(lookup('primary')->{lost}, 0, 'what is claimed is found on the primary');
is(lookup('standby')->{lost}, 0, 'and on the standby');
acknowledge('with "quotes" and \\');
is(lookup('primary')->{lost}, 0, 'whatever its characters are');

acknowledge('never');
is(lookup('primary')->{lost}, 1, 'what is not there is lost');
is(lookup('standby')->{lost}, 1, 'on the standby too');
like($server->output, qr/^LOST: key never \(message \d+ of projects\/p\/subscriptions\/sub\)/m,
    'and reported');
my @lost = $server->history('lookup');
is( join(' ', map { "$_->{outcome} $_->{database} $_->{key}" } @lost),
    'lost primary never lost standby never',
    'in the history too');

# A message without a key may be kept among the failures.
my $sent = acknowledge('-');
is(lookup('standby')->{lost}, 2, 'a message without a key, not kept');
$server->publish('orders', { data => 'x', attributes => { idempotency_key => "nul\x{0}" } });
my @received = $server->pull('sub', 1);
$primary->safe_psql('postgres',
    "INSERT INTO inbox_failure VALUES ('$received[0]{message}{messageId}', 'dead')");
$server->ack('sub', @received);
$number++;
is(lookup('standby')->{lost}, 2, 'one kept as a failure is not lost');

# The standby has to have replayed what the primary had: it is not asked earlier.
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
claim('late');
acknowledge('late');
is(lookup('primary')->{lost},                  2, 'on the primary it is there');
is($server->stats->{lookup}{standby}{pending}, 1, 'the standby is not asked yet');
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
is(lookup('standby')->{lost}, 2, 'and has it once it has replayed');

# A primary that is away is waited for, and has to have it when it is back.
claim('before the crash');
$primary->stop('immediate');
acknowledge('before the crash', 'lost in the crash');
PubSub::wait_for('the lookups to wait', sub { $server->stats->{lookup}{primary}{pending} == 2 });
$primary->start;
is(lookup('primary')->{lost}, 3, 'looked up when the primary is back');

# A standby that is promoted lacks what it never got.
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
$primary->safe_psql('postgres', q{ALTER SYSTEM SET max_wal_senders = 0});
$standby->stop;
claim('not replicated');
acknowledge('not replicated');
is(lookup('primary')->{lost}, 3, 'committed on the primary');
$primary->stop('immediate');
$standby->start;
$standby->promote;
is(lookup('standby')->{lost}, 4, 'but not on the standby that takes over');
is( join('; ',
        map  { $_->{key} =~ s/\d+//r }
        grep { $_->{database} eq 'standby' } $server->history('lookup')),
    'never; mid:; lost in the crash; not replicated',
    'each is named');
ok($server->stop, 'the server stops');

# Another query, with the key of another attribute.
my $other = PubSub->start('--lookup', $standby->connstr('postgres'),
    '--lookup-key', 'order',
    '--lookup-sql', q{SELECT k FROM unnest($1::text[]) k WHERE k LIKE 'x%'});
$other->topic('orders');
$other->subscription('sub', 'orders');
$other->publish('orders', map { { data => 'd', attributes => { order => $_ } } } 'x1', 'y1');
$other->ack('sub', $other->pull('sub', 10));
my $counts = PubSub::wait_for(
    'the lookups',
    sub {
        my $found = $other->stats->{lookup}{primary};
        return $found->{lookedUp} == 2 ? $found : undef;
    });
is($counts->{lost}, 1, 'with a query of one\'s own');

done_testing();
