# SPDX-License-Identifier: PostgreSQL
# A page of docs/ whose commands run as they stand there, one block at a time, so that a test can look in
# between. "gcloud" speaks to the service of the test, and knows what the pages use of it.
#
#   my $page = Inbox::Page->new('restore.md', service => $service, node => $node, env => {…});
#   $page->run('the first step', 0); $page->background;
package Inbox::Page;
use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use Inbox::Check;

my $gcloud = <<'SH';
#!/bin/sh
set -eu
test "$1 $2" = "pubsub subscriptions"
verb=$3 name=$4
shift 4
call() { curl --fail --silent --show-error --output "$0.out" --request "$1" \
	--header 'Content-Type: application/json' --data "$2" "http://$PUBSUB_EMULATOR_HOST/v1/$name"; }
case "$verb $*" in
	"update --retain-acked-messages --message-retention-duration=31d")
		call PATCH '{"subscription": {"retainAckedMessages": true, "messageRetentionDuration": "2678400s"},
			"updateMask": "retainAckedMessages,messageRetentionDuration"}' ;;
	"create --topic="*" --enable-message-ordering")
		call PUT "{\"topic\": \"${1#--topic=}\", \"enableMessageOrdering\": true}" ;;
	"create --topic="*) call PUT "{\"topic\": \"${1#--topic=}\"}" ;;
	"delete ") call DELETE '' ;;
	*) echo "gcloud: $verb $*?" >&2; exit 1 ;;
esac
SH

sub new
{
    my ($class, $name, %args) = @_;
    my $dir = PostgreSQL::Test::Utils::tempdir();
    my $node = $args{node};
    my $self = bless { dir => $dir,
        blocks => [ slurp_file("$ENV{INBOX_ROOT}/docs/$name") =~ /^```sh\n(.*?)^```$/gms ] }, $class;
    mkdir "$dir/bin";
    append_to_file("$dir/bin/gcloud", $gcloud);
    chmod 0755, "$dir/bin/gcloud";
    $self->{env} = { Inbox::Check::environment(PATH => "$dir/bin:$ENV{INBOX_ROOT}/puller:$ENV{PATH}",
            PUBSUB_EMULATOR_HOST => $args{service}->host, PGHOST => $node->host,
            PGPORT => $node->port, PGDATABASE => 'postgres',
            %{ $args{env} // {} }) };
    return $self;
}

# A test: the block of this number, from 0, ends well. Returns its output, which goes to a file, as
# what it leaves behind keeps its output open.
sub run
{
    my ($self, $name, $number) = @_;
    local %ENV = %{ $self->{env} };
    my $output = "$self->{dir}/output$number";
    my $status = system('timeout', '120', 'bash', '-uc', "set -e; cd $self->{dir}; exec >$output 2>&1\n"
          . "$self->{blocks}[$number]\necho \${!-} >$self->{dir}/started");
    is($status, 0, $name) or diag(slurp_file($output));
    return slurp_file($output);
}

# The process that the last block has left in the background.
sub background
{
    my ($self) = @_;
    return slurp_file("$self->{dir}/started") + 0;
}

1;
