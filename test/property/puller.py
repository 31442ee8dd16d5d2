# SPDX-License-Identifier: PostgreSQL
"""A running inbox-puller."""

import os
import subprocess
import time


class Puller:
    """One process; its log is kept for a trial that fails."""

    def __init__(self, program, log, service, options):
        self.log = log
        environment = dict(os.environ, PUBSUB_EMULATOR_HOST=service.address)
        with open(log, 'ab') as out:
            self.process = subprocess.Popen(
                [program, '--subscription', service.name, '--log-format=json',
                 '--log-level=debug', *options],
                env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def kill(self):
        """Returns whether it was there to be killed."""
        running = self.process.poll() is None
        self.process.kill()
        self.process.wait()
        return running

    def has_started(self):
        """Until its first line it may not be ready for a signal."""
        return os.path.getsize(self.log) > 0

    def wait_started(self):
        end = time.monotonic() + 60
        while not self.has_started() and time.monotonic() < end:
            time.sleep(0.01)

    def stop(self):
        """Returns the exit status; negative: the signal that ended it; None: it would not end."""
        self.wait_started()
        self.process.terminate()
        try:
            return self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None
