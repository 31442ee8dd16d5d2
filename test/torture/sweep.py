# SPDX-License-Identifier: PostgreSQL
"""A sweep: one point after the other, each action at its first passages, and little else."""

import json
import random
import time

from check import Stakes
from round import PAUSE, Round
from schedule import PROVOKED, Fault, points_of, provocation

# Seconds for a fault to come about, and then for messages to be acknowledged again; and how often a
# fault that hit while no message was leased is tried again.
PATIENCE = 300
TRIES = 20


def all_sweeps(options):
    """Names of rounds: POINT/PASSAGES."""
    return ['%s/%d' % (point, options.passages) for point in points_of(options.managed)]


class Sweep(Round):
    """All actions of one point, at its first to PASSAGES-th passage."""

    hit = None              # the last one of the point: microseconds

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
        """Waits until it has hit while a message was leased, and until life goes on."""
        if self.hit is None:
            self.live('before %s' % fault.describe())
        for _ in range(TRIES):
            if not self.bring_about(fault):
                return
            self.live('after %s' % fault.describe())
            if self.was_at_stake():
                return

    def bring_about(self, fault):
        """A point that is not hit in all that time makes the run void."""
        self.hit = None
        self.rig.faults.arm(fault.what, fault.action, fault.nth)
        return self.wait_until(lambda: self.hit is not None, PROVOKED.get(self.point))

    def live(self, when):
        acked = self.acked()
        if not self.wait_until(lambda: self.acked() > acked + 10, None):
            self.problems.append('nothing is acknowledged ' + when)

    def note_hit(self, at, point):
        if point == self.point:
            self.hit = at

    def was_at_stake(self):
        """As the check will see it."""
        with open(self.rig.service.history, encoding='utf8') as history:
            history.seek(self.history_from)
            lines = history.read().splitlines(keepends=True)
        events = [json.loads(line) for line in lines if line.endswith('\n')]
        return Stakes(one for one in events if one.get('subscription', self.rig.service.name)
                      == self.rig.service.name).any_at(self.hit)

    def acked(self):
        return self.rig.service.call('GET', '/control/stats')['counters']['acked']

    def wait_until(self, condition, deed):
        """
        False: in vain. The deed that brings it about is done again after longer and longer pauses,
        so that a machine that is slow gets to where it can hit.
        """
        end = time.monotonic() + PATIENCE
        pause = 5 if deed == 'database stalled' else 0.3
        next_deed = time.monotonic() + 0.3
        while not condition():
            now = time.monotonic()
            if now > end:
                return False
            if deed is not None and now > next_deed:
                super().inject(provocation(self.draw, self.point))
                next_deed = time.monotonic() + pause
                pause = min(pause * 1.5, 20)
            self.tend()
            time.sleep(PAUSE)
        return True
