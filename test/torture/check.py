#!/usr/bin/python3
# SPDX-License-Identifier: PostgreSQL
"""Whether what a round left behind keeps the promise: from the history and the database alone.

check.py FOLDER. In FOLDER: round.json (names and settings), transfers.jsonl (what was meant),
published.jsonl (message id and transfer), history.jsonl (of the Pub/Sub server), hits (moments of
faults) and database.json (what is in the tables). Prints the problems; knows nothing of the
product.

  I1  the sum of all balances is what it was
  I2  no key was applied twice
  I3  every acknowledged message has its effect, is a dead letter, parked or a conflict
  I4  so has every published one, and just one of these
  I5  each balance is what the effects make of it
  I6  claims are those of effects, dead letters and parked messages, no more and no less
  I7  within an ordering key, effects are in the order in which they were published
  I8  no acknowledgement came before what it acknowledges was to be seen in the database
  I9  nothing is left unacknowledged
  I10 nothing is acknowledged that was not delivered
  I11 faults hit while messages were leased: those that did not are not counted
"""

import datetime
import json
import os
import sys
from collections import Counter, defaultdict

ENDS = ('dead', 'parked')


class Check:
    """problems: pairs of a kind (lost, doubled, order, other) and a sentence."""

    def __init__(self, folder):
        self.folder = folder
        self.round = self.read('round.json')
        self.database = self.read('database.json')
        self.transfers = {one['number']: one for one in self.read_lines('transfers.jsonl')}
        self.published = self.read_lines('published.jsonl')
        self.events = [one for one in self.read_lines('history.jsonl')
                       if one.get('subscription', self.round['subscription'])
                       == self.round['subscription']]
        self.problems = []
        self.counts = Counter()
        self.hits = Counter()

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding='utf8') as file:
            return json.load(file)

    def read_lines(self, name):
        with open(os.path.join(self.folder, name), encoding='utf8') as file:
            return [json.loads(line) for line in file]

    def fail(self, kind, text, *values):
        self.problems.append((kind, text % values))

    def run(self):
        self.arrange()
        self.check_ends()
        self.check_balances()
        self.check_claims()
        self.check_order()
        self.check_acknowledged()
        self.count_hits()
        return self

    # ---- who is who -------------------------------------------------------------------------

    def arrange(self):
        self.place = {}
        self.rivals = defaultdict(list)
        self.message_of = {}
        for place, line in enumerate(self.published):
            transfer = self.transfers[line['transfer']]
            key = transfer['key'] if transfer['key'] is not None else 'mid:' + line['id']
            self.message_of[line['id']] = key
            self.place.setdefault(key, place)
            if transfer not in self.rivals[key]:
                self.rivals[key].append(transfer)
        self.effects = defaultdict(list)
        for _, key, number in self.database['effects']:
            self.effects[key].append(number)
        self.kept = defaultdict(list)
        for row in self.database['failures']:
            self.kept[row['key'], row['status']].append(row)
        self.counts['messages'] = len(self.published)

    # ---- I2, I3, I4 -------------------------------------------------------------------------

    def check_ends(self):
        for key, rivals in self.rivals.items():
            ends = [('applied', number) for number in self.effects[key]]
            for status in ENDS:
                ends += [(status, row['intent']) for row in self.kept[key, status]]
            if len(self.effects[key]) > 1:
                self.fail('doubled', 'key %s was applied %d times', key, len(self.effects[key]))
            elif not ends:
                self.fail('lost', 'key %s is neither applied nor kept', key)
            elif len(ends) > 1:
                self.fail('doubled', 'key %s came to several ends: %r', key, ends)
            else:
                self.check_end(key, rivals, *ends[0])
        for key in set(self.effects) | {key for key, _ in self.kept}:
            if key not in self.rivals:
                self.fail('other', 'key %s was never published', key)
        for (key, status), rows in self.kept.items():
            if rows and status not in ENDS + ('conflict',):
                self.fail('other', 'key %s is still %s', key, status)

    def check_end(self, key, rivals, end, number):
        self.counts[end] += 1
        winner = next((one for one in rivals if one['number'] == number), None)
        if key.startswith('mid:'):
            if self.kept[key, 'dead'][0]['reason'] != 'no_key':
                self.fail('other', 'message %s without a key is no dead letter for that', key)
            return
        if winner is None:
            self.fail('other', 'key %s: transfer %r was not published with it', key, number)
            return
        if winner['lane'] is not None and winner is not rivals[0]:
            self.fail('order', 'key %s was won by transfer %d, which came later', key, number)
        self.check_fate(key, winner, end)
        self.check_losers(key, [one for one in rivals if one is not winner])

    def check_fate(self, key, winner, end):
        if end == 'applied' and winner['trouble'] is not None:
            self.fail('other', 'key %s was applied in spite of %s', key, winner['trouble'])
        elif end == 'dead' and winner['trouble'] is None:
            # A server that is killed again and again with the same message at work.
            if self.kept[key, 'dead'][0]['sqlstate'] == 'IX006':
                self.counts['taken for the reason of a crash'] += 1
            else:
                self.fail('other', 'key %s is dead for no reason: %r', key,
                          self.kept[key, 'dead'][0])
        elif end == 'parked' and not self.is_behind_dead(key, winner):
            self.fail('other', 'key %s is parked behind nothing', key)

    def is_behind_dead(self, key, transfer):
        return self.round['policy'] == 'park' and any(
            row['ordering_key'] == transfer['lane'] and self.place[other] < self.place[key]
            for (other, status), rows in self.kept.items() if status == 'dead' for row in rows)

    def check_losers(self, key, losers):
        kept = Counter(row['intent'] for row in self.kept[key, 'conflict'])
        self.counts['conflicts'] += len(losers)
        for one in losers:
            if kept[one['number']] == 0:
                self.fail('lost', 'transfer %d lost key %s and is not kept', one['number'], key)
            elif kept[one['number']] > 1:
                self.fail('doubled', 'conflict of key %s is kept %d times', key,
                          kept[one['number']])
        if set(kept) - {one['number'] for one in losers}:
            self.fail('other', 'key %s: a conflict is kept of what was applied', key)

    # ---- I1, I5 -----------------------------------------------------------------------------

    def check_balances(self):
        accounts = range(1, self.round['accounts'] + 1)
        balance = {account: self.round['balance'] for account in accounts}
        for _, _, number in self.database['effects']:
            transfer = self.transfers[number]
            balance[transfer['accounts'][0]] -= transfer['amount']
            balance[transfer['accounts'][1]] += transfer['amount']
        observed = dict(self.database['balances'])
        if sum(observed.values()) != self.round['balance'] * self.round['accounts']:
            self.fail('other', 'the balances do not sum up to what they were')
        if observed != balance:
            self.fail('other', 'the balances are not those of the effects')

    # ---- I6 ---------------------------------------------------------------------------------

    def check_claims(self):
        claims = Counter(self.database['claims'])
        expected = {key for key in self.effects if self.effects[key]}
        expected |= {key for (key, status), rows in self.kept.items() if status in ENDS and rows}
        for key in expected - set(claims):
            self.fail('other', 'key %s has no claim', key)
        for key in set(claims) - expected:
            self.fail('lost', 'key %s has a claim and no effect', key)

    # ---- I7 ---------------------------------------------------------------------------------

    def check_order(self):
        lane_of = {key: rivals[0]['lane'] for key, rivals in self.rivals.items()}
        lanes = defaultdict(list)
        for _, key, _ in sorted(self.database['effects']):
            if lane_of.get(key) is not None:
                lanes[lane_of[key]].append(key)
        for lane, keys in lanes.items():
            for before, after in zip(keys, keys[1:]):
                if self.place[before] > self.place[after]:
                    self.fail('order', '%s: %s was applied before %s', lane, before, after)

    # ---- I3, I8, I9, I10 --------------------------------------------------------------------

    def check_acknowledged(self):
        delivered = set()
        acknowledged = set()
        for event in self.events:
            if event['event'] == 'deliver':
                self.counts['deliveries'] += 1
                delivered.add(event['ackId'])
            elif event['event'] == 'ack':
                self.check_ack(event, delivered, acknowledged)
            elif event['event'] == 'lookup' and event['outcome'] == 'lost':
                self.fail('lost', 'key %s was acknowledged before it was in the %s', event['key'],
                          event['database'])
        for line in self.published:
            if line['id'] not in acknowledged:
                self.fail('other', 'message %s was never acknowledged', line['id'])
        if self.database['unacked'] != 0:
            self.fail('other', '%d messages are left unacknowledged', self.database['unacked'])

    def check_ack(self, event, delivered, acknowledged):
        if event['outcome'] == 'foreign' or event['ackId'] not in delivered:
            self.fail('other', 'acknowledged without having been delivered: %r', event)
        elif event['outcome'] in ('done', 'redelivered'):
            self.counts['acknowledged'] += 1
            acknowledged.add(event['messageId'])

    # ---- I11 --------------------------------------------------------------------------------

    def count_hits(self):
        """Of each kind of fault, how many came while at least one message was leased."""
        hits = [(moment(event['at']), event['do'], 'service') for event in self.events
                if event['event'] == 'fault']
        with open(os.path.join(self.folder, 'hits'), encoding='utf8') as file:
            for line in file:
                at, _, point, action, _ = line.split()
                hits.append((int(at), point, action))
        stakes = Stakes(self.events)
        for at, point, action in sorted(hits):
            if stakes.any_at(at):
                self.hits[point, action] += 1
            else:
                self.counts['faults with nothing at stake'] += 1


