# SPDX-License-Identifier: PostgreSQL
# The consumer in Go, as docs/consumers.md has it, compiled with Debian's compiler and driver, and killed
# while it works.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use Killed;
use PostgreSQL::Test::Utils;
use Test::More;

my $driver = '/usr/share/gocode/src/github.com/lib/pq';
plan(skip_all => 'Go is not on this machine (the Debian packages golang-go and golang-github-lib-pq-dev)')
    if system('go version >/dev/null 2>&1') != 0 || !-d $driver;

my $dir = PostgreSQL::Test::Utils::tempdir();
my ($program) = slurp_file("$ENV{INBOX_ROOT}/docs/consumers.md") =~ /^```go\n(.*?)^```$/ms;
append_to_file("$dir/main.go", $program);
local @ENV{qw(GO111MODULE GOPATH GOCACHE GOFLAGS)} = ('off', '/usr/share/gocode', "$dir/cache", '');
is(qx{cd $dir && gofmt -l . 2>&1}, '', 'it is written as gofmt does');
is(qx{cd $dir && go vet main.go 2>&1 && go build -o consumer main.go 2>&1}, '', 'it compiles');
Killed::test('own', 'golang', "$dir/consumer");
done_testing;
