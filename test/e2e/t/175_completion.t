# SPDX-License-Identifier: PostgreSQL
# Bash and zsh complete options, and values where there are few, as `make install` gives it to them.
use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use Inbox::File;

my $root = PostgreSQL::Test::Utils::tempdir();
system_or_bail('make', '-s', '-C', "$ENV{INBOX_ROOT}/puller", 'install', "DESTDIR=$root");
chdir($root) or die;
Inbox::File::write_file("$root/my.ini", '');
mkdir("$root/my.d") or die;

# What bash would offer after these words.
sub bash
{
    my @words = @_;
    my ($out, $err) = run_command([ 'bash', '-c', <<'SH', $root, @words ]);
. "$0/usr/local/share/bash-completion/completions/inbox-puller"
complete -p inbox-puller >&2
COMP_WORDS=(inbox-puller "$@") COMP_CWORD=$#
_inbox_puller
printf '%s ' "${COMPREPLY[@]}"
SH
    like($err, qr/^complete -F _inbox_puller inbox-puller$/, 'bash knows of it');
    return $out =~ s/ +$//r;
}

is(bash('--db-g'), '--db-grace', 'a name');
is(bash('--take-over', '--log-f'), '--log-format', 'a name after another one');
is(bash('--no-ta'), '--no-take-over', 'a name that is denied');
is(bash('--log-level', ''), 'debug info warning error', 'the values of an option');
is(bash('--log-level', 'w'), 'warning', 'the beginning of one');
is(bash('--log-level', '=', 'w'), 'warning', 'behind a =');
is(bash('--log-level', '='), 'debug info warning error', 'right behind it');
is(bash('--subscription', 'x'), '', 'nothing where anything may stand');
is(join(' ', sort split(' ', bash('--config', 'my'))), 'my.d my.ini', 'files');
is(bash('--help', '=', ''), 'text ini man bash zsh', 'a value that may be left out');
is(bash('--help', '--vers'), '--version', 'and is');
my ($help) = run_command([ "$root/usr/local/bin/inbox-puller", '--help' ]);
my @flags = $help =~ /^  (--[\w-]+)(?=$|=|\[|,)/mg;
cmp_ok(scalar(@flags), '>', 30, 'there are options');
is_deeply([ sort grep { !/^--no-/ } split(' ', bash('--')) ], [ sort @flags ], 'each is offered');

SKIP: {
    skip 'there is no zsh', 1 if system('command -v zsh >/dev/null 2>&1') != 0;
    # A zsh in a terminal of its own, which is told to complete when it has said that it is ready.
    my ($out) = run_command([ 'timeout', '120', 'zsh', '-f', '-c', <<'ZSH', $root ]);
zmodload zsh/zpty
zpty shell zsh -f -i
type() { zpty -w -n shell $1 }
heard() { local said; zpty -r shell said "*$1*"; print -r -- $said }
type "PS1=; fpath=($0/usr/local/share/zsh/site-functions \$fpath); autoload -U compinit; compinit -u -D; print re\"\"ady"$'\n'
heard ready
type $'print -r -- inbox-puller; inbox-puller() { print -r -- g"ot[$*]" }\n'
type $'inbox-puller --log-le\twa\t--db-gr\t3s\n'
heard 'got\[*\]'
zpty -d shell
ZSH
    like($out, qr/got\[--log-level=warning --db-grace=3s\]/, 'zsh completes a name, a value and another name')
      or diag($out);
}
done_testing;
