# SPDX-License-Identifier: PostgreSQL
# Where Google's Pub/Sub emulator is, if it is on this machine.
package Inbox::Emulator;
use strict;
use warnings;
use Cwd qw(realpath);
use File::Basename qw(dirname);

# The path of its program, or undef.
sub find
{
    my @places = ('/usr/lib/google-cloud-sdk', '/usr/share/google-cloud-sdk',
        '/snap/google-cloud-sdk/current', ($ENV{HOME} // '') . '/google-cloud-sdk');
    my @folders = split(/:/, $ENV{PATH} // '');
    push @places, map { dirname(dirname($_)) } grep { defined } map { realpath("$_/gcloud") } @folders;
    my @programs = map { "$_/platform/pubsub-emulator/bin/cloud-pubsub-emulator" } @places;
    unshift @programs, $ENV{PUBSUB_EMULATOR} // (), map { "$_/cloud-pubsub-emulator" } @folders;
    my ($found) = grep { -x } @programs;
    return $found;
}

1;
