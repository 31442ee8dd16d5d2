# SPDX-License-Identifier: PostgreSQL
# A throw-away PostgreSQL that is reached through a socket in its own folder only.
package Demo::Database;
use strict;
use warnings;
use POSIX qw(_exit);

# "bin" has the programs of the server, "dir" is an empty folder that only this user can read.
sub start
{
    my ($class, $bin, $dir) = @_;
    my $self = bless { bin => $bin, dir => $dir, owner => $$ }, $class;
    $self->run("$bin/initdb", '--no-sync', '--auth=trust', '--username=postgres',
        '--encoding=UTF8', '--no-locale', "--pgdata=$dir/data");
    $self->run("$bin/pg_ctl", '--wait', "--pgdata=$dir/data", "--log=$dir/postgresql.log",
        "--options=-c listen_addresses='' -c unix_socket_directories='$dir'", 'start');
    return $self;
}

# Runs a command silently; dies with its output when it fails.
sub run
{
    my ($self, @command) = @_;
    my $log = "$self->{dir}/command.log";
    my $pid = fork() // die "could not fork: $!\n";
    if ($pid == 0)
    {
        open(STDIN, '<', '/dev/null');
        open(STDOUT, '>', $log);
        open(STDERR, '>&', \*STDOUT);
        exec(@command) or _exit(127);
    }
    waitpid($pid, 0);
    return if $? == 0;
    open(my $fh, '<', $log);
    die "$command[0] failed:\n", <$fh>;
}

sub conninfo
{
    my ($self, $role) = @_;
    return "host=$self->{dir} dbname=postgres user=$role";
}

sub pid
{
    my ($self) = @_;
    open(my $file, '<', "$self->{dir}/data/postmaster.pid") or die "the database does not run\n";
    return <$file> + 0;
}

# Arguments of psql follow; returns the rows, each a reference to its fields.
sub query
{
    my ($self, @arguments) = @_;
    open(my $psql, '-|', "$self->{bin}/psql", '--no-psqlrc', '--quiet', '--no-align',
        '--tuples-only', '--field-separator=' . "\t", '--set=ON_ERROR_STOP=1',
        '--dbname', $self->conninfo('postgres'), @arguments)
      or die "could not run psql: $!\n";
    my @rows = map { chomp; [ split(/\t/, $_, -1) ] } <$psql>;
    close($psql) or die "psql failed, see above\n";
    return @rows;
}

# Arguments of psql follow; prints what it shows, as it shows it.
sub show
{
    my ($self, $role, @arguments) = @_;
    return system("$self->{bin}/psql", '--no-psqlrc', '--quiet', '--pset=footer=off',
        '--dbname', $self->conninfo($role), @arguments) == 0;
}

sub stop
{
    my ($self) = @_;
    return if $self->{stopped}++;
    $self->run("$self->{bin}/pg_ctl", '--wait', "--pgdata=$self->{dir}/data", '--mode=immediate',
        'stop');
}

sub DESTROY
{
    my ($self) = @_;
    local ($?, $!, $@);
    eval { $self->stop } if $self->{owner} == $$ && -e "$self->{dir}/data/postmaster.pid";
}

1;
