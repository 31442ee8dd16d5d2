# SPDX-License-Identifier: PostgreSQL
"""The messages of one trial, and how it is run: all of it drawn from the seed.

Seeds up to PARKED leave one thing out: in an ordering key that is parked behind a dead letter, nothing
fails at the end of its transaction. Later ones are streams of that: everything in trouble in an
ordering key fails there, is parked or has others parked behind it, and fails again when an operator
releases it. Seeds that the guards have been shown with would be other streams without that border.

An intent is what a producer wants to happen: it has a key, a payload, perhaps an ordering key, and
perhaps a trouble. It is published once, or again as a message of its own; another intent may have
the same key by mistake.
"""

import json
import random

# The handler's fault, every time: a dead letter.
POISON = ['22012', '22P02', '23505', '23514', 'P0001', '0A000', '2F003', '42883', '3F000', 'ZZ001',
          'division', 'cast', 'no table', 'no function', 'no schema', 'commit',
          'unbalanced', 'at commit']
# Of these, what fails when its transaction ends.
DEFERRED = ['unbalanced', 'at commit']
# Nobody's fault however often it happens.
TRANSIENT = ['40P01', '55P03', '40001', '53200', '58030', '25006', '08006', '57P03']
# Over after some attempts that count, fewer than make it dead.
PASSING = ['22012', 'P0001', '57014', 'XX000', '42P01', 'unbalanced', 'at commit']

# Seeds from here on: see above.
PARKED = 100001

KILLS = ['puller', 'backend', 'sessions', 'server']
MESSAGES = 500
NASTY = ['%s', '%s "quoted"', "%s 'it''s'", '%s\nbelow', '%s \\ back', '%s \u00e4\u4e2d\U0001f600']


class Intent:
    """What a producer wants to happen once."""

    def __init__(self, number, key, lane):
        self.number = number
        self.key = key          # None: the producer forgot it
        self.lane = lane        # the ordering key, or None
        self.trouble = None
        self.times = None       # how often it is in trouble; None: always
        self.accounts = (0, 0)
        self.amount = 0

    def is_poison(self):
        return self.trouble is not None and self.times is None

    def payload(self, corrected=False):
        fields = {'intent': self.number, 'from': self.accounts[0], 'to': self.accounts[1],
                  'amount': self.amount}
        if corrected:
            return json.dumps(fields)
        if self.trouble is not None:
            fields['trouble'] = self.trouble
        if self.times is not None:
            fields['times'] = self.times
        return json.dumps(fields)


class Stream:
    """What is published, in this order, and under which circumstances it is consumed."""

    def __init__(self, seed):
        self.seed = seed
        self.parked = seed >= PARKED
        # A stream of its own for each, so that one more draw here does not change another.
        self.draw_circumstances(random.Random('%d circumstances' % seed))
        self.intents = []
        self.messages = []
        self.draw_messages(random.Random('%d messages' % seed))

    def draw_circumstances(self, draw):
        self.kill = KILLS[self.seed // 3 % len(KILLS)] if self.seed % 3 == 0 else None
        # Counted in messages acknowledged by then.
        self.kills = []
        if self.kill:
            self.kills = sorted(draw.sample(range(20, 400), draw.choice([1, 1, 2])))
        self.max_attempts = draw.choice([1, 1, 2, 3])
        self.policy = draw.choice(['continue', 'continue', 'park'])
        self.pullers = draw.choice([1, 1, 2, 3])
        self.workers = draw.choice([1, 1, 2, 4])
        self.batch_size = draw.choice([1, 7, 50, 200, 200])
        self.published_before = draw.choice([0, MESSAGES // 2, MESSAGES])
        self.redelivery = draw.choice([0, 0, 0.02, 0.1])
        if self.parked:
            self.policy = 'park'

    def draw_messages(self, draw):
        # Troubles are few where each costs seconds of backoff.
        rate = draw.choice([0, 0.004, 0.01, 0.04 / self.max_attempts])
        lanes = ['lane %d' % i for i in range(draw.choice([0, 3, 20, 60]))]
        if self.parked:
            rate = 0.02 / self.max_attempts
            lanes = ['lane %d' % i for i in range(draw.choice([3, 20, 60]))]
        while len(self.messages) < MESSAGES:
            lane = draw.choice(lanes) if lanes and draw.random() < 0.7 else None
            for _ in range(draw.choice([1, 1, 2, 5, 20])):
                self.add_intent(draw, lane, rate)
        del self.messages[MESSAGES:]

    def add_intent(self, draw, lane, rate):
        intent = self.new_intent(draw, lane)
        self.draw_trouble(draw, intent, rate)
        self.messages.append(intent)
        if intent.key is None:
            return
        if draw.random() < 0.08:
            self.repeat(draw, intent)
        if draw.random() < (0.4 if intent.trouble else 0.02):
            self.mistake(draw, intent)

    def new_intent(self, draw, lane):
        number = len(self.intents)
        key = draw.choice(NASTY) % ('s%d-%d' % (self.seed, number))
        intent = Intent(number, None if draw.random() < 0.01 else key, lane)
        intent.accounts = tuple(draw.sample(range(1, 51), 2))
        intent.amount = draw.randint(1, 10000)
        self.intents.append(intent)
        return intent

    def draw_trouble(self, draw, intent, rate):
        if intent.key is None:
            return
        if draw.random() < rate:
            intent.trouble = draw.choice(self.possible(POISON, intent))
        elif draw.random() < rate:
            intent.trouble = draw.choice(TRANSIENT)
            intent.times = draw.choice([1, 1, 2])
        elif draw.random() < rate and self.max_attempts > 1:
            intent.trouble = draw.choice(self.possible(PASSING, intent))
            # In a batch the first is no attempt yet: it is only how the batch is cut.
            intent.times = draw.choice([1, 2, 2]) if self.max_attempts > 2 else 1

    def possible(self, troubles, intent):
        """What fails at the end of its transaction in an ordering key that may be parked: see above."""
        if self.policy == 'park' and intent.lane is not None:
            return [one for one in troubles if (one in DEFERRED) == self.parked]
        return troubles

    def repeat(self, draw, intent):
        """Published again, at once or later: a producer that got no answer."""
        for _ in range(draw.choice([1, 1, 3])):
            self.put_later(draw, intent)

    def mistake(self, draw, intent):
        """Another intent under the same key."""
        other = self.new_intent(draw, intent.lane)
        other.key = intent.key
        self.draw_trouble(draw, other, 0.3 if intent.trouble else 0)
        self.put_later(draw, other)

    def put_later(self, draw, intent):
        distance = draw.choice([0, 0, 3, 50])
        place = max(0, len(self.messages) - distance)
        first = next(i for i, one in enumerate(self.messages) if one.key == intent.key)
        self.messages.insert(max(place, first + 1), intent)

    def is_calm(self):
        """Nothing is killed and nothing comes again too early."""
        return self.kill is None and self.redelivery == 0

    def sequences(self):
        return ['tried_%d' % one.number for one in self.intents if one.times is not None]

    def describe(self):
        """One line for people."""
        kinds = [('poison', sum(one.is_poison() for one in set(self.messages))),
                 ('passing troubles', sum(one.times is not None for one in set(self.messages))),
                 ('without key', sum(one.key is None for one in self.messages))]
        text = ', '.join('%d %s' % (count, name) for name, count in kinds)
        return '%s, %s, attempts %d, pullers %d of %d, batches of %d%s' % (
            text, self.policy, self.max_attempts, self.pullers, self.workers, self.batch_size,
            ', kills: %s' % self.kill if self.kill else '')
