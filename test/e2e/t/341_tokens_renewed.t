# SPDX-License-Identifier: PostgreSQL
# Tokens are renewed while messages are consumed: before they end, when they are refused, after
# errors of the servers, from files that were replaced and from a metadata server that comes late.
# What cannot be had is said, and waited for; nothing is sent to who is not the one it is for.
use strict;
use warnings;
use lib "$ENV{INBOX_ROOT}/test/google";
use Test::More;
use Google;
use Inbox::Check;
use Inbox::Ledger;
use Inbox::Puller;
use Inbox::Service;
use Inbox::Wait;

my $node = Inbox::Ledger->start('tokens_renewed');
my $service = Inbox::Service->start('own');
my $google = Google->start(pubsub => $service->{url});

# Certificates that are not to be trusted, and what is said of them.
my %wrong = ('unknown.pem' => qr/unable to get local issuer certificate|self-signed/,
    'wrong-name.pem' => qr/no alternative certificate subject name matches/,
    'expired.pem' => qr/certificate has expired/);

sub start
{
    my ($name, %args) = @_;
    my $from = $args{google} // $google;
    $service->create_topic($name);
    $service->create_subscription($name, $name);
    return Inbox::Puller->start(node => $node, handler => 'apply_payment',
        subscription => $service->subscription($name), env => { $from->env, %{ $args{env} // {} } },
        options => [ '--ca-file', $args{ca} // $from->ca,
            defined $args{credentials} ? ('--credentials-file', $args{credentials}) : (),
            @{ $args{options} // [] } ]);
}

sub publish
{
    my ($name, $first, $last) = @_;
    $service->publish($name, Inbox::Ledger::payments($name, $first, $last));
}

sub wait_for_effects { Inbox::Ledger::is_consumed($node, $service, @_) }

sub complaints
{
    my ($puller) = @_;
    return join ' ', map { $_->{event} } grep { $_->{level} =~ /warning|error/ } $puller->events;
}

sub asked
{
    my @requests = $google->requests(sub { $_[0]{service} eq 'oauth2' });
    return scalar(@requests);
}

subtest 'a token that ends in the middle of it' => sub {
    $google->rules(lifetime => 4);
    my $puller = start('ends', credentials => $google->credentials('authorized_user'));
    my $last = 0;
    wait_until('five tokens', sub {
        publish('ends', $last + 1, $last + 2);
        $last += 2;
        asked() >= 5;
    }, 60, 0.3);
    wait_for_effects('ends', $last);
    is(complaints($puller), '', 'nothing was refused');
    is($puller->stop, 0, 'stops with status 0');
};

subtest 'a token that is revoked' => sub {
    $google->rules;
    my $puller = start('revoked', credentials => $google->credentials('authorized_user'));
    publish('revoked', 1, 3);
    wait_for_effects('revoked', 3);
    my $asked = asked();
    $google->rules(answers => [ { on => 'pubsub', do => 'revoke', id => 'r1', times => 1 } ]);
    publish('revoked', 4, 6);
    wait_for_effects('revoked', 6);
    is(asked(), $asked + 1, 'a new one was asked for, once');
    is(complaints($puller), '', 'nothing to complain about');
    # The servers refuse every token: no storm of requests for new ones.
    $google->rules(answers => [ { on => 'pubsub', status => 401, id => 'r2', times => 1000 } ]);
    publish('revoked', 7, 9);
    my $event = $puller->wait_event('pull_failed');
    is($event->{status}, 401, 'one that is refused when it is new is said');
    cmp_ok(asked(), '<=', $asked + 4, 'and few are asked for');
    is($puller->stop, 0, 'stops with status 0');
};

subtest 'a key that is replaced' => sub {
    $google->rules;
    my $puller = start('rotated', credentials => $google->credentials('service_account'));
    publish('rotated', 1, 3);
    wait_for_effects('rotated', 3);
    $google->make_key('robot@p.iam.gserviceaccount.com');
    $google->credentials('service_account');
    $google->rules(answers => [ { on => 'pubsub', do => 'revoke', id => 'k1', times => 1 } ]);
    publish('rotated', 4, 6);
    wait_for_effects('rotated', 6);
    is(complaints($puller), '', 'nothing to complain about');
    is($puller->stop, 0, 'stops with status 0');
};

subtest 'a subject token that is replaced' => sub {
    $google->rules;
    my $puller = start('subject', credentials => $google->credentials('external_file'));
    publish('subject', 1, 3);
    wait_for_effects('subject', 3);
    $google->write_file('subject', "subject-secret-file-2\n");
    $google->rules(answers => [ { on => 'pubsub', do => 'revoke', id => 's1', times => 1 } ]);
    publish('subject', 4, 6);
    wait_for_effects('subject', 6);
    my @subjects = map { $_->{form}{subject_token} } $google->requests(sub { $_[0]{service} eq 'sts' });
    is(join(' ', map { s/\s+$//r } @subjects), 'subject-secret-file subject-secret-file-2',
        'each is exchanged, once');
    is(complaints($puller), '', 'nothing to complain about');
    is($puller->stop, 0, 'stops with status 0');
};

subtest 'a token endpoint in trouble' => sub {
    $google->rules(answers => [ { on => 'oauth2', status => 503, id => 't1', times => 2,
                body => { error => 'server_error', error_description => 'Try again.' } } ]);
    my $puller = start('trouble', credentials => $google->credentials('authorized_user'));
    publish('trouble', 1, 3);
    wait_for_effects('trouble', 3);
    my @failed = $puller->events('token_failed');
    is(scalar(@failed), 2, 'it is tried again');
    is("$failed[0]{level} $failed[0]{credentials} $failed[0]{err}",
        'warning authorized_user https://oauth2.googleapis.com: HTTP 503 server_error: Try again.',
        'and said');
    is($puller->stop, 0, 'stops with status 0');
};

subtest 'a login that was revoked' => sub {
    my $file = $google->credentials('authorized_user');
    $google->rules;
    my $puller = start('login', credentials => $file);
    publish('login', 1, 3);
    wait_for_effects('login', 3);
    $google->rules(refresh_tokens => ['refresh-secret-2'],
        answers => [ { on => 'pubsub', do => 'revoke', id => 'l1', times => 1 } ]);
    publish('login', 4, 6);
    my $event = $puller->wait_event('token_failed');
    is($event->{level}, 'error', 'is an error');
    is($event->{err}, 'https://oauth2.googleapis.com: (not shown, as it repeats what it was sent)',
        'a server that repeats the secret is not quoted');
    like($event->{hint}, qr/gcloud auth application-default login/, 'with the remedy');
    $google->credentials('authorized_user', refresh_token => 'refresh-secret-2');
    wait_for_effects('login', 6);
    is($puller->stop, 0, 'stops with status 0');
    $google->rules(refresh_tokens => []);
    $puller = start('permanent', credentials => $file, options => ['--exit-on-permanent']);
    is($puller->wait_end, 2, '--exit-on-permanent ends with status 2');
};

# As they are written in what is sent, and not as they are in the file.
subtest 'servers that repeat what they were sent' => sub {
    my %says = (
        oauth2 => [ 'authorized_user', 'refresh_token=1%2F%2Frefresh', token_failed => refresh_token => '1//refresh' ],
        sts => [ 'external_user', 'Authorization: Basic Y2xpZW50LTE6Y2xpZW50LXNlY3JldA==', 'token_failed' ]);
    foreach my $who (sort keys %says)
    {
        my ($kind, $text, $event, %more) = @{ $says{$who} };
        $google->rules(answers => [ { on => $who, status => 400, id => "repeat $who", times => 1000,
                    body => { error => 'invalid_request', error_description => "What is $text?" } } ]);
        my $puller = start("repeat-$who", credentials => $google->credentials($kind, %more));
        like($puller->wait_event($event)->{err}, qr/: \(not shown, as it repeats/, "$who is not quoted");
        is($puller->stop, 0, 'stops with status 0');
    }
    $google->rules(answers => [ { on => 'pubsub', status => 403, id => 'repeat', times => 1000, body => { error =>
                    { code => 403, status => 'PERMISSION_DENIED', message => 'What is ya29.bare?' } } } ]);
    my $puller = start('repeat', options => [ '--token-file', $google->write_file('bare', "ya29.bare\n") ]);
    like($puller->wait_event('pull_failed')->{err}, qr/DENIED: \(not shown, .*; missing is/, 'Pub/Sub is not quoted');
    is($puller->stop, 0, 'stops with status 0');
    is_deeply([ Inbox::Puller->leaks('1%2F%2Frefresh', 'Y2xpZW50', 'ya29.bare') ], [], 'no log shows it');
};

subtest 'a metadata server that comes late' => sub {
    my %ports = map { $_ => Inbox::Service::free_port() } qw(plain proxy);
    my $late = Google->start(pubsub => $service->{url}, ports => {%ports}, later => 1);
    my $puller = start('late', google => $late);
    publish('late', 1, 3);
    my $event = $puller->wait_event('token_failed');
    is("$event->{level} $event->{credentials}", 'warning metadata_server', 'is waited for');
    like($event->{hint}, qr/needs the metadata server of Google Cloud/, 'and named');
    $late->begin;
    wait_for_effects('late', 3);
    is($puller->stop, 0, 'stops with status 0');
};

subtest 'a permission that is missing' => sub {
    $google->rules(answers => [ { on => 'pubsub', status => 403, id => 'p1', times => 2, body => {
                    error => { code => 403, status => 'PERMISSION_DENIED',
                        message => 'User not authorized to perform this action.' } } } ]);
    my $puller = start('forbidden', credentials => $google->credentials('service_account'),
        options => ['--exit-on-permanent']);
    my $event = $puller->wait_event('pull_failed');
    like($event->{err}, qr{User not authorized .*; missing is the permission pubsub\.subscriptions\.consume on projects/p/subscriptions/forbidden$},
        'is named, with the resource');
    is($puller->wait_end, 2, '--exit-on-permanent ends with status 2');
};

# Whom the API, or the project that is charged, refuses is refused all: --check is not to be content.
subtest 'an API that is not enabled' => sub {
    $google->rules(answers => [ { on => 'pubsub', status => 403, id => 'api', times => 1000, body => { error => {
                        code => 403, status => 'PERMISSION_DENIED', message => 'It is disabled.',
                        details => [ { reason => 'SERVICE_DISABLED' } ] } } } ]);
    my $check = Inbox::Check->run(subscription => $service->subscription('forbidden'), env => { $google->env },
        options => [ '--ca-file', $google->ca, '--credentials-file', $google->credentials('authorized_user') ]);
    like($check->problem('consuming') // '', qr/It is disabled\. -> .*enable pubsub\.googleapis\.com/, '--check says so');
};

subtest 'a server that is not Google' => sub {
    $google->rules;
    my $puller;
    foreach my $file (sort keys %wrong)
    {
        $google->use_certificate($file);
        $puller //= start('tls', credentials => $google->credentials('authorized_user'));
        my $event = $puller->wait_event('token_failed', sub { $_[0]{err} =~ $wrong{$file} }, 40);
        like("$event->{level}; $event->{hint}", qr/^warning; .*--ca-file/, "$file: $event->{err}");
    }
    my $asked = asked();
    publish('tls', 1, 3);
    $google->use_certificate('good.pem');
    wait_for_effects('tls', 3);
    is(asked(), $asked + 1, 'the secret was sent to the right one only');
    is($puller->stop, 0, 'stops with status 0');
    # The system trusts other authorities than the file's.
    $puller = start('untrusted', credentials => $google->credentials('authorized_user'),
        ca => "$google->{dir}/other-ca.crt");
    like($puller->wait_event('token_failed')->{err}, qr/certificate/, 'no other authority is trusted');
    is($puller->stop, 0, 'stops with status 0');
};

# An account that signs its tokens itself speaks to Pub/Sub first.
subtest 'an endpoint that is not Pub/Sub' => sub {
    my $file = $google->credentials('service_account');
    my $remedy = qr/check --endpoint .*certificate must be in date, for that name, .*--ca-file/;
    my $puller;
    $google->forget_requests;
    foreach my $name (sort keys %wrong)
    {
        $google->use_certificate($name);
        $puller //= start('endpoint', credentials => $file);
        my $event = $puller->wait_event('subscription_failed', sub { $_[0]{err} =~ $wrong{$name} });
        like("$event->{level}; $event->{hint}", qr/^warning; .*$remedy/, "$name: $event->{err}");
        my $check = Inbox::Check->run(subscription => $service->subscription('endpoint'),
            env => { $google->env }, options => [ '--ca-file', $google->ca, '--credentials-file', $file ]);
        is($check->{status}, 2, "$name: --check finds it");
        like($check->problem('subscription') // '',
            qr{subscriptions/endpoint: .*$wrong{$name}.* -> $remedy}, "$name: and says the same");
    }
    is(scalar($google->requests(sub { $_[0]{service} eq 'pubsub' })), 0, 'nothing was sent to any');
    publish('endpoint', 1, 3);
    $google->use_certificate('good.pem');
    wait_for_effects('endpoint', 3);
    is($puller->stop, 0, 'stops with status 0');
};

is_deeply([ Inbox::Puller->leaks(@Google::SECRETS, Inbox::Ledger::MEMO) ], [],
    'no log shows a secret or a payload');
$service->stop;
done_testing;
