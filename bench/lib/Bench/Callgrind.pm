# SPDX-License-Identifier: PostgreSQL
# Programs under callgrind.
#
#   my $callgrind = Bench::Callgrind->new($folder);
#   my @instructions = $callgrind->totals('function', 'program', 'argument', \"its input");
package Bench::Callgrind;
use strict;
use warnings;
use POSIX qw(_exit);

# Libraries choose their code by the processor; without these the choice is the same everywhere.
my %plain = (
    GLIBC_TUNABLES => 'glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-ERMS,-FSRM',
    OPENSSL_ia32cap => '~0x1000000000000000:0',
);

sub new
{
    my ($class, $folder) = @_;
    return bless { folder => $folder, runs => 0 }, $class;
}

# Runs a command, its output into the log; a reference to the path of its input may be the last
# argument. Dies when it fails.
sub quietly
{
    my ($self, @command) = @_;
    my $input = ref $command[-1] ? ${ pop @command } : '/dev/null';
    my $log = "$self->{folder}/log";
    my $pid = fork() // die "could not fork: $!\n";
    if ($pid == 0)
    {
        @ENV{ keys %plain } = values %plain;
        open(STDIN, '<', $input);
        open(STDOUT, '>>', $log);
        open(STDERR, '>&', \*STDOUT);
        exec(@command) or _exit(127);
    }
    waitpid($pid, 0);
    die "$command[0] failed, see $log\n" if $? != 0;
}

# The instructions of each call of a function, with all it calls, in the order of the calls.
sub totals
{
    my ($self, $function, @command) = @_;
    my $prefix = "$self->{folder}/callgrind-" . ++$self->{runs};
    $self->quietly('valgrind', '--quiet', '--tool=callgrind', "--callgrind-out-file=$prefix",
        "--toggle-collect=$function", "--dump-after=$function", @command);
    my @dumps = sort { ($a =~ /(\d+)$/)[0] <=> ($b =~ /(\d+)$/)[0] } glob("$prefix.*");
    return map { total($_) } @dumps;
}

sub total
{
    my ($path) = @_;
    open(my $dump, '<', $path) or die "could not read $path: $!\n";
    my ($total) = map { /^(?:summary|totals): (\d+)/ ? $1 : () } <$dump>;
    return $total // die "$path has no total\n";
}

1;
