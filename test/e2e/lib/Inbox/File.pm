# SPDX-License-Identifier: PostgreSQL
# Files that a puller or a service reads while a test writes them.
package Inbox::File;
use strict;
use warnings;
use Exporter qw(import);

our @EXPORT = qw(write_file);

# All at once, so that nobody reads half of it, and for nobody else's eyes. Returns the path.
sub write_file
{
    my ($path, $text) = @_;
    open(my $fh, '>', "$path.new") or die "could not write $path.new: $!\n";
    chmod(0600, $fh);
    print $fh $text;
    close($fh);
    rename("$path.new", $path) or die "could not rename $path.new: $!\n";
    return $path;
}

1;
