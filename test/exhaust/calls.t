# SPDX-License-Identifier: PostgreSQL
# One call of libpq or libcurl fails, each function's first, second… one: the puller goes on, or ends
# with a message; nothing is acknowledged that is not committed, and nothing is lost or done twice.
# EXHAUST_CALLS says how many of each function, all of them unless given.
use strict;
use warnings;
use Test::More;
use Inbox::Scene;
use Inbox::Wait;
use Inbox::Workload;

# Where another call than these fails, nothing was being done.
my @functions = qw(PQconnectStartParams PQconnectdbParams PQconnectPoll PQsendQuery
  PQsendQueryParams PQenterPipelineMode PQexitPipelineMode PQpipelineSync PQconsumeInput PQflush
  PQsetnonblocking PQconninfoParse curl_global_init curl_multi_init curl_easy_init
  curl_slist_append curl_multi_add_handle curl_multi_perform curl_multi_poll curl_url curl_url_set
  curl_easy_escape curl_easy_setopt);
my $most = $ENV{EXHAUST_CALLS} || 1_000_000;

my $dir = PostgreSQL::Test::Utils::tempdir();
my @compile = ($ENV{CC} // 'cc', '-shared', '-fPIC', '-o', "$dir/failing_calls.so",
    split(' ', qx(pkg-config --cflags libpq libcurl)),
    "$ENV{INBOX_ROOT}/test/exhaust/failing_calls.c", '-ldl');
system(@compile) == 0 or BAIL_OUT("could not run @compile");

my $scene = Inbox::Scene->new('own', 'calls', ms => 0);
my $service = $scene->{service};
my %open; # subscriptions whose puller has ended before its work
my $runs = 0;

# A subscription of its own, or the pulls that an earlier puller has left would take messages away.
sub start
{
    my ($name, %args) = @_;
    return $scene->puller(%args, subscription => $service->subscription($name),
        program => "$ENV{INBOX_ROOT}/build/puller-san/inbox-puller",
        options => [ '--source', $name ]);
}

# Returns whether there was such a call.
sub fail_call
{
    my ($function, $number) = @_;
    my $name = "$function-$number";
    my $done = "$dir/$name";
    my $work = Inbox::Workload->new(count => 3, prefix => "$name-");
    $runs++;
    $service->create_topic($name);
    $service->create_subscription($name, $name);
    $service->publish($name, @{ $work->{messages} });
    my $puller = start($name,
        env => {
            LD_PRELOAD => "$dir/failing_calls.so",
            ASAN_OPTIONS => 'verify_asan_link_order=0:exitcode=99',
            FAIL_CALL => "$function:$number",
            FAIL_CALL_DONE => $done });
    my $over = eval {
        wait_until("$name to be over",
            sub { !$puller->is_running || $service->stats($name)->{unacked} == 0 }, 60) };
    my $status = !$over ? 'hung ' . $puller->kill9 : $puller->is_running ? $puller->stop : $puller->{status};
    my $said = $puller->slurp_log;
    ok($status =~ /^[0-3]$/ && ($status == 0 || $said =~ /^inbox-puller: |"err"/m),
        "$function, call $number: ended with status $status")
      or diag($said);
    $open{$name} = 1 if $service->stats($name)->{unacked} > 0;
    return -e $done;
}

foreach my $name (@functions)
{
    my $number = 1;
    $number++ while $number <= $most && fail_call($name, $number);
    note("$name: " . ($number - 1));
}

# What was leased to a puller that ended comes again; the server takes only so many clients at once.
my @left = sort keys(%open);
while (my @names = splice(@left, 0, 20))
{
    my @pullers = map { start($_) } @names;
    foreach my $name (@names)
    {
        wait_until("all of $name", sub { $service->stats($name)->{unacked} == 0 }, 60);
    }
    is($_->stop, 0, 'a puller without a failure ends well') foreach @pullers;
}
is($scene->count('SELECT count(*) FROM effect'), 3 * $runs, 'each message is applied once');
is($scene->count('SELECT count(*) FROM inbox_failure'), 0, 'no message is blamed');
Inbox::Workload::none_lost($service);
done_testing;
