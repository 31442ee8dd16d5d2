# SPDX-License-Identifier: PostgreSQL
# Google's own library is the referee: for each kind of credentials the puller sends the same
# claims, form fields, documents and headers to the same addresses.
use strict;
use warnings;
use lib "$ENV{INBOX_ROOT}/test/google", "$ENV{INBOX_ROOT}/test/conformance/lib";
use JSON::PP;
use MIME::Base64 qw(decode_base64url);
use Test::More;
use Google;
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;
use Node;

plan(skip_all => 'Node.js is not on this machine (the Debian packages nodejs and npm)')
  if !Node::is_there();
BAIL_OUT('the packages could not be installed: ' . Node::log()) if !Node::install();

# An account as source is left out: the library asks for its token with the scope of the target,
# which does not let it impersonate.
my @kinds = qw(service_account authorized_user impersonated_by_user external_file external_url
    external_workforce external_user);
my $program = Node::program('credentials.js');
my $json = JSON::PP->new->canonical;
my $node = Inbox::Ledger->start('credentials_as_google');
my $service = Inbox::Service->start('own');
my $google = Google->start(pubsub => $service->{url});
my %env = $google->env;

# Header and claims, without what the time makes of them. For the token endpoint the library leaves
# out of the header what is optional: that it is a JWT, and the name of the key.
sub signed
{
    my ($token, $for_endpoint) = @_;
    my ($header, $claims) =
      map { $json->decode(decode_base64url($_)) } (split /\./, $token)[ 0, 1 ];
    $claims->{exp} -= delete $claims->{iat};
    delete @$header{qw(typ kid)} if $for_endpoint;
    return { header => $header, claims => $claims };
}

sub plain_token
{
    my ($header) = @_;
    my ($kind, $token) = split / /, $header;
    return "$kind $token" if $kind ne 'Bearer';
    return $token =~ /^eyJ/ ? signed($token) : "$kind " . ($token =~ s/-\d+$//r);
}

sub plain
{
    my ($request) = @_;
    my %plain = map { $_ => $request->{$_} } qw(method host path query body);
    my %form = %{ $request->{form} // {} };
    $form{assertion} = signed($form{assertion}, 1) if $form{assertion};
    # It is sent with the line break of the file there.
    $form{subject_token} =~ s/\s+$// if $form{subject_token};
    my %headers = map { $_ => $request->{headers}{$_} }
      grep { exists $request->{headers}{$_} }
      qw(authorization content-type metadata-flavor x-goog-user-project x-source);
    $headers{authorization} = plain_token($headers{authorization}) if $headers{authorization};
    $headers{'content-type'} =~ s/;.*// if $headers{'content-type'};
    return $json->encode({ %plain, form => \%form, headers => \%headers });
}

# What the metadata server is asked besides is each one's own affair; Pub/Sub is asked one thing.
sub requests
{
    my ($service) = @_;
    my %seen;
    return sort grep { !$seen{$_}++ } map { plain($_) } grep {
        $_->{service} ne 'proxy'
          && ($_->{service} ne 'metadata' || $_->{path} =~ m{/token$})
          && ($_->{service} ne 'pubsub' || $_->{method} eq 'GET')
    } $google->requests;
}

sub by_the_library
{
    my ($scope, $file) = @_;
    $google->forget_requests;
    local %ENV = (%ENV, %env, NODE_EXTRA_CA_CERTS => $google->ca, NO_PROXY => '127.0.0.1');
    delete $ENV{$_} foreach 'PUBSUB_EMULATOR_HOST', 'no_proxy';
    my $said = `node $program https://www.googleapis.com/auth/$scope $file 2>&1`;
    diag($said) if $said ne '';
    return requests();
}

sub by_the_puller
{
    my ($name, $enough, @options) = @_;
    $google->forget_requests;
    my $puller = Inbox::Puller->start(node => $node, handler => 'apply_payment', env => \%env,
        subscription => $service->subscription($name), options => [ '--ca-file', $google->ca, @options ]);
    wait_until("$name: all requests", sub { $google->requests($enough) });
    is($puller->stop, 0, "$name: stops with status 0");
    return requests();
}

$google->credentials($_) foreach @kinds;
foreach my $name (@kinds, 'metadata')
{
    my $file = $name eq 'metadata' ? $name : "$google->{dir}/$name.json";
    $service->create_topic($name);
    $service->create_subscription($name, $name);
    my @theirs = by_the_library('pubsub', $file);
    my @ours = by_the_puller($name, sub { $_[0]{service} eq 'pubsub' },
        $name eq 'metadata' ? () : ('--credentials-file', $file));
    cmp_ok(scalar(@theirs), '>=', 1, "$name: the library asks");
    is(join("\n", @ours), join("\n", @theirs), "$name: the puller asks the same");
}

# A database takes no token that the account has signed itself.
my $file = "$google->{dir}/service_account.json";
my ($theirs) = grep { /oauth2/ } by_the_library('sqlservice.login', $file);
my ($ours) = grep { /oauth2/ } by_the_puller('service_account', sub {
    $_[0]{service} eq 'oauth2' }, '--credentials-file', $file, '--db-auth', 'gcp-iam');
is($ours, $theirs, 'so it does for the database');
like($ours // '', qr/sqlservice\.login/, 'with its scope');
$service->stop;
done_testing;
