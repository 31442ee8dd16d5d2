# SPDX-License-Identifier: PostgreSQL
"""One of everything: a PostgreSQL, a Pub/Sub server, a proxy before each; and what is done to it."""

import os
import signal
import subprocess
import sys
import time
from http.client import HTTPException

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../property'))

from cluster import Cluster
from points import FaultFile
from proxy import Proxy
from service import Service

# What is not flushed when it should be is lost in a crash, and not saved by the next tick.
SETTINGS = '''
wal_writer_delay = 10s
bgwriter_delay = 10s
checkpoint_timeout = 1h
restart_after_crash = on
'''
LOOKUP = '''
    SELECT w.key FROM unnest($1) AS w(key)
    WHERE EXISTS (SELECT FROM torture.effect e WHERE e.key = w.key)
        OR EXISTS (SELECT FROM public.inbox_failure f WHERE f.key = w.key
            AND f.status <> 'retrying')
'''
HELPERS = "backend_type IN ('walwriter', 'checkpointer', 'background writer')"


class Rig:
    """folder: for everything it writes. Lives for many rounds, one after another."""

    def __init__(self, folder, root):
        self.root = root
        self.folder = folder
        self.faults = FaultFile(os.path.join(folder, 'faults'))
        os.environ['INBOX_FAULT_FILE'] = self.faults.path
        self.parts = []
        self.errors = open(os.path.join(folder, 'service.log'), 'wb')
        self.cluster = Cluster(folder)
        self.parts.append(self.cluster)

    def create(self):
        self.cluster.settings = SETTINGS
        self.cluster.create()
        with open(os.path.join(self.root, 'test/torture/ledger.sql'), encoding='utf8') as file:
            self.cluster.sql('CREATE SCHEMA torture;\nSET search_path = torture, public;\n'
                             + file.read())
        self.service = Service(self.folder, self.program('test/pubsub/inbox-pubsub'), [
            '--lookup', self.cluster.conninfo('lookup'), '--lookup-sql', LOOKUP],
            # Lookups that wait for the server to be back.
            errors=self.errors)
        self.parts.append(self.service)
        proxy = self.program('test/pubsub/inbox-proxy')
        self.database = Proxy(proxy, 'postgres', self.cluster.sockets + '/.s.PGSQL.5432')
        self.parts.append(self.database)
        self.network = Proxy(proxy, 'http', self.service.address)
        self.parts.append(self.network)

    def program(self, path):
        return os.path.join(self.root, path)

    def conninfo(self):
        """The pullers' way to the database."""
        user = self.cluster.puller
        return ('host=127.0.0.1 port=%d dbname=postgres application_name=puller sslmode=disable'
                ' gssencmode=disable%s' % (self.database.port, ' user=' + user if user else ''))

    def close(self):
        self.resume_stopped()
        for one in reversed(self.parts):
            one.close()

    # ---- deeds to the server ----------------------------------------------------------------

    def resume_stopped(self):
        """Whoever was stopped at a point and was not resumed in time."""
        for _, pid, _, action in self.faults.new_hits():
            if action == 'stop':
                resume(pid)

    def pids(self, condition):
        return self.cluster.json("SELECT coalesce(json_agg(pid), '[]') FROM pg_stat_activity"
                                 ' WHERE ' + condition)

    def peek(self, query):
        """What it gives, in one snapshot; None if the server is away."""
        run = subprocess.run(['psql', '-XAtq', '-d', self.cluster.conninfo('peek'), '-c', query],
                             text=True, capture_output=True)
        return run.stdout.strip() if run.returncode == 0 else None

    def signal_one(self, condition, choice, number):
        """Returns the process that got the signal, or None."""
        pids = self.pids(condition)
        if not pids:
            return None
        pid = pids[int(choice * len(pids))]
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return None
        return pid

    def at_work(self):
        """A puller's session, in a transaction if there is one that is."""
        busy = "application_name = 'puller' AND xact_start IS NOT NULL"
        return busy if self.pids(busy) else "application_name = 'puller'"

    def end_leases(self):
        """Unless a fault hits this request: then those leases are ended the next time."""
        read_to = self.service.read_to
        try:
            self.service.end_leases()
        except (OSError, HTTPException, RuntimeError):
            self.service.connection.close()
            self.service.read_to = read_to

    def freeze_service(self, seconds):
        self.service.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.service.process.send_signal(signal.SIGCONT)

    def replace_handler(self):
        with open(os.path.join(self.root, 'test/torture/ledger.sql'), encoding='utf8') as file:
            text = file.read()
        text = text[text.index('CREATE FUNCTION book'):].replace('CREATE', 'CREATE OR REPLACE', 1)
        self.cluster.sql('SET search_path = torture, public;\n' + text)

    def note_fired(self):
        for proxy in self.database, self.network:
            for name in proxy.new_fired():
                self.faults.note(name, time.time())

    def behave(self):
        """From now on nothing goes wrong any more."""
        self.faults.disarm()
        self.note_fired()
        for proxy in self.database, self.network:
            proxy.behave()
        self.service.behave()


def resume(pid):
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass
