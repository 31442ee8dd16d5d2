# SPDX-License-Identifier: PostgreSQL
"""What may have become of a stream, worked out from the stream alone.

Within an ordering key all is decided: the first message of a key wins it, in publish order, and
where that is the policy, those behind a dead letter are parked. Of messages without an ordering key
any may come first, so there the winner is taken from what is observed, and all else must follow
from it.
"""

from collections import Counter, defaultdict


class Model:
    """Compares what is observed with what the stream allows; collects sentences on differences."""

    def __init__(self, stream, observed):
        self.stream = stream
        self.observed = observed
        self.problems = []
        self.effects = defaultdict(list)
        for key, intent in observed['effects']:
            self.effects[key].append(intent)
        self.rows = defaultdict(list)
        for row in observed['failures']:
            self.rows[row['key'], row['status']].append(row)

    def fail(self, text, *values):
        self.problems.append(text % values)

    def check(self):
        self.claimed = set()
        self.fates = self.fates_in_lanes()
        self.check_keys()
        self.check_without_key()
        self.check_nothing_else()
        self.check_order()
        self.check_books()
        return self.problems

    # ---- what must become of each key that has an ordering key ---------------------------------

    def fates_in_lanes(self):
        """By key: its first intent, and 'applied', 'dead' or 'parked'."""
        fates = {}
        held_up = set()
        for intent in self.stream.messages:
            if intent.lane is None or intent.key in fates:
                continue
            fate = 'dead' if intent.key is None or intent.is_poison() else 'applied'
            if intent.key is not None:
                fates[intent.key] = intent, 'parked' if intent.lane in held_up else fate
            if fate == 'dead' and self.stream.policy == 'park':
                held_up.add(intent.lane)
        return fates

    def check_released(self):
        """After an operator has settled every dead letter of an ordering key."""
        self.check_order()
        for key, (first, _) in self.fates_in_lanes().items():
            if self.effects[key] != [first.number]:
                self.fail('key %r: applied intents %r, not the first one, %d', key,
                          self.effects[key], first.number)
        for (key, status), rows in self.rows.items():
            if status in ('dead', 'parked') and any(row['ordering_key'] for row in rows):
                self.fail('key %r is still %s', key, status)
        return self.problems

    # ---- what became of each key ------------------------------------------------------------

    def check_keys(self):
        contenders = defaultdict(list)
        for intent in self.stream.messages:
            if intent.key is not None and intent not in contenders[intent.key]:
                contenders[intent.key].append(intent)
        for key, intents in contenders.items():
            winner = self.winner(key, intents)
            if winner is not None:
                self.claimed.add(key)
                self.check_losers(key, [one for one in intents if one is not winner])

    def winner(self, key, intents):
        """The intent that has the claim; None after something was wrong."""
        found = [('applied', number) for number in self.effects[key]]
        found += [(status, row['intent']) for status in ('dead', 'parked')
                  for row in self.rows[key, status]]
        if len(found) != 1:
            self.fail('key %r came to more or less than one end: %r', key, found)
            return None
        fate, number = found[0]
        winner = next((one for one in intents if one.number == number), None)
        if winner is None:
            self.fail('key %r: intent %r was never published with it', key, number)
            return None
        first, expected = self.fates.get(key) or (
            winner, 'dead' if winner.is_poison() else 'applied')
        shared = any(one.trouble for one in intents if one is not winner)
        if fate == 'dead' and self.has_excuse(winner, shared, self.rows[key, 'dead'][0]):
            pass
        elif (winner, fate) != (first, expected):
            self.fail('key %r: intent %d with trouble %r is %s; it should be intent %d, %s', key,
                      number, winner.trouble, fate, first.number, expected)
        elif fate == 'dead' and not shared:
            self.check_attempts(winner, self.rows[key, 'dead'][0])
        return winner

    def has_excuse(self, intent, shared, row):
        """
        Attempts are a key's, and another intent of it may have used them up. A message that is
        there twice, or fails for now whenever its backend is killed, may be taken for the reason; so
        may any that ran at more kills than it has attempts: at the first among others, then alone.
        """
        if row['sqlstate'] == 'IX006':
            return (bool(intent.times) or self.stream.messages.count(intent) > 1 or shared
                    or self.stream.kill in ('backend', 'server')
                    and len(self.stream.kills) > self.stream.max_attempts)
        return bool(intent.times) and shared and intent.lane is None

    def check_attempts(self, intent, row):
        most = self.stream.max_attempts
        if row['attempts'] != most:
            self.fail('key %r: dead after %s attempts', intent.key, row['attempts'])
        least = 0.8 * (2 ** (most - 1) - 1)
        if self.has_its_pauses() and row['seconds'] < least:
            self.fail('key %r: dead after %s s, its pauses are %s s or more', intent.key,
                      row['seconds'], least)

    def has_its_pauses(self):
        """Not if something was killed: what ran then is tried again at once, and counts."""
        return self.stream.kill is None

    def check_losers(self, key, losers):
        kept = Counter(row['intent'] for row in self.rows[key, 'conflict'])
        if kept != Counter(one.number for one in losers):
            self.fail('key %r: conflicts of intents %r are kept, not of %r', key, sorted(kept),
                      sorted(one.number for one in losers))

    def check_without_key(self):
        for intent, message_id in zip(self.stream.messages, self.observed['message_ids']):
            if intent.key is None:
                key = 'mid:' + message_id
                reasons = [row['reason'] for row in self.rows[key, 'dead']]
                self.claimed.add(key)
                if reasons != ['no_key']:
                    self.fail('message %s without key: dead letters %r', message_id, reasons)

    # ---- the whole --------------------------------------------------------------------------

    def check_nothing_else(self):
        claims = Counter(self.observed['claims'])
        if claims != Counter(self.claimed):
            self.fail('claims that should not be: %r; that are missing: %r',
                      list(claims - Counter(self.claimed)), list(Counter(self.claimed) - claims))
        keys = {intent.key for intent in self.stream.messages} | self.claimed
        for key in set(self.effects) | {key for key, _ in self.rows}:
            if key not in keys:
                self.fail('key %r was never published', key)
        for (key, status), rows in self.rows.items():
            if rows and status not in ('dead', 'conflict', 'parked'):
                self.fail('key %r has a row left with status %s', key, status)
        if self.observed['unacked'] != 0:
            self.fail('%d messages are not acknowledged', self.observed['unacked'])

    def check_order(self):
        lane_of = {one.key: one.lane for one in self.stream.messages if one.key is not None}
        happened = defaultdict(list)
        for key, _ in self.observed['effects']:
            if lane_of.get(key) is not None:
                happened[lane_of[key]].append(key)
        places = {}
        for place, intent in enumerate(self.stream.messages):
            places.setdefault(intent.key, place)
        for lane, keys in happened.items():
            for before, after in zip(keys, keys[1:]):
                if places[before] > places[after]:
                    self.fail('%s: %r was applied before %r', lane, before, after)

    def check_books(self):
        balance = Counter()
        by_number = {one.number: one for one in self.stream.messages}
        for _, number in self.observed['effects']:
            intent = by_number.get(number)
            if intent is not None:
                balance[intent.accounts[0]] -= intent.amount
                balance[intent.accounts[1]] += intent.amount
        expected = {account: amount for account, amount in balance.items() if amount != 0}
        observed = {account: amount for account, amount in self.observed['balances'] if amount != 0}
        if observed != expected:
            self.fail('the balances are not those of the applied intents')
