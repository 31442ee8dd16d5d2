# SPDX-License-Identifier: PostgreSQL
"""An inbox-proxy and its control connection."""

import json
import re
import select
import socket
import subprocess


class Proxy:
    """Between a client and a server; protocol is postgres or http."""

    def __init__(self, program, protocol, target):
        self.process = subprocess.Popen(
            [program, '--protocol', protocol, '--to', target, '--listen', '127.0.0.1:0'],
            stdout=subprocess.PIPE, text=True)
        if not select.select([self.process.stdout], [], [], 60)[0]:
            raise RuntimeError('%s does not listen' % program)
        line = self.process.stdout.readline()
        self.port, control = map(int, re.findall(r':(\d+)', line))
        self.socket = socket.create_connection(('127.0.0.1', control), timeout=120)
        self.answers = self.socket.makefile('r', encoding='utf8')
        self.triggers = {}      # number: what it is called
        self.fired = {}

    def command(self, line):
        self.socket.sendall((line + '\n').encode())
        answer = self.answers.readline().strip()
        if answer.startswith('error') or not answer:
            raise RuntimeError('inbox-proxy on "%s": %s' % (line, answer))
        return answer

    def trigger(self, name, words):
        self.triggers[int(self.command('trigger ' + words).split()[1])] = name

    def new_fired(self):
        """Names of the triggers that have fired since the last call."""
        names = []
        if self.triggers:
            for one in json.loads(self.command('stats'))['triggers']:
                number, fired = one['trigger'], one['fired']
                names += [self.triggers[number]] * (fired - self.fired.get(number, 0))
                self.fired[number] = fired
        return names

    def behave(self):
        self.triggers, self.fired = {}, {}
        for line in 'clear', 'accept', 'resume', 'latency 0':
            self.command(line)

    def close(self):
        self.process.kill()
        self.process.wait()
