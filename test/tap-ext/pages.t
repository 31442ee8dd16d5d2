# SPDX-License-Identifier: PostgreSQL
# The statements of the pages run as they stand there, from top to bottom, each page in a database
# of its own; and every page that a page points to is there, with the heading it names.
use strict;
use warnings;
use File::Basename qw(basename dirname);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $root = $ENV{INBOX_ROOT};
# These have tests of their own, which know what the statements need.
my %elsewhere = map { $_ => 1 } qw(README.md managed.md operations.md);

my $node = PostgreSQL::Test::Cluster->new('pages');
$node->init(extra => [ '--encoding=UTF8', '--no-locale' ]);
$node->append_conf('postgresql.conf', 'fsync = on');
$node->start;

my $has_python = $node->safe_psql('postgres', "SELECT count(*) FROM pg_available_extensions WHERE name = 'plpython3u'");
ok($has_python, 'there is PL/Python') if $ENV{CI};

sub run_statements
{
    my ($name, @blocks) = @_;
    $node->safe_psql('postgres', "CREATE DATABASE \"$name\"");
    $node->safe_psql($name, 'CREATE EXTENSION inbox');
    my ($ok, $stdout, $stderr) =
      $node->psql($name, join("\n", @blocks), on_error_stop => 1, extra_params => ['-q']);
    is($ok, 0, "$name: its statements run") or diag($stderr);
    return $stdout;
}

# As a heading is linked to: lower case, without punctuation, with hyphens for blanks.
sub anchors
{
    my ($text) = @_;
    $text =~ s/^```.*?^```//gms;
    return map { lc($_) =~ s/[^\w\s-]//gr =~ s/\s/-/gr } $text =~ /^#+ (.*)$/mg;
}

sub links_nowhere
{
    my ($path, $text) = @_;
    my @broken;
    while ($text =~ /\]\(([^)\s:]*?)(?:#([^)]*))?\)/g)
    {
        my ($file, $anchor) = ($1, $2);
        my $target = $file eq '' ? $path : dirname($path) . "/$file";
        push @broken, $file and next unless -e $target;
        next unless defined $anchor;
        push @broken, "$file#$anchor" unless grep { $_ eq $anchor } anchors(slurp_file($target));
    }
    return @broken;
}

foreach my $path (sort glob("$root/*.md $root/docs/*.md $root/examples/*.md $root/examples/*/*.md"))
{
    my $name = basename($path);
    my $text = slurp_file($path);
    my @blocks = grep { $has_python || !/plpython3u/ } $text =~ /^```sql\n(.*?)^```$/gms;
    is(join(' ', links_nowhere($path, $text)), '', "$name: its links lead somewhere");
    run_statements($name, @blocks) if @blocks && !$elsewhere{$name};
}
done_testing;
