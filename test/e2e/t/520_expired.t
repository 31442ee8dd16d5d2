# SPDX-License-Identifier: PostgreSQL
# Pullers forget old keys beside their work; what comes after that is kept as expired, and not
# applied again.
use strict;
use warnings;
use POSIX qw(strftime);
use Test::More;
use Inbox::Ledger;
use Inbox::Scene;
use Inbox::Wait;

my $scene = Inbox::Scene->new('own', 'expired', ms => 0,
    fields => { retainAckedMessages => JSON::PP::true });
my $source = $scene->{service}->subscription($scene->{name});
my $before = strftime('%Y-%m-%dT%H:%M:%SZ', gmtime(time - 60));
my @pullers = map { $scene->puller(options => ['--purge-every=300ms']) } 1 .. 2;

sub payments { map { Inbox::Ledger::payment($_[0] . $_, 1 + $_ % 50, 1) } 1 .. $_[1] }

sub configure
{
    my ($window) = @_;
    $scene->{node}->safe_psql('postgres', "SELECT inbox_configure('$source', dedup_window => '$window', "
          . "force => true, reason => 'a test')");
}

sub expired { "SELECT count(*) FROM inbox_failure WHERE status = 'expired'" }

$scene->publish(payments('old', 50));
$scene->wait_for('SELECT count(*) FROM effect', 50, 60);
is($scene->count('SELECT count(*) FROM inbox_claim'), 50, 'without a window keys are kept');

configure('1 second');
$scene->wait_for('SELECT count(*) FROM inbox_claim', 0, 60);
wait_until('a purge to end', sub { map { $_->events('purge_done') } @pullers }, 30);
is(scalar(map { $_->events('purge_failed') } @pullers), 0, 'and none has failed');

# The window of life is not to be that short.
configure('45 days');
$scene->{service}->call('POST', "/v1/$source:seek", { time => $before });
$scene->publish(payments('new', 50));
$scene->wait_for('SELECT count(*) FROM effect', 100, 60);
$scene->wait_for(expired(), 50, 60);
is($scene->count("SELECT count(*) FROM (SELECT FROM effect GROUP BY key HAVING count(*) > 1) t"), 0,
    'none is applied twice');
is($scene->count("SELECT count(*) FROM inbox_failure WHERE status = 'expired' AND key LIKE 'old%' "
      . 'AND payload IS NOT NULL'), 50, 'what came too late is kept');
is($pullers[0]->verdicts('expired') + $pullers[1]->verdicts('expired'), 50, 'and the puller says so');
is($scene->count("SELECT expired FROM inbox_status() WHERE source = '$source'"), 50, 'and inbox_status');
$_->stop foreach @pullers;
is($scene->{service}->stats($scene->{name})->{leased} + $scene->{service}->pull_now($scene->{name}), 0,
    'all are acknowledged');
done_testing;
