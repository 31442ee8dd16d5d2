# SPDX-License-Identifier: PostgreSQL
"""One seed: publishes its stream, lets pullers consume it, kills what it says, looks at the end."""

import json
import os
import time

from model import Model
from puller import Puller
from stream import MESSAGES, Stream

SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'schema.sql')
# Seconds within which everything must be acknowledged, and between two looks.
PATIENCE = 90
PAUSE = 0.02
# Seconds without progress after which leases are ended early.
STANDSTILL = 0.7


class Trial:
    """folder: where logs are kept; cluster and service serve no other trial meanwhile."""

    def __init__(self, seed, folder, cluster, service, program):
        self.stream = Stream(seed)
        self.folder = folder
        self.cluster = cluster
        self.service = service
        self.program = program
        self.schema = 'trial_%d' % seed
        self.pullers = []
        self.problems = []
        self.fell = 0

    def run(self):
        """Returns the problems found: sentences."""
        os.makedirs(self.folder)
        self.service.create(self.schema)
        self.create_ledger()
        try:
            message_ids = self.consume()
        finally:
            self.stop_pullers()
        observed = self.observe()
        observed['message_ids'] = message_ids
        self.keep('observed.json', observed)
        self.problems += Model(self.stream, observed).check()
        if self.stream.policy == 'park' and not self.problems:
            self.release()
            self.problems += Model(self.stream, self.observe()).check_released()
        self.service.delete()
        self.cluster.sql('DROP SCHEMA %s CASCADE' % self.schema)
        return self.problems

    # ---- what is consumed -------------------------------------------------------------------

    def create_ledger(self):
        with open(SCHEMA, encoding='utf8') as file:
            schema = file.read()
        sequences = ''.join('CREATE SEQUENCE %s;\n' % one for one in self.stream.sequences())
        self.cluster.sql(
            'CREATE SCHEMA %s;\nSET search_path = %s, public;\n%s\n%s'
            "SELECT inbox_configure('%s', max_attempts => %d, order_policy => '%s');\n"
            % (self.schema, self.schema, schema, sequences, self.service.name,
               self.stream.max_attempts, self.stream.policy))

    def consume(self):
        stream = self.stream
        ids = self.service.publish(stream.messages[:stream.published_before])
        if stream.redelivery > 0:
            self.service.redeliver(stream.redelivery, stream.seed)
        for _ in range(stream.pullers):
            self.start_puller()
        ids += self.service.publish(stream.messages[stream.published_before:])
        for done in stream.kills:
            self.wait_until(lambda: self.service.unacked() <= len(stream.messages) - done)
            self.wait_until(self.kill)
        self.service.behave()
        self.wait_all_acked()
        return ids

    def wait_all_acked(self):
        """Where an acknowledgement or a puller was lost, without waiting for the leases to end."""
        waiting = {'count': 0, 'since': time.monotonic()}

        def done():
            count = self.service.unacked()
            now = time.monotonic()
            if count != waiting['count']:
                waiting.update(count=count, since=now)
            elif now > waiting['since'] + STANDSTILL and not self.stream.is_calm():
                self.service.end_leases()
                waiting['since'] = now
            return count == 0
        self.wait_until(done)

    def wait_until(self, condition):
        """Gives up quietly: what is missing in the end is told by the model."""
        end = time.monotonic() + PATIENCE
        while not condition() and time.monotonic() < end:
            time.sleep(PAUSE)

    # ---- who consumes it --------------------------------------------------------------------

    def start_puller(self):
        log = os.path.join(self.folder, 'puller%d.log' % (len(self.pullers) + 1))
        self.pullers.append(Puller(self.program, log, self.service, [
            '--handler', self.schema + '.post', '--dbname', self.cluster.conninfo('puller'),
            '--workers=%d' % self.stream.workers, '--batch-size=%d' % self.stream.batch_size,
            # What stops at a run of failures is another test's.
            '--halt-after=100000']))

    def kill(self):
        """True when it is over: it hit what was there while work was left, or no work is left."""
        kinds = {'puller': self.kill_puller, 'backend': self.cluster.kill_backend,
                 'sessions': self.cluster.end_sessions, 'server': self.cluster.crash}
        if self.service.unacked() == 0:
            return True
        hit = kinds[self.stream.kill]()
        self.fell += hit
        return hit

    def kill_puller(self):
        was_running = self.pullers[-1].kill()
        self.service.end_leases()
        self.start_puller()
        return was_running

    def stop_pullers(self):
        for number, puller in enumerate(self.pullers, 1):
            if puller.process.returncode == -9:
                continue
            status = puller.stop()
            if status != 0:
                self.problems.append('puller %d ended with status %d' % (number, status))

    def close(self):
        for puller in self.pullers:
            puller.kill()

    # ---- who settles it ---------------------------------------------------------------------

    def release(self):
        """Corrects or discards what holds up an ordering key, as an operator does, one by one."""
        while True:
            held_up = self.first_dead()
            if held_up is None:
                return
            if held_up['intent'] is None:
                call = "inbox_discard(%d, 'it has no key')" % held_up['id']
            else:
                intent = self.stream.intents[held_up['intent']]
                call = "inbox_retry(%d, payload => '%s'::bytea)" % (
                    held_up['id'], intent.payload(corrected=True))
            self.insist('SET search_path = %s, public; SELECT %s;' % (self.schema, call))

    def insist(self, sql):
        """What fails for nobody's fault fails the operator's call, and passes."""
        for _ in range(MESSAGES):
            try:
                return self.cluster.sql(sql)
            except RuntimeError as error:
                last = error
        raise last

    def first_dead(self):
        return self.cluster.json('''
            SELECT coalesce((SELECT json_build_object('id', f.id, 'intent',
                    CASE reason WHEN 'handler'
                    THEN convert_from(payload, 'UTF8')::json->'intent' END)
                FROM inbox_failure f JOIN inbox_source s ON s.id = source_id
                WHERE name = '%s' AND status = 'dead' AND ordering_key IS NOT NULL
                ORDER BY coalesce(publish_time, failed_at), f.id LIMIT 1), 'null')
            ''' % self.service.name)

    # ---- the end ----------------------------------------------------------------------------

    def observe(self):
        observed = self.cluster.json('''
            SET search_path = %s, public;
            SELECT json_build_object(
                'effects', (SELECT coalesce(json_agg(json_build_array(key, intent) ORDER BY n),
                    '[]') FROM effect),
                'balances', (SELECT coalesce(json_agg(json_build_array(account, amount)), '[]')
                    FROM (SELECT account, sum(amount) AS amount FROM leg GROUP BY account) t),
                'claims', (SELECT coalesce(json_agg(key), '[]') FROM inbox_claim
                    WHERE source_id = s.id),
                'failures', (SELECT coalesce(json_agg(json_build_object('key', key,
                        'status', status, 'reason', reason, 'attempts', attempts,
                        'sqlstate', sqlstate, 'error', error, 'message_id', message_id,
                        'ordering_key', ordering_key,
                        'payload', convert_from(payload, 'UTF8'),
                        'seconds', extract(epoch FROM last_failed_at - failed_at)) ORDER BY id),
                    '[]') FROM inbox_failure WHERE source_id = s.id))
            FROM inbox_source s WHERE name = '%s'
            ''' % (self.schema, self.service.name))
        for row in observed['failures']:
            row['intent'] = json.loads(row['payload'])['intent']
        observed['unacked'] = self.service.unacked()
        return observed

    def keep(self, name, value):
        with open(os.path.join(self.folder, name), 'w', encoding='utf8') as file:
            json.dump(value, file, indent=1)
