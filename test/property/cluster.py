# SPDX-License-Identifier: PostgreSQL
"""A throw-away PostgreSQL with the extension in it."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

# What psql exits with when there is no server, or one that recovers from a crash.
NOT_CONNECTED = 2
SETTINGS = '''
listen_addresses = ''
max_connections = 60
log_min_messages = warning
log_line_prefix = '%m [%p] %q%a '
shared_buffers = 32MB
autovacuum = off
'''


class Cluster:
    """One server; psql and pg_ctl are those of the PATH."""

    def __init__(self, folder):
        self.folder = folder
        self.settings = ''
        self.data = os.path.join(folder, 'data')
        # The path of a socket has at most 107 bytes.
        self.sockets = tempfile.mkdtemp(prefix='inbox-property-')

    def create(self):
        subprocess.run(['initdb', '-D', self.data, '-E', 'UTF8', '--no-locale', '-A', 'trust',
                        '-N'], check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(self.data, 'postgresql.conf'), 'a', encoding='utf8') as conf:
            conf.write(SETTINGS + self.settings + "unix_socket_directories = '%s'\n" % self.sockets)
        self.user = self.puller = None
        self.start()
        self.install()

    def install(self):
        """The extension; with INBOX_VARIANT=managed the file, by a role that is no superuser, for
        pullers that have a role of their own, with no more rights than they are granted."""
        if os.environ.get('INBOX_VARIANT') != 'managed':
            self.sql('CREATE EXTENSION inbox')
            return
        # A member sees what the pullers' sessions do, and may end them.
        self.sql('CREATE ROLE inbox_installer LOGIN; CREATE ROLE inbox_puller LOGIN ROLE inbox_installer')
        self.sql('ALTER DATABASE postgres OWNER TO inbox_installer')
        self.user = 'inbox_installer'
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        subprocess.run(['psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-v', 'schema=public', '-d',
                        self.conninfo('install'), '-f',
                        os.path.join(root, 'sql', 'inbox-managed.sql')], check=True)
        self.puller = 'inbox_puller'
        # And what handlers work with, from here on.
        self.sql("SELECT inbox_grant('inbox_puller', 'puller');" + ''.join(
            'ALTER DEFAULT PRIVILEGES GRANT ALL ON %s TO inbox_puller;' % kind
            for kind in ('SCHEMAS', 'TABLES', 'SEQUENCES')))

    def conninfo(self, application):
        user = self.puller if application == 'puller' else self.user
        return 'host=%s dbname=postgres application_name=%s%s' % (
            self.sockets, application, ' user=%s' % user if user else '')

    def pg_ctl(self, *arguments):
        subprocess.run(['pg_ctl', '-w', '-t', '300', '-D', self.data, '-l',
                        os.path.join(self.folder, 'postgresql.log'), *arguments],
                       check=True, stdout=subprocess.DEVNULL)

    def start(self):
        self.pg_ctl('start')

    def sql(self, text):
        """Runs statements, in one transaction; returns what the last one gives, as text."""
        end = time.monotonic() + 300
        while True:
            run = subprocess.run(['psql', '-XAtq1', '-v', 'ON_ERROR_STOP=1', '-d',
                                  self.conninfo('property'), '-f', '-'], input=text, text=True,
                                 capture_output=True)
            if run.returncode == 0:
                return run.stdout
            if run.returncode != NOT_CONNECTED or time.monotonic() > end:
                raise RuntimeError('psql failed: %s\nin: %s' % (run.stderr, text[:2000]))
            time.sleep(0.05)

    def json(self, query):
        return json.loads(self.sql(query))

    def backends(self):
        """The process ids of the pullers' sessions."""
        return self.json("SELECT coalesce(json_agg(pid), '[]') FROM pg_stat_activity"
                         " WHERE application_name = 'puller'")

    def kill_backend(self):
        """As a crash does it; the server restarts all its sessions. False if there was none."""
        for pid in self.backends()[:1]:
            os.kill(pid, signal.SIGKILL)
            return True
        return False

    def end_sessions(self):
        return int(self.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                            " WHERE application_name = 'puller'")) > 0

    def crash(self):
        self.pg_ctl('-m', 'immediate', 'stop')
        self.start()
        return True

    def close(self):
        subprocess.run(['pg_ctl', '-w', '-D', self.data, '-m', 'immediate', 'stop'],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.sockets, ignore_errors=True)
        shutil.rmtree(self.data, ignore_errors=True)
