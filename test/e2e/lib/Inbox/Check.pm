# SPDX-License-Identifier: PostgreSQL
# inbox-puller --check, run to its end.
#
#   my $check = Inbox::Check->run(dbname => …, subscription => …, options => […]);
#   $check->{status}; $check->fact('handler')->{ok}; $check->lines;
package Inbox::Check;
use strict;
use warnings;
use IPC::Run ();
use JSON::PP;

my $json = JSON::PP->new->utf8;

# A machine without credentials of its own, and nothing set that would reach the options.
sub environment
{
    my (%given) = @_;
    my %clean = map { $_ => $ENV{$_} } grep { !/^(?:INBOX_(?!ROOT|VARIANT)|PUBSUB_|GOOGLE_|GCE_|CLOUDSDK_)/ }
      keys %ENV;
    my %all = (%clean, HOME => '/nonexistent', NO_GCE_CHECK => 'true', %given);
    return map { defined $all{$_} ? ($_ => $all{$_}) : () } keys %all;
}

# Once for people and once for machines: both have to say the same.
sub run
{
    my ($class, %args) = @_;
    my @command = ("$ENV{INBOX_ROOT}/puller/inbox-puller", '--check',
        map({ defined $args{$_} ? ("--$_", $args{$_}) : () }
            qw(dbname subscription handler source endpoint token-file)),
        @{ $args{options} // [] });
    my $self = bless { command => \@command }, $class;
    local %ENV = environment(%{ $args{env} // {} });
    IPC::Run::run(\@command, '>', \$self->{out}, '2>', \$self->{err}, IPC::Run::timeout(60));
    $self->{status} = $? >> 8;
    return $self if $args{text_only};
    IPC::Run::run([ @command, '--json' ], '>', \my $document, '2>', \$self->{err},
        IPC::Run::timeout(60));
    $self->{json_status} = $? >> 8;
    $self->{document} = $json->decode($document);
    return $self;
}

sub text
{
    my ($self) = @_;
    my $text = $self->{out};
    utf8::decode($text);
    return $text;
}

# The lines that state a fact: mark, name, and what follows.
sub lines
{
    my ($self) = @_;
    return map { /^  (\S) (\S(?:.{0,18}\S)?) +(\S.*)$/ ? { mark => $1, name => $2, text => $3 } : () }
      split /\n/, $self->text;
}

# The facts of that name, of the document.
sub facts
{
    my ($self, $name) = @_;
    return grep { $_->{name} eq $name } @{ $self->{document}{facts} };
}

sub fact
{
    my ($self, $name) = @_;
    my ($fact) = $self->facts($name);
    return $fact // die "no fact $name in\n$self->{out}\n$self->{err}\n";
}

# "value -> remedy" of a fact that is a problem.
sub problem
{
    my ($self, $name) = @_;
    my ($fact) = grep { defined $_->{ok} && !$_->{ok} } $self->facts($name);
    return defined $fact ? "$fact->{value} -> " . ($fact->{remedy} // '') : undef;
}

# The names of all problems, in their order.
sub problems
{
    my ($self) = @_;
    return map { $_->{name} } grep { defined $_->{ok} && !$_->{ok} } @{ $self->{document}{facts} };
}

1;
