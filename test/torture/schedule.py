# SPDX-License-Identifier: PostgreSQL
"""What goes wrong in a round, and when: drawn from the seed alone, in steps of the clock."""

from points import EXTENSION, PULLER

# From outside, and how often in proportion.
DEEDS = {
    'puller killed': 3, 'puller stopped': 3, 'puller terminated': 3,
    'backend killed': 2, 'backend stopped': 2, 'sessions terminated': 2, 'statements cancelled': 2,
    'server crashed': 2, 'helper process killed': 1, 'handler replaced': 1,
    'service frozen': 2, 'leases ended': 3,
    'database cut': 3, 'database refused': 2, 'database stalled': 2, 'database slow': 1,
    'commit cut': 6, 'byte cut': 3,
    'service cut': 3, 'service refused': 2, 'service stalled': 2, 'request cut': 6,
}
# Not without a puller that is asked to stop, a connection that is lost, or a crash at work.
PROVOKED = {'stop-begin': 'puller terminated', 'stop-step': 'puller terminated',
            'stop-end': 'puller terminated', 'connect': 'database cut', 'greeted': 'database cut',
            'outcome-unknown': 'database cut', 'suspect-taken': 'backend killed',
            'modack-answered': 'database stalled'}
COMMIT_POINTS = ['commit-query', 'commit-sent', 'commit-answer', 'commit-answered']
REQUEST_POINTS = ['request', 'request-sent', 'response', 'response-sent']
PATHS = [':pull', ':acknowledge', ':modifyAckDeadline']


class Fault:
    """gap: steps of the clock after the one before; span: how many it lasts, if it lasts."""

    def __init__(self, draw, what, action='outside', nth=1):
        self.what = what
        self.action = action
        self.nth = nth
        self.gap = draw.choice([3, 5, 10, 20])
        self.span = draw.choice([2, 5, 10, 30, 60])
        # Whatever else the deed asks for.
        self.choice = draw.random()
        self.trigger = self.draw_trigger(draw)
        self.zombie = draw.random() < 0.5

    def draw_trigger(self, draw):
        if self.what == 'commit cut':
            return 'on=%s nth=%d do=cut offset=%d' % (
                draw.choice(COMMIT_POINTS), draw.randint(1, 4), draw.choice([0, 0, 1, 3, 7, 20]))
        if self.what == 'byte cut':
            return 'on=%s at=%d nth=%d do=%s' % (
                draw.choice(['client-byte', 'server-byte']), draw.randint(1, 30000),
                draw.randint(1, 2), draw.choice(['cut', 'cut-client', 'cut-server']))
        if self.what == 'request cut':
            return 'on=%s path=%s nth=%d do=cut offset=%d' % (
                draw.choice(REQUEST_POINTS), draw.choice(PATHS), draw.randint(1, 3),
                draw.choice([0, 0, 1, 40, 200]))
        return None

    def name(self):
        """Without spaces."""
        return self.what.replace(' ', '-')

    def describe(self):
        if self.action == 'outside':
            return '+%d %s%s' % (self.gap, self.what, ' ' + self.trigger if self.trigger else '')
        return '+%d %s %s at passage %d' % (self.gap, self.action, self.what, self.nth)


def points_of(managed):
    return PULLER if managed else {**PULLER, **EXTENSION}


def draw_faults(draw, count, managed):
    """Half of them at points within, half from outside."""
    points = points_of(managed)
    deeds = list(DEEDS)
    faults = []
    while len(faults) < count:
        if draw.random() < 0.4:
            faults.append(Fault(draw, draw.choices(deeds, DEEDS.values())[0]))
            continue
        point = draw.choice(list(points))
        faults.append(Fault(draw, point, draw.choice(points[point]), draw.randint(1, 5)))
        if point in PROVOKED:
            faults.append(provocation(draw, point))
    return faults


def provocation(draw, point):
    """The deed that brings a point about."""
    fault = Fault(draw, PROVOKED[point])
    if fault.what == 'database stalled':
        # Leases are extended when a third of the ack deadline is over.
        fault.span = 400
    return fault


def draw_rules(draw):
    """How the service misbehaves all along; each with a small probability."""
    kinds = [
        {'on': 'deliver', 'do': 'duplicate'}, {'on': 'deliver', 'do': 'share'},
        {'on': 'deliver', 'do': 'expire'}, {'on': 'ack_id', 'do': 'redeliver'},
        {'on': 'ack_id', 'do': 'ignore'}, {'on': 'ack', 'do': 'ignore'},
        {'on': 'pull', 'do': 'expire'}, {'on': 'pull', 'do': 'half'},
        {'on': 'pull', 'do': 'garbage'}, {'on': 'pull', 'do': 'cut', 'bytes': 100},
        {'on': 'pull', 'do': 'status', 'code': 503},
        {'on': 'ack', 'do': 'status', 'code': 500}, {'on': 'ack', 'do': 'reset'},
        {'on': 'ack', 'do': 'reset', 'when': 'after'},
        {'on': 'pull', 'do': 'reset', 'when': 'after'},
        {'on': 'modack', 'do': 'ignore'}, {'on': 'modack', 'do': 'reset', 'when': 'after'},
        {'on': 'get', 'do': 'status', 'code': 503}, {'on': 'ack', 'do': 'delay', 'ms': 50},
    ]
    rules = []
    for rule in draw.sample(kinds, draw.randint(4, 9)):
        rate = 0.005 if rule['on'] in ('deliver', 'ack_id') else 0.05
        rules.append(dict(rule, probability=draw.choice([rate / 4, rate, rate])))
    return rules
