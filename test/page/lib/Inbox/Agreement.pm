# SPDX-License-Identifier: PostgreSQL
# Whether the ledger, inbox_status(), /metrics, Prometheus and the page say the same.
#
#   Inbox::Agreement::agree({ applied => 2000, …, dead => 10, … }, status => 'retrying|dead|…', url => …,
#       browser => …, prometheus => …);
package Inbox::Agreement;
use strict;
use warnings;
use Test::More;
use Inbox::StatusPage;
use Inbox::Wait;

# What messages became since the puller started, by verdict.
my @counted = qw(applied duplicate died conflict);
# What is in the database now, in the order of STATUS, by the names of metrics.
my %kept = (retrying => 'inbox_retrying_messages', dead => 'inbox_dead_letters',
    parked => 'inbox_parked_messages', conflicts => 'inbox_conflicts', expired => 'inbox_expired_messages');

# The columns of inbox_status() that agree() wants.
use constant STATUS => 'retrying, dead, parked, conflicts, expired';

sub metric
{
    my ($name) = @_;
    return $kept{$name} if $kept{$name};
    my $verdict = $name eq 'died' ? 'dead' : $name;
    return qq(sum(inbox_messages_total{verdict="$verdict"}));
}

# The same of /metrics itself.
sub scraped
{
    my ($metrics, $name) = @_;
    return $metrics->{ $kept{$name} } if $kept{$name};
    my $verdict = $name eq 'died' ? 'dead' : $name;
    return Inbox::StatusPage::sum($metrics, 'inbox_messages_total', qq(verdict="$verdict"));
}

# On the page.
sub shown
{
    my ($seen, $name) = @_;
    my $id = $name eq 'died' ? 'v-dead' : $kept{$name} ? "n-$name" : "v-$name";
    return $seen->{numbers}{$id} // 0;
}

# A subtest: every number is that of the ledger, which nothing changes any more; page and metrics may
# take their time.
sub agree
{
    my ($truth, %of) = @_;
    my @names = (@counted, sort keys %kept);
    subtest 'everything says the same, to the message' => sub {
        my %status;
        @status{ split /, /, STATUS } = split /\|/, $of{status};
        my %expected = map { $_ => $truth->{$_} } @names;
        is_deeply(\%status, { map { $_ => $truth->{$_} } keys %kept }, 'inbox_status() and the ledger');
        my ($page, $metrics);
        eval { wait_until('the page', sub { my $seen = $of{browser}->look;
            $page = { map { $_ => shown($seen, $_) } @names };
            !grep { $page->{$_} != $expected{$_} } @names }, 30, 0.5) };
        is_deeply($page, \%expected, 'the page and the ledger');
        eval { wait_until('/metrics', sub { my $samples = Inbox::StatusPage::metrics($of{url});
            $metrics = { map { $_ => scraped($samples, $_) } @names };
            !grep { ($metrics->{$_} // -1) != $expected{$_} } @names }, 30, 0.5) };
        is_deeply($metrics, \%expected, '/metrics and the ledger');
        is_deeply({ map { $_ => $of{prometheus}->settled(metric($_), $expected{$_}) } @names }, \%expected,
            'Prometheus and the ledger');
    };
}

1;
