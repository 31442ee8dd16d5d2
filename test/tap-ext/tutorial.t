# SPDX-License-Identifier: PostgreSQL
# The tutorial as it stands there: its commands in one shell, and what it says that they print.
use strict;
use warnings;
use File::Path qw(make_path);
use IO::Socket::INET;
use PostgreSQL::Test::Utils;
use Test::More;

my $root = $ENV{INBOX_ROOT};
my $page = slurp_file("$root/docs/tutorial.md");
my $port = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1)->sockport;
ok($page =~ s/127\.0\.0\.1:8085/127.0.0.1:$port/g, 'the page has commands');

# Each block's output goes to a file of its own; an error ends all, and the servers with it.
my $out = PostgreSQL::Test::Utils::tempdir();
my @expected;
my $script = "set -eu\ntrap 'kill \$(jobs -p) 2>/dev/null; pg_ctl -D \"\$dir/data\" -m immediate stop 2>/dev/null' EXIT\n";
while ($page =~ /^```(sh|text)\n(.*?)^```$/gms)
{
    my ($kind, $text) = ($1, $2);
    if ($kind eq 'sh')
    {
        push @expected, '';
        $script .= "exec >$out/$#expected\n$text";
    }
    else
    {
        $expected[-1] = $text;
    }
}
delete $ENV{$_} foreach grep { /^(?:PG(?!_REGRESS)|INBOX_(?!ROOT))/ } keys %ENV;
append_to_file("$out/script", "$script\ntrap - EXIT\n");
chdir($root) or die "could not change to $root: $!\n";
is(system('timeout', '300', 'bash', "$out/script"), 0, 'they run');
foreach my $block (0 .. $#expected)
{
    is(slurp_file("$out/$block"), $expected[$block], 'block ' . ($block + 1) . ' prints what it should');
}
done_testing;
