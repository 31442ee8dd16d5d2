# SPDX-License-Identifier: PostgreSQL
# What Google has around Pub/Sub, as test/google/inbox-google stands for it, with its certificates
# and a file of credentials of each kind.
#
#   my $google = Google->start(pubsub => $service->{url});
#   run_puller(env => { $google->env }, options => [ '--ca-file', $google->ca,
#       '--credentials-file', $google->credentials('authorized_user') ]);
#
# "ports" names some of them beforehand (plain, proxy), and "later" leaves it to begin() to start.
package Google;
use strict;
use warnings;
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use JSON::PP;
use POSIX ();
use Time::HiRes qw(sleep time);

my $json = JSON::PP->new->utf8->canonical;
my $here = dirname(__FILE__);
use constant IMPERSONATE => 'https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/'
  . 'target@p.iam.gserviceaccount.com:generateAccessToken';
# No text that any log may hold.
our @SECRETS = qw(ya29. refresh-secret client-secret subject-secret PRIVATE eyJ);

sub start
{
    my ($class, %args) = @_;
    my $self = bless { dir => tempdir(CLEANUP => 1), %args }, $class;
    $self->make_certificates;
    $self->make_key($_) foreach 'robot@p.iam.gserviceaccount.com';
    $self->begin unless $self->{later};
    return $self;
}

sub slurp
{
    my ($name) = @_;
    open(my $fh, '<', $name) or die "could not read $name: $!\n";
    local $/;
    return <$fh>;
}

# Whole or not at all, as it is read while it is written.
sub write_file
{
    my ($self, $name, $text) = @_;
    open(my $fh, '>', "$self->{dir}/$name.new") or die "could not write $name: $!\n";
    print $fh $text;
    close($fh) or die "could not write $name: $!\n";
    rename("$self->{dir}/$name.new", "$self->{dir}/$name") or die "could not rename $name: $!\n";
    return "$self->{dir}/$name";
}

sub openssl
{
    my (@arguments) = @_;
    open(my $log, '-|', 'sh', '-c', 'exec openssl "$@" 2>&1', 'sh', @arguments) or die "openssl: $!\n";
    my $said = join '', <$log>;
    close($log) or die "openssl @arguments: $said\n";
}

# An authority, and what it has signed: server.pem for Google's names, others for what is wrong.
sub make_certificates
{
    my ($self) = @_;
    my $dir = $self->{dir};
    openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', "/CN=$_",
        '-keyout', "$dir/$_.key", '-out', "$dir/$_.crt") foreach 'ca', 'other-ca';
    $self->make_certificate('good.pem', 'ca', '*.googleapis.com');
    $self->make_certificate('wrong-name.pem', 'ca', 'www.example.com');
    $self->make_certificate('expired.pem', 'ca', '*.googleapis.com', 0);
    $self->make_certificate('unknown.pem', 'other-ca', '*.googleapis.com');
    $self->use_certificate('good.pem');
}

sub make_certificate
{
    my ($self, $file, $ca, $name, $days) = @_;
    my $base = "$self->{dir}/$file";
    openssl('req', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=test', '-keyout', "$base.key",
        '-out', "$base.csr");
    $self->write_file("$file.ext", "subjectAltName=DNS:$name\n");
    openssl('x509', '-req', '-in', "$base.csr", '-CA', "$self->{dir}/$ca.crt",
        '-CAkey', "$self->{dir}/$ca.key", '-CAcreateserial', '-days', $days // 2,
        '-extfile', "$base.ext", '-out', "$base.crt");
    $self->write_file($file, slurp("$base.crt") . slurp("$base.key"));
}

# For connections from now on.
sub use_certificate
{
    my ($self, $file) = @_;
    $self->write_file('server.pem', slurp("$self->{dir}/$file"));
}

sub ca { "$_[0]{dir}/ca.crt" }

# A key of a service account, whose other half the servers know.
sub make_key
{
    my ($self, $email) = @_;
    openssl('genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048', '-out',
        "$self->{dir}/$email.key");
    openssl('pkey', '-in', "$self->{dir}/$email.key", '-pubout', '-out', "$self->{dir}/$email.pub");
}

