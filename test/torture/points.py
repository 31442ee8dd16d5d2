# SPDX-License-Identifier: PostgreSQL
"""The fault points compiled into puller and extension, and the file by which they are armed."""

import mmap
import os
import struct

KILL, STOP, ERROR = 'kill', 'stop', 'error'
ACTIONS = {KILL: 1, STOP: 2, ERROR: 3}

# In the order of a message's way. Where nothing can fail there is no error.
PULLER = {
    'connect': (KILL, STOP, ERROR),             # a connection is there, nothing was asked yet
    'greeted': (KILL, STOP, ERROR),             # versions, handler and cluster are known
    'pull-send': (KILL, STOP, ERROR),           # before the pull
    'pull-answered': (KILL, STOP, ERROR),       # messages are leased, and nobody has read them
    'pull-decoded': (KILL, STOP),               # and now somebody has
    'http-answered': (KILL, STOP, ERROR),       # any answer of the service
    'batch-taken': (KILL, STOP),                # before a batch is made of them
    'suspect-taken': (KILL, STOP),              # before one that may have killed a backend
    'transaction-send': (KILL, STOP, ERROR),    # before BEGIN
    'commit-send': (KILL, STOP, ERROR),         # before COMMIT
    'transaction-sent': (KILL, STOP, ERROR),    # COMMIT is sent, nothing read
    'call-answered': (KILL, STOP, ERROR),       # verdicts are read, the COMMIT's answer is not
    'commit-answered': (KILL, STOP, ERROR),     # the tag is read, the end of the answer is not
    'commit-read': (KILL, STOP),                # committed, and nothing acknowledged
    'outcome-unknown': (KILL, STOP),            # the connection was lost at work
    'failure-send': (KILL, STOP),               # before a failure is recorded
    'failure-answered': (KILL, STOP),           # it is recorded
    'ack-add': (KILL, STOP),                    # before one is put among those to be acknowledged
    'ack-send': (KILL, STOP, ERROR),            # before the request
    'ack-answered': (KILL, STOP),               # the service has done it, and nobody knows
    'give-back': (KILL, STOP),                  # before a message is given back
    'modack-send': (KILL, STOP, ERROR),
    'modack-answered': (KILL, STOP),            # a lease was extended
    'given-back': (KILL, STOP),                 # the service has it again
    'stop-begin': (KILL, STOP),                 # SIGTERM was read
    'stop-step': (KILL, STOP),
    'stop-end': (KILL, STOP),                   # all is settled
}
EXTENSION = {
    'call-begin': (KILL, STOP, ERROR),          # the source is known
    'claim-wait': (KILL, STOP, ERROR),          # before another transaction's claim is waited for
    'claim-heap': (KILL, STOP, ERROR),          # claims are in the table, and in no index
    'claim-index': (KILL, STOP, ERROR),         # and in the index
    'claim-taken': (KILL, STOP, ERROR),         # before claims are taken back
    'duplicate': (KILL, STOP, ERROR),           # a claim was read
    'decided': (KILL, STOP, ERROR),             # all claimed, no handler has run
    'handler-begin': (KILL, STOP, ERROR),
    'handler-end': (KILL, STOP, ERROR),
    'applied': (KILL, STOP, ERROR),             # all handlers have run
    'failure-keep': (KILL, STOP, ERROR),        # before a conflict is kept
    'pre-commit': (KILL, STOP, ERROR),          # deferred triggers have run
    'proof': (KILL, STOP, ERROR),               # before what duplicates rest on is flushed
    'committed': (KILL, STOP),                  # on disk, and nobody was told
    'aborted': (KILL, STOP),
}
POINTS = {**PULLER, **EXTENSION}
# What counts time: one more for each step of a message's way through a puller.
CLOCK = ['pull-send', 'batch-taken', 'transaction-sent', 'commit-read', 'ack-send', 'connect']

SLOT = struct.Struct('=32sQQqII')
PASSAGES, HITS, COUNTDOWN, ACTION = 32, 40, 48, 56


class FaultFile:
    """The points of one rig; its processes find the file by INBOX_FAULT_FILE."""

    def __init__(self, path):
        self.path = path
        self.places = {name: place * SLOT.size for place, name in enumerate(POINTS)}
        with open(path, 'wb') as file:
            for name in POINTS:
                file.write(SLOT.pack(name.encode(), 0, 0, 0, 0, 0))
        with open(path, 'r+b') as file:
            self.map = mmap.mmap(file.fileno(), 0)
        self.hits_file = path + '.hits'
        with open(self.hits_file, 'wb'):
            pass
        self.read_to = 0

    def get(self, name, field):
        return struct.unpack_from('@q', self.map, self.places[name] + field)[0]

    def arm(self, name, action, nth):
        place = self.places[name]
        struct.pack_into('@q', self.map, place + COUNTDOWN, 0)
        struct.pack_into('@I', self.map, place + ACTION, ACTIONS[action])
        struct.pack_into('@q', self.map, place + COUNTDOWN, nth)

    def disarm(self):
        for name in POINTS:
            struct.pack_into('@q', self.map, self.places[name] + COUNTDOWN, 0)

    def is_armed(self, name):
        return self.get(name, COUNTDOWN) > 0

    def passages(self):
        return {name: self.get(name, PASSAGES) for name in POINTS}

    def clock(self):
        return sum(self.get(name, PASSAGES) for name in CLOCK)

    def new_hits(self):
        """Lists of microseconds, process id, point, action; as they were written."""
        if os.path.getsize(self.hits_file) == self.read_to:
            return []
        with open(self.hits_file, encoding='utf8') as file:
            file.seek(self.read_to)
            text = file.read()
        whole = text.rfind('\n') + 1
        self.read_to += whole
        return [(int(at), int(pid), point, action)
                for at, pid, point, action, _ in map(str.split, text[:whole].splitlines())]

    def note(self, deed, at):
        """A fault from outside, in the same file: what the checker takes for one more hit."""
        with open(self.hits_file, 'a', encoding='utf8') as file:
            file.write('%d 0 %s outside 0\n' % (at * 1000000, deed))
