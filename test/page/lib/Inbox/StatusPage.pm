# SPDX-License-Identifier: PostgreSQL
# What a puller serves with --listen: asked over HTTP, and looked at in a headless Chromium.
package Inbox::StatusPage;
use strict;
use warnings;
use File::Copy qw(copy);
use File::Path qw(make_path);
use HTTP::Tiny;
use IPC::Open2;
use JSON::PP;
use Inbox::Wait;

my $json = JSON::PP->new->utf8;

# Where a puller listens; it was started with --listen 127.0.0.1:0.
sub url
{
    my ($puller) = @_;
    return 'http://' . $puller->wait_event('listening')->{address};
}

sub get
{
    my ($url) = @_;
    return HTTP::Tiny->new(timeout => 10)->get($url);
}

sub status
{
    my ($url) = @_;
    my $answer = get("$url/status.json");
    die "$url/status.json: $answer->{status} $answer->{content}\n" unless $answer->{success};
    return $json->decode($answer->{content});
}

# The samples of /metrics: name{labels} => value.
sub metrics
{
    my ($url) = @_;
    my $answer = get("$url/metrics");
    die "$url/metrics: $answer->{status}\n" unless $answer->{success};
    return { map { /^(\S+?(?:\{.*\})?) (\S+)$/ ? ($1, $2) : () } split /\n/, $answer->{content} };
}

# The sum of all samples of a name whose labels match.
sub sum
{
    my ($metrics, $name, $labels) = @_;
    my $sum = 0;
    $sum += $metrics->{$_}
      foreach grep { /^\Q$name\E(?:\{|$)/ && (!defined $labels || /$labels/) } keys %$metrics;
    return $sum;
}

sub sum_of
{
    my ($numbers) = @_;
    my $sum = 0;
    $sum += $_ foreach @$numbers;
    return $sum;
}

# ---- the browser ----------------------------------------------------------------------------

sub missing
{
    return 'Chromium is not on this machine (the Debian package chromium)'
      if !-x ($ENV{CHROMIUM} // '/usr/bin/chromium');
    return 'Node.js is not on this machine (the Debian packages nodejs and npm)'
      if system('node --version >/dev/null 2>&1 && npm --version >/dev/null 2>&1') != 0;
    return undef;
}

sub slurp
{
    my ($path) = @_;
    open(my $fh, '<', $path) or return '';
    local $/;
    return <$fh> // '';
}

# Installs what the lock file names into build/page, unless that is what is there.
sub install
{
    my $here = "$ENV{INBOX_ROOT}/test/page/browser";
    my $build = "$ENV{INBOX_ROOT}/build/page";
    make_path($build);
    copy("$here/$_", "$build/$_") or die "$_: $!\n"
      foreach qw(package.json package-lock.json page.js);
    my $lock = slurp("$here/package-lock.json");
    return $build if slurp("$build/installed") eq $lock;
    system("cd $build && npm ci --ignore-scripts --no-audit --no-fund >npm.log 2>&1") == 0
      or die "the packages could not be installed:\n" . slurp("$build/npm.log");
    open(my $mark, '>', "$build/installed") or die "$build/installed: $!\n";
    print $mark $lock;
    close($mark);
    return $build;
}

# Screenshots go to build/out/page/shots.
sub browse
{
    my ($class) = @_;
    my $build = install();
    my $shots = "$ENV{INBOX_ROOT}/build/out/page/shots";
    make_path($shots);
    my $self = bless { shots => $shots }, $class;
    $self->{pid} = open2($self->{out}, $self->{in}, 'node', "$build/page.js", $shots);
    return $self;
}

sub command
{
    my ($self, $line) = @_;
    print { $self->{in} } "$line\n";
    my $answer = readline($self->{out}) // die "the browser has ended\n";
    my $decoded = $json->decode($answer);
    die "$line: $decoded->{failed}\n" if defined $decoded->{failed};
    return $decoded;
}

sub open_page { $_[0]->command("open $_[1]/") }
sub look      { $_[0]->command('read') }
sub shoot     { $_[0]->command("shoot $_[1]") }
sub point     { @{ $_[0]->command("point $_[1] $_[2]")->{lines} } }

# Looks until the condition likes what the page shows; returns that.
sub wait_look
{
    my ($self, $what, $condition, $seconds) = @_;
    my $seen;
    eval {
        wait_until($what, sub { $seen = $self->look; $condition->($seen) }, $seconds // 30, 0.25);
    } or die $@ . 'the page shows: ' . JSON::PP->new->canonical->encode($seen // {}) . "\n";
    return $seen;
}

sub DESTROY
{
    my ($self) = @_;
    local ($?, $!, $@);
    close($self->{in});
    kill('TERM', $self->{pid});
    waitpid($self->{pid}, 0);
}

1;
