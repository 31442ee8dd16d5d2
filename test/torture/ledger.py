# SPDX-License-Identifier: PostgreSQL
"""Transfers between accounts, drawn from a seed: what a round publishes."""

import json

ACCOUNTS = 50
TROUBLES = ['22012', '23505', 'P0001', '42P01', 'deferred', 'at commit']


class Transfer:
    """One intent of a producer; published once, or again under the same key."""

    def __init__(self, number, key, lane):
        self.number = number
        self.key = key          # None: the producer forgot it
        self.lane = lane        # the ordering key, or None
        self.trouble = None     # why it can never be booked
        self.accounts = (0, 0)
        self.amount = 0

    def payload(self):
        fields = {'intent': self.number, 'from': self.accounts[0], 'to': self.accounts[1],
                  'amount': self.amount}
        if self.trouble is not None:
            fields['trouble'] = self.trouble
        return json.dumps(fields)


class Ledger:
    """An endless row of messages. What they have in common is drawn first."""

    def __init__(self, name, draw):
        self.name = name
        self.draw = draw
        self.transfers = []
        self.recent = []
        self.trouble_rate = draw.choice([0.002, 0.005, 0.01])
        self.lane_rate = draw.choice([0.3, 0.7, 1])
        self.lanes = draw.choice([5, 20, 50])
        self.repeats = draw.choice([0.06, 0.06, 0.003])
        self.mistakes = 0.01
        # In one order, so that handlers do not deadlock; or as it comes.
        self.sorted_accounts = draw.random() < 0.7

    def take(self, count):
        """The next messages: a transfer that is published again stands in it again."""
        messages = []
        while len(messages) < count:
            messages.append(self.next_message())
        return messages

    def next_message(self):
        draw = self.draw
        if self.recent and draw.random() < self.repeats:
            return draw.choice(self.recent)
        if self.recent and draw.random() < self.mistakes:
            return self.mistake(draw.choice(self.recent))
        transfer = self.new_transfer(None)
        if transfer.key is not None:
            self.recent = self.recent[-40:] + [transfer]
        return transfer

    def new_transfer(self, key):
        draw = self.draw
        number = len(self.transfers)
        lane = 'account-%d' % draw.randint(1, self.lanes)
        lane = lane if draw.random() < self.lane_rate else None
        if key is None and draw.random() >= 0.003:
            key = '%s-%d' % (self.name, number)
        transfer = Transfer(number, key, lane)
        transfer.accounts = tuple(draw.sample(range(1, ACCOUNTS + 1), 2))
        transfer.amount = draw.randint(1, 1000)
        if self.sorted_accounts:
            transfer.accounts = tuple(sorted(transfer.accounts))
            transfer.amount *= draw.choice([-1, 1])
        if transfer.key is not None and draw.random() < self.trouble_rate:
            transfer.trouble = draw.choice(TROUBLES)
        self.transfers.append(transfer)
        return transfer

    def mistake(self, first):
        """Another intent under a key that is taken."""
        transfer = self.new_transfer(first.key)
        transfer.lane = first.lane
        transfer.trouble = None
        return transfer
