# SPDX-License-Identifier: PostgreSQL
"""A Pub/Sub server, and what a publisher and an observer ask of it."""

import base64
import http.client
import json
import os
import select
import subprocess


class Service:
    """One inbox-pubsub, with a history."""

    def __init__(self, folder, program, options=(), errors=None):
        self.history = os.path.join(folder, 'history.jsonl')
        self.process = subprocess.Popen(
            [program, '--listen', '127.0.0.1:0', '--history', self.history,
             *options],
            stdout=subprocess.PIPE, stderr=errors, text=True)
        if not select.select([self.process.stdout], [], [], 60)[0]:
            raise RuntimeError('%s does not listen' % program)
        self.address = self.process.stdout.readline().strip().rsplit('/', 1)[-1]
        self.connection = http.client.HTTPConnection(self.address, timeout=120)
        self.read_to = 0

    def call(self, method, path, body=None):
        text = None if body is None else json.dumps(body)
        self.connection.request(method, path, text, {'Content-Type': 'application/json'})
        response = self.connection.getresponse()
        answer = response.read()
        if response.status != 200:
            raise RuntimeError('%s %s: %d %s' % (method, path, response.status, answer))
        return json.loads(answer or '{}')

    def create(self, name):
        self.name = 'projects/p/subscriptions/' + name
        self.topic = 'projects/p/topics/' + name
        self.call('PUT', '/v1/' + self.topic, {})
        self.call('PUT', '/v1/' + self.name, {'topic': self.topic, 'ackDeadlineSeconds': 10,
                                              'enableMessageOrdering': True})

    def delete(self):
        self.call('DELETE', '/v1/' + self.name)
        self.call('DELETE', '/v1/' + self.topic)

    def publish(self, intents):
        """In runs of one ordering key, as the service demands; returns the message ids."""
        ids = []
        run = []
        for intent in intents + [None]:
            if run and (intent is None or intent.lane != run[0].lane):
                answer = self.call('POST', '/v1/' + self.topic + ':publish',
                                   {'messages': [self.wire(one) for one in run]})
                ids += answer['messageIds']
                run = []
            run.append(intent)
        return ids

    @staticmethod
    def wire(intent):
        message = {'data': base64.b64encode(intent.payload().encode()).decode(),
                   'attributes': {'origin': 'property'}}
        if intent.key is not None:
            message['attributes']['idempotency_key'] = intent.key
        if intent.lane is not None:
            message['orderingKey'] = intent.lane
        return message

    def unacked(self):
        return self.call('GET', '/control/stats')['subscriptions'][self.name]['unacked']

    def redeliver(self, probability, seed):
        """Brings messages again although they are leased or acknowledged."""
        rules = [{'on': 'ack_id', 'do': 'redeliver'}, {'on': 'ack', 'do': 'ignore'},
                 {'on': 'deliver', 'do': 'duplicate'}, {'on': 'pull', 'do': 'expire'}]
        self.call('POST', '/control/faults', {'seed': seed, 'rules': [
            dict(rule, probability=probability, subscription=self.name) for rule in rules]})

    def behave(self):
        self.call('DELETE', '/control/faults')

    def end_leases(self):
        """What a dead puller held comes again at once and not when its leases end."""
        ids = self.delivered()
        for start in range(0, len(ids), 1000):
            self.call('POST', '/v1/' + self.name + ':modifyAckDeadline',
                      {'ackIds': ids[start:start + 1000], 'ackDeadlineSeconds': 0})

    def delivered(self):
        """The ack ids given out since the last call."""
        with open(self.history, encoding='utf8') as history:
            history.seek(self.read_to)
            lines = history.readlines()
            self.read_to = history.tell()
        events = [json.loads(line) for line in lines if '"event":"deliver"' in line]
        return [one['ackId'] for one in events if one['subscription'] == self.name]

    def close(self):
        self.process.terminate()
        self.process.wait()
