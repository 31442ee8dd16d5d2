#!/usr/bin/perl
# SPDX-License-Identifier: PostgreSQL
# Google's own Node.js clients work with this project's server. Their packages are installed into
# build/node, from the registry that npm is set up for.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../pubsub/t/lib";
use PubSub;
use lib "$FindBin::RealBin/lib";
use Node;
use File::Temp qw(tempdir);
use Test::More;

plan(skip_all => 'Node.js is not on this machine (the Debian packages nodejs and npm)')
    if !Node::is_there();
if (!Node::install())
{
    diag(Node::log());
    BAIL_OUT('the packages could not be installed');
}
my $program = Node::program('clients.js');

my $dir = tempdir(CLEANUP => 1);
open(my $tokens, '>', "$dir/tokens") or die "$dir/tokens: $!\n";
print $tokens "a-token\n";
close($tokens);
my $server = PubSub->start('--token-file', "$dir/tokens");
my @lines  = `node $program @{[ $server->url ]} a-token 2>&1`;
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