class Stakes:
    """Whether a message was leased at a moment; of a history, for moments that do not go back."""

    def __init__(self, events):
        self.events = iter(events)
        self.next = next(self.events, None)
        self.end = {}       # of a message's lease: microseconds

    def any_at(self, at):
        while self.next is not None and moment(self.next['at']) <= at:
            self.take(self.next)
            self.next = next(self.events, None)
        return any(end > at for end in self.end.values())

    def take(self, event):
        at = moment(event['at'])
        if event['event'] == 'deliver':
            self.end[event['messageId']] = at + event['lease'] * 1000000
        elif event['event'] == 'modack' and event.get('outcome') == 'done':
            self.end[event['messageId']] = at + event['seconds'] * 1000000
        elif event['event'] == 'expire' or (event['event'] == 'ack' and event['outcome'] == 'done'):
            self.end.pop(event['messageId'], None)


def moment(text):
    """Microseconds since 1970."""
    whole, _, fraction = text.rstrip('Z').partition('.')
    seconds = datetime.datetime.fromisoformat(whole + '+00:00').timestamp()
    return int(seconds) * 1000000 + int((fraction + '000000')[:6])


def main():
    check = Check(sys.argv[1]).run()
    for kind, text in check.problems:
        print('%s: %s' % (kind, text))
    print(json.dumps({'counts': check.counts, 'hits': {' '.join(one): count
                                                       for one, count in check.hits.items()}}))
    sys.exit(1 if check.problems else 0)


if __name__ == '__main__':
    main()