sub begin
{
    my ($self) = @_;
    my $dir = $self->{dir};
    unlink("$dir/ports.json");
    my @command = ("$here/inbox-google", $dir,
        defined $self->{pubsub} ? ('--pubsub', $self->{pubsub}) : (),
        map { ("--$_-port", $self->{ports}{$_}) } grep { $self->{ports}{$_} } 'plain', 'proxy');
    my $pid = fork() // die "could not fork: $!\n";
    if ($pid == 0)
    {
        POSIX::setsid();
        open(STDIN, '<', '/dev/null');
        open(STDOUT, '>>', "$dir/log");
        open(STDERR, '>&', \*STDOUT);
        exec(@command) or POSIX::_exit(127);
    }
    $self->{pid} = $pid;
    my $limit = time + 30;
    until (-e "$dir/ports.json")
    {
        die "inbox-google did not start: " . slurp("$dir/log") . "\n"
          if time > $limit || waitpid($pid, POSIX::WNOHANG()) == $pid;
        sleep(0.05);
    }
    $self->{ports} = $json->decode(slurp("$dir/ports.json"));
}

sub stop
{
    my ($self) = @_;
    local ($?, $!);
    return if !$self->{pid};
    kill('KILL', $self->{pid});
    waitpid($self->{pid}, 0);
    delete $self->{pid};
}

sub DESTROY
{
    my ($self) = @_;
    $self->stop;
}

# The environment of a machine that reaches Google through the proxy, and has no credentials.
sub env
{
    my ($self) = @_;
    return (HTTPS_PROXY => "http://127.0.0.1:$self->{ports}{proxy}", NO_PROXY => '',
        no_proxy => '', GCE_METADATA_HOST => "127.0.0.1:$self->{ports}{plain}",
        CLOUDSDK_CONFIG => "$self->{dir}/gcloud", GOOGLE_APPLICATION_CREDENTIALS => '',
        GOOGLE_CLOUD_QUOTA_PROJECT => '', NO_GCE_CHECK => '', PUBSUB_EMULATOR_HOST => '');
}

sub rules
{
    my ($self, %rules) = @_;
    $self->write_file('rules.json', $json->encode(\%rules));
}

# Those that the filter likes, oldest first.
sub requests
{
    my ($self, $filter) = @_;
    return if !-e "$self->{dir}/requests";
    my @requests = map { $json->decode($_) } split /\n/, slurp("$self->{dir}/requests");
    return $filter ? grep { $filter->($_) } @requests : @requests;
}

sub forget_requests { unlink("$_[0]{dir}/requests") }

# ---- credentials ----------------------------------------------------------------------------

sub user
{
    my (%more) = @_;
    return { type => 'authorized_user', client_id => 'client-1', client_secret => 'client-secret',
        refresh_token => 'refresh-secret', quota_project_id => 'charged', %more };
}

sub service_account
{
    my ($self) = @_;
    my $email = 'robot@p.iam.gserviceaccount.com';
    return { type => 'service_account', project_id => 'p', private_key_id => 'key-1',
        private_key => slurp("$self->{dir}/$email.key"), client_email => $email,
        token_uri => 'https://oauth2.googleapis.com/token' };
}

sub external
{
    my (%more) = @_;
    return { type => 'external_account',
        audience => '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/a/providers/b',
        subject_token_type => 'urn:ietf:params:oauth:token-type:jwt',
        token_url => 'https://sts.googleapis.com/v1/token', %more };
}

sub all_credentials
{
    my ($self) = @_;
    my $url = "http://127.0.0.1:$self->{ports}{plain}/subject";
    return (
        service_account => $self->service_account,
        authorized_user => user(),
        impersonated_by_user => { type => 'impersonated_service_account', delegates => ['between@p'],
            service_account_impersonation_url => IMPERSONATE, source_credentials => user() },
        impersonated_by_account => { type => 'impersonated_service_account', delegates => [],
            service_account_impersonation_url => IMPERSONATE,
            source_credentials => $self->service_account },
        external_file => external(
            credential_source => { file => "$self->{dir}/subject" }),
        external_url => external(
            credential_source => { url => "$url?json", headers => { 'X-Source' => 'inbox' },
                format => { type => 'json', subject_token_field_name => 'value' } },
            service_account_impersonation_url => IMPERSONATE,
            service_account_impersonation => { token_lifetime_seconds => 1800 }),
        external_workforce => external(
            audience => '//iam.googleapis.com/locations/global/workforcePools/a/providers/b',
            workforce_pool_user_project => 'charged', credential_source => { url => $url }),
        external_user => { type => 'external_account_authorized_user', client_id => 'client-1',
            client_secret => 'client-secret', refresh_token => 'refresh-secret',
            token_url => 'https://sts.googleapis.com/v1/oauthtoken' });
}

# The name of a file with these.
sub credentials
{
    my ($self, $name, %more) = @_;
    my %all = $self->all_credentials;
    $self->write_file('subject', "subject-secret-file\n") if !-e "$self->{dir}/subject";
    return $self->write_file("$name.json", $json->encode({ %{ $all{$name} }, %more }));
}

1;
