# SPDX-License-Identifier: PostgreSQL
# A real Prometheus that scrapes one puller every second and has the project's alert rules.
#
#   my $prometheus = Inbox::Prometheus->start('127.0.0.1:9187'); $prometheus->query('up');
package Inbox::Prometheus;
use strict;
use warnings;
use parent 'Inbox::Child';
use File::Temp qw(tempdir);
use HTTP::Tiny;
use JSON::PP;
use PostgreSQL::Test::Utils;
use Inbox::Service;
use Inbox::Wait;

my $json = JSON::PP->new->utf8;

sub missing
{
    return system('prometheus --version >/dev/null 2>&1') == 0 ? undef
      : 'Prometheus is not on this machine (the Debian package prometheus)';
}

sub start
{
    my ($class, $target) = @_;
    my $dir = tempdir(CLEANUP => 1);
    my $address = '127.0.0.1:' . Inbox::Service::free_port();
    append_to_file("$dir/prometheus.yml", <<"YAML");
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [ '$ENV{INBOX_ROOT}/deploy/prometheus/inbox.rules.yml' ]
scrape_configs:
  - job_name: inbox-puller
    static_configs: [ { targets: [ '$target' ] } ]
YAML
    return bless { url => "http://$address/api/v1",
        pid => Inbox::Child::spawn("$PostgreSQL::Test::Utils::log_path/prometheus.log", 'prometheus',
            "--config.file=$dir/prometheus.yml", "--storage.tsdb.path=$dir/data",
            "--web.listen-address=$address") }, $class;
}

# What it says of alerts, rules, targets; undef as long as it does not answer.
sub api
{
    my ($self, $path) = @_;
    my $answer = HTTP::Tiny->new(timeout => 5)->get("$self->{url}/$path");
    return $answer->{success} ? $json->decode($answer->{content})->{data} : undef;
}

# The value of an expression that gives one; undef as long as there is none.
sub query
{
    my ($self, $expression) = @_;
    my $data = $self->api('query?' . HTTP::Tiny->new->www_form_urlencode({ query => $expression }))
      or return undef;
    return @{ $data->{result} } ? $data->{result}[0]{value}[1] : undef;
}

# The value of an expression once it is the expected one, or there at all; or what it is after a while.
sub settled
{
    my ($self, $expression, $expected, $seconds) = @_;
    my $value;
    eval {
        wait_until($expression, sub {
            $value = $self->query($expression);
            defined $value && (!defined $expected || $value == $expected);
        }, $seconds // 30, 0.5);
    };
    return $value;
}

1;
