#!/usr/bin/perl
# SPDX-License-Identifier: PostgreSQL
# Google's own Node.js clients work with this project's server. Their packages are installed into
# build/node, from the registry that npm is set up for.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../pubsub/t/lib";
use PubSub;
use File::Copy qw(copy);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use Test::More;

plan(skip_all => 'Node.js is not on this machine (the Debian packages nodejs and npm)')
    if system('node --version >/dev/null 2>&1 && npm --version >/dev/null 2>&1') != 0;

my $here  = "$FindBin::RealBin/node";
my $build = "$FindBin::RealBin/../../build/node";

# Installs what the lock file names, unless that is what is there.
sub install
{
    my $lock = PubSub::slurp("$here/package-lock.json");
    return 1 if PubSub::slurp("$build/installed") eq $lock;
    make_path($build);
    copy("$here/$_", "$build/$_") or die "$_: $!\n" foreach 'package.json', 'package-lock.json';
    return 0
        if system("cd $build && npm ci --ignore-scripts --no-audit --no-fund >npm.log 2>&1") != 0;
    open(my $mark, '>', "$build/installed") or die "$build/installed: $!\n";
    print $mark $lock;
    return close($mark);
}

if (!install())
{
    diag(PubSub::slurp("$build/npm.log"));
    BAIL_OUT('the packages could not be installed');
}
copy("$here/clients.js", "$build/clients.js") or die "clients.js: $!\n";

my $dir = tempdir(CLEANUP => 1);
open(my $tokens, '>', "$dir/tokens") or die "$dir/tokens: $!\n";
print $tokens "a-token\n";
close($tokens);
my $server = PubSub->start('--token-file', "$dir/tokens");
my @lines  = `node $build/clients.js @{[ $server->url ]} a-token 2>&1`;
my $status = $?;

# The test prints TAP of its own: its lines are told as they are.
my $count = 0;
foreach my $line (@lines)
{
    chomp $line;
    if ($line =~ /^(ok|not ok) \d+ - (.*)/)
    {
        ok($1 eq 'ok', $2);
        $count++;
    }
    elsif ($line !~ /^1\.\.\d+$/)
    {
        diag($line);
    }
}
is($status,    0,           'the program succeeds');
is($lines[-1], "1..$count", 'and came to its end');

done_testing();
