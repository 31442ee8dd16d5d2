# SPDX-License-Identifier: PostgreSQL
# Every kind of credentials consumes messages from a server that stands for Google, over TLS and
# through a proxy, at Google's own addresses; and none is in a log.
use strict;
use warnings;
use lib "$ENV{INBOX_ROOT}/test/google";
use File::Copy qw(copy);
use Test::More;
use Google;
use Inbox::Check;
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

my $node = Inbox::Ledger->start('credentials');
my $service = Inbox::Service->start('own');
my $google = Google->start(pubsub => $service->{url});
my %accounts = (
    service_account => 'robot@p.iam.gserviceaccount.com',
    authorized_user => undef,
    impersonated_by_user => 'target@p.iam.gserviceaccount.com',
    impersonated_by_account => 'target@p.iam.gserviceaccount.com',
    external_file => '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/a/providers/b',
    external_url => 'target@p.iam.gserviceaccount.com',
    external_workforce => '//iam.googleapis.com/locations/global/workforcePools/a/providers/b',
    external_user => undef,
    metadata_server => 'machine@p.iam.gserviceaccount.com',
    by_variable => 'robot@p.iam.gserviceaccount.com',
    by_gcloud => undef);
my %kind = (impersonated_by_user => 'impersonated_service_account',
    impersonated_by_account => 'impersonated_service_account',
    external_file => 'external_account', external_url => 'external_account',
    external_workforce => 'external_account',
    external_user => 'external_account_authorized_user', by_variable => 'service_account',
    by_gcloud => 'authorized_user');

# The environment and the options that lead to these.
sub way
{
    my ($name) = @_;
    my %env = $google->env;
    my @options = ('--ca-file', $google->ca);
    if ($name eq 'by_variable')
    {
        $env{GOOGLE_APPLICATION_CREDENTIALS} = $google->credentials('service_account');
    }
    elsif ($name eq 'by_gcloud')
    {
        $env{CLOUDSDK_CONFIG} = "$google->{dir}/home";
        mkdir($env{CLOUDSDK_CONFIG});
        copy($google->credentials('authorized_user'),
            "$env{CLOUDSDK_CONFIG}/application_default_credentials.json") or die "copy: $!\n";
    }
    elsif ($name ne 'metadata_server')
    {
        push @options, '--credentials-file', $google->credentials($name);
    }
    return (env => \%env, options => \@options, subscription => $service->subscription($name));
}

my @names = sort keys %accounts;
foreach my $name (@names)
{
    $service->create_topic($name);
    $service->create_subscription($name, $name);
    $service->publish($name, map { Inbox::Ledger::payment("$name$_", $_, 1) } 1 .. 5);
}
# A few at a time: each is a process with a connection of its own.
while (my @some = splice(@names, 0, 4))
{
    my %puller = map {
        $_ => Inbox::Puller->start(node => $node, handler => 'apply_payment', way($_))
    } @some;
    foreach my $name (@some)
    {
        Inbox::Ledger::wait_for($node, 'SELECT count(*), count(DISTINCT key) FROM effect '
              . "WHERE key LIKE '$name%'", '5|5', 60);
        wait_until("$name: all to be acknowledged",
            sub { $service->stats($name)->{unacked} == 0 });
        my $event = $puller{$name}->wait_event('token');
        is($event->{credentials}, $kind{$name} // $name, "$name: consumes, as what it is");
        is($event->{account}, $accounts{$name}, "$name: whose it is");
        is($puller{$name}->stop, 0, "$name: stops with status 0");
        my $whose = defined $accounts{$name} ? "of $accounts{$name}" : 'it does not say whose';
        like(Inbox::Check->run(text_only => 1, way($name))->{out},
            qr/$event->{credentials};? \Q$whose\E.*obtained, good for/s, "$name: --check says the same");
        is(join(' ', map { $_->{event} } grep { $_->{level} =~ /warning|error/ } $puller{$name}->events),
            '', "$name: nothing to complain about");
    }
}

my @charged = $google->requests(sub { ($_[0]{headers}{'x-goog-user-project'} // '') eq 'charged' });
ok(@charged > 0, 'the quota project is told');
is(scalar(grep { $_->{service} !~ /^(?:pubsub|impersonate)$/ } @charged), 0,
    'to where it counts, and to no token endpoint');
is(scalar($google->requests(sub { $_[0]{service} eq 'metadata' && !$_[0]{headers}{'metadata-flavor'} })),
    0, 'the metadata server is asked as it has to be');
is_deeply([ Inbox::Puller->leaks(@Google::SECRETS, Inbox::Ledger::MEMO) ], [],
    'no log shows a secret or a payload');
$service->stop;
done_testing;
