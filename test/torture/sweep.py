# SPDX-License-Identifier: PostgreSQL
"""A sweep: one point after the other, each action at its first passages, and little else."""

import random
import time

from round import PAUSE, Round
from schedule import PROVOKED, Fault, points_of, provocation

# Seconds for a fault to come about, and then for messages to be applied again.
PATIENCE = 60


def all_sweeps(options):
    """Names of rounds: POINT/PASSAGES."""
    return ['%s/%d' % (point, options.passages) for point in points_of(options.managed)]


class Sweep(Round):
    """All actions of one point, at its first to PASSAGES-th passage."""

    def draw_faults(self):
        self.point, passages = self.name.split('/')
        # So that each point comes about again and again.
        self.policy, self.max_attempts, self.backlog = 'continue', 2, 60
        self.ledger.lane_rate, self.ledger.trouble_rate = 0.7, 0.01
        self.rules = [{'on': 'deliver', 'do': 'duplicate', 'probability': 0.05},
                      {'on': 'deliver', 'do': 'share',
                       'probability': 0.3 if self.point == 'claim-wait' else 0.05},
                      {'on': 'ack_id', 'do': 'redeliver', 'probability': 0.03}]
        if self.point == 'claim-taken':
            # It takes a row of large calls without duplicates or troubles, and then a duplicate.
            self.ledger.repeats = self.ledger.mistakes = 0
            self.ledger.lane_rate = self.ledger.trouble_rate = 0
            self.rules = [{'on': 'ack_id', 'do': 'redeliver', 'probability': 0.01}]
            self.backlog = 300
        draw = random.Random(self.name)
        return [Fault(draw, self.point, action, nth)
                for action in points_of(self.options.managed)[self.point]
                for nth in range(1, int(passages) + 1)]

    def inject(self, fault):
        """Waits until it has hit, and until life goes on."""
        faults = self.rig.faults
        faults.arm(fault.what, fault.action, fault.nth)
        self.wait_until('%s does not come about' % fault.describe(),
                        lambda: not faults.is_armed(fault.what), self.provoke)
        acked = self.acked()
        self.wait_until('nothing is acknowledged after %s' % fault.describe(),
                        lambda: self.acked() > acked + 10, lambda: None)

    def provoke(self):
        deed = PROVOKED.get(self.point)
        if deed is not None:
            super().inject(provocation(self.draw, self.point))
            self.next_provocation = time.monotonic() + (5 if deed == 'database stalled' else 0.3)

    def acked(self):
        return self.rig.service.call('GET', '/control/stats')['counters']['acked']

    def wait_until(self, what, condition, provoke):
        start = time.monotonic()
        self.next_provocation = start + 0.3
        while not condition():
            now = time.monotonic()
            if now > start + PATIENCE:
                self.problems.append(what)
                return
            if now > self.next_provocation:
                provoke()
            self.tend()
            time.sleep(PAUSE)
