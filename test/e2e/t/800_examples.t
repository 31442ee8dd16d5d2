# SPDX-License-Identifier: PostgreSQL
# The examples end with their verdict. Google's emulator is for one of them: where a puller is killed,
# the other would wait for a minute.
use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use Inbox::Service;

local %ENV = %ENV;
$ENV{PATH} = "$ENV{INBOX_ROOT}/puller:$ENV{INBOX_ROOT}/test/pubsub:$ENV{PATH}";
delete $ENV{$_} foreach grep { /^(?:PG(?!_REGRESS)|INBOX_(?!ROOT))/ } keys %ENV;
foreach my $kind (Inbox::Service::kinds())
{
    my $service = $kind eq 'google' ? Inbox::Service->start($kind) : undef;
    local $ENV{PUBSUB_EMULATOR_HOST} = $service ? $service->host : '';
    my @examples = map { m{([^/]+)/steps$} } glob("$ENV{INBOX_ROOT}/examples/*/steps");
    foreach my $example ($service ? 'orders' : @examples)
    {
        my ($out, $err) = run_command([ 'timeout', '300', "$ENV{INBOX_ROOT}/examples/$example/steps" ]);
        my ($facts, $verdict) = $out =~ /((?:^  (?:ok|NO)  .*\n)+)\n(VERDICT: .*)\n*\z/m;
        is($verdict, 'VERDICT: right', "$kind: $example") or diag("$out\n$err");
        cmp_ok(($facts // '') =~ tr/\n//, '>=', 4, 'by several facts');
    }
}
done_testing;
