# SPDX-License-Identifier: PostgreSQL
# Events, metrics and alerts are those that the documents list, and the dashboard asks for metrics
# that there are.
use strict;
use warnings;
use JSON::PP;
use Test::More;

my $root = $ENV{INBOX_ROOT};

sub slurp
{
    my ($path) = @_;
    open(my $fh, '<', $path) or die "could not read $path: $!\n";
    local $/;
    return scalar <$fh>;
}

# The names in the first column of a document's tables.
sub listed
{
    my ($document) = @_;
    return map { /`(\w+)`/g } grep { defined } map { /^\| (`.*?) \|/ ? $1 : undef } split /\n/,
      slurp("$root/docs/$document");
}

sub same
{
    my ($got, $expected, $name) = @_;
    my %got = map { $_ => 1 } @$got;
    my %expected = map { $_ => 1 } @$expected;
    is_deeply([ sort keys %got ], [ sort keys %expected ], $name);
}

# Calls that write an event, which is the first literal in them; failure_log() may have a choice.
subtest 'events' => sub {
    my @events;
    foreach my $file (glob("$root/puller/*.c"))
    {
        my $source = slurp($file) =~ s{/\*.*?\*/}{}gsr;
        push @events, $1 while $source =~ /\b(?:log_event|log_fields|write_event|log_line_compose|log_failure|pause_pulls)\((?:(?!\bevent\b)[^;"])*"([a-z_]+)"/g;
        while ($source =~ /\bfailure_log\(([^;]*?)&\(struct/g)
        {
            my $arguments = $1;
            push @events, $1 while $arguments =~ /"([a-z_]+)"/g;
        }
    }
    cmp_ok(scalar @events, '>', 40, 'there are events');
    same([ grep { !/^inbox_|^googclient/ } listed('logs.md') ], \@events,
        'docs/logs.md lists those of the source');
};

my @metrics = listed('metrics.md');

subtest 'metrics' => sub {
    my @source;
    foreach my $file (qw(scrape.c exposition.c))
    {
        my $source = slurp("$root/puller/$file");
        push @source, $1 while $source =~ /"((?:inbox|process)_[a-z_]+)"/g;
    }
    same([ grep { /^(?:inbox|process)_/ } @metrics ], \@source,
        'docs/metrics.md lists those of the source');
};

sub asked
{
    my ($text) = @_;
    return map { s/_(?:bucket|sum|count)$//r } $text =~ /\b((?:inbox|process)_[a-z_]+)\b(?!\.)/g;
}

sub unknown
{
    my %known = map { $_ => 1 } @metrics;
    return grep { !$known{$_} } @_;
}

subtest 'alerts' => sub {
    my $rules = slurp("$root/deploy/prometheus/inbox.rules.yml");
    my @alerts = $rules =~ /^ +- alert: (\w+)/mg;
    my @entries = slurp("$root/docs/runbook.md") =~ /^## (\w+)/mg;
    same(\@entries, \@alerts, 'each has an entry in docs/runbook.md');
    same([ $rules =~ /runbook\.md#(\w+)/g ], [ map { lc } @alerts ], 'and points to it');
    my @rung = map { /alertname: (\w+)\n +exp_alerts:/g } slurp("$root/deploy/prometheus/inbox.test.yml");
    same(\@rung, \@alerts, 'each rings in a test of deploy/prometheus/inbox.test.yml');
    is_deeply([ unknown(asked($rules =~ s/#.*//gr)) ], [], 'they ask for metrics that there are');
    foreach my $entry (split /^## /m, slurp("$root/docs/runbook.md"))
    {
        next unless $entry =~ /^(Inbox\w+)/;
        like($entry, qr/\*\*Means\*\*.*\*\*Look at\*\*.*\*\*Do\*\*/s,
            "$1: what it means, what to look at, what to do");
    }
    my %levels = map { $_ => 1 } listed('logs.md');
    is_deeply([ grep { !$levels{$_} } slurp("$root/docs/runbook.md") =~ /event=(\w+)/g ], [],
        'the runbook names events that there are');
};

subtest 'dashboard' => sub {
    my $dashboard = JSON::PP->new->utf8->decode(slurp("$root/deploy/grafana/inbox.json"));
    my @expressions = map { map { $_->{expr} } @{ $_->{targets} } } @{ $dashboard->{panels} };
    cmp_ok(scalar @expressions, '>', 20, 'has panels');
    is_deeply([ unknown(map { asked($_) } @expressions) ], [],
        'which ask for metrics that there are');
    my %places;
    $places{"$_->{gridPos}{x} $_->{gridPos}{y}"}++ foreach @{ $dashboard->{panels} };
    is_deeply([ grep { $places{$_} > 1 } keys %places ], [], 'each in a place of its own');
};

SKIP:
{
    skip 'promtool is not on this machine (the Debian package prometheus)', 2
      if system('promtool --version >/dev/null 2>&1') != 0;
    my $out = `cd $root/deploy/prometheus && promtool check config prometheus.yml 2>&1`;
    is($?, 0, 'promtool: rules and configuration are valid') or diag($out);
    $out = `cd $root/deploy/prometheus && promtool test rules inbox.test.yml 2>&1`;
    is($?, 0, 'promtool: the alerts ring when they should') or diag($out);
}
done_testing;
