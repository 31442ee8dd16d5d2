# SPDX-License-Identifier: PostgreSQL
# examples/node-consumer, with Google's client and Google's emulator, killed while it works.
use strict;
use warnings;
use File::Copy qw(copy);
use FindBin;
use lib "$FindBin::RealBin/../lib", "$FindBin::RealBin/../../conformance/lib",
    "$FindBin::RealBin/../../pubsub/t/lib";
use Emulator;
use Killed;
use Node;
use Test::More;

plan(skip_all => 'Node.js is not on this machine (the Debian packages nodejs and npm)')
    if !Node::is_there();
plan(skip_all => Emulator::remedy()) if !Inbox::Emulator::find();

my $example = "$ENV{INBOX_ROOT}/examples/node-consumer";
my $build = "$ENV{INBOX_ROOT}/build/node-consumer";
Node::install($example, $build) or BAIL_OUT("the packages could not be installed:\n" . Node::log($build));
copy("$example/consumer.js", "$build/consumer.js") or die "consumer.js: $!\n";
Killed::test('google', 'node', 'node', "$build/consumer.js");
done_testing;
