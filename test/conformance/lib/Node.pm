# SPDX-License-Identifier: PostgreSQL
# Google's own Node.js packages, as test/conformance/node/package-lock.json pins them, installed
# into build/node from the registry that npm is set up for.
package Node;
use strict;
use warnings;
use File::Basename qw(dirname);
use File::Copy qw(copy);
use File::Path qw(make_path);

my $here = dirname(__FILE__) . '/../node';
my $build = dirname(__FILE__) . '/../../../build/node';

sub is_there
{
    return system('node --version >/dev/null 2>&1 && npm --version >/dev/null 2>&1') == 0;
}

sub slurp
{
    my ($name) = @_;
    open(my $fh, '<', $name) or return '';
    local $/;
    return <$fh> // '';
}

# Installs what the lock file of a folder names into another one, unless that is what is there. False
# when that failed; the log says why.
sub install
{
    my ($from, $to) = @_;
    ($from, $to) = ($here, $build) if !defined $from;
    my $lock = slurp("$from/package-lock.json");
    return 1 if slurp("$to/installed") eq $lock;
    make_path($to);
    copy("$from/$_", "$to/$_") or die "$_: $!\n" foreach 'package.json', 'package-lock.json';
    return 0
        if system("cd $to && npm ci --ignore-scripts --no-audit --no-fund >npm.log 2>&1") != 0;
    open(my $mark, '>', "$to/installed") or die "$to/installed: $!\n";
    print $mark $lock;
    return close($mark);
}

sub log { slurp(($_[0] // $build) . '/npm.log') }

# A program of test/conformance/node, put where it finds the packages.
sub program
{
    my ($name) = @_;
    copy("$here/$name", "$build/$name") or die "$name: $!\n";
    return "$build/$name";
}

1;
