# SPDX-License-Identifier: PostgreSQL
# Messages of one ordering key are applied in the order in which they were published, although the
# puller or the database is killed in the middle. What a killed puller held comes again, which Google's
# emulator does not bring in order.
use strict;
use warnings;
use Test::More;
use Inbox::Service;
use Inbox::Steps;
use Inbox::Workload;

sub finish
{
    my ($scene, $puller) = @_;
    Inbox::Steps::wait_taken($scene, Inbox::Steps::COUNT);
    Inbox::Steps::in_order($scene);
    Inbox::Workload->all_acked($scene->{service}, $scene->{name}, $puller, 'all is acknowledged');
    is($scene->count('SELECT count(*) FROM inbox_failure'), 0, 'no failure is left');
    $scene->{node}->stop;
}

subtest 'own: the puller' => sub {
    my $scene = Inbox::Steps::scene('own', 'kill');
    Inbox::Steps::publish($scene);
    foreach my $life (1 .. 2)
    {
        my $puller = Inbox::Steps::start($scene);
        Inbox::Steps::wait_taken($scene, Inbox::Steps::taken($scene) + 30);
        $puller->kill9;
    }
    finish($scene, Inbox::Steps::start($scene));
};

foreach my $kind (Inbox::Service::kinds())
{
    subtest "$kind: the database" => sub {
        my $scene = Inbox::Steps::scene($kind, 'crash');
        Inbox::Steps::publish($scene);
        my $puller = Inbox::Steps::start($scene);
        foreach my $crash (1 .. 2)
        {
            Inbox::Steps::wait_taken($scene, Inbox::Steps::taken($scene) + 30);
            $scene->{node}->stop('immediate');
            $scene->{node}->start;
        }
        finish($scene, $puller);
    };
}
done_testing;
