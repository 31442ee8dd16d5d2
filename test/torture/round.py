# SPDX-License-Identifier: PostgreSQL
"""One round: a ledger of its own, what goes wrong with it, its peaceful end, and the check."""

import json
import os
import random
import signal
import time

from check import Check
from ledger import ACCOUNTS, Ledger
from puller import Puller
from rig import HELPERS, resume
from schedule import Fault, draw_faults, draw_rules

BALANCE = 1000000
PAUSE = 0.003
# Seconds: without a step of the clock until it goes on all the same; until leases are ended that
# may be a dead puller's; once nothing goes wrong any more, until the next message comes to its end,
# and until all have.
STANDSTILL = 0.4
ABANDONED = 0.7
PATIENCE = 60
LONGEST_END = 300


class Round:
    """name: SEED/NUMBER, which repeats it; options: managed and pullers."""

    def __init__(self, rig, name, options):
        self.rig = rig
        self.name = name
        self.options = options
        self.folder = os.path.join(rig.folder, 'round-' + name.replace('/', '-'))
        self.schema = 'round-' + name.replace('/', '-')
        self.draw = random.Random('%s schedule' % name)
        self.ledger = Ledger('k' + name, random.Random('%s ledger' % name))
        self.policy = self.draw.choice(['continue', 'continue', 'continue', 'park'])
        self.max_attempts = self.draw.choice([2, 3])
        self.rules = draw_rules(self.draw)
        # Messages that are kept on their way while faults last.
        self.backlog = self.draw.choice([60, 60, 300])
        self.faults = self.draw_faults()
        self.published = []
        self.pullers = []
        self.later = []         # (clock, time, what to do then)
        self.problems = []
        self.unacked = 0
        self.started = 0

    def draw_faults(self):
        return draw_faults(self.draw, self.draw.randint(40, 80), self.options.managed)

    def run(self):
        """Returns the Check."""
        os.makedirs(self.folder)
        self.prepare()
        try:
            for number, fault in enumerate(self.faults):
                self.advance(fault.gap)
                self.inject(fault)
                if number % 10 == 9:
                    self.peek()
            self.advance(10)
            self.calm_down()
        except SystemExit:
            self.close()
            raise
        finally:
            self.stop_pullers()
        self.observe()
        check = Check(self.folder).run()
        check.problems += [('other', one) for one in self.problems]
        return check

    # ---- the beginning ----------------------------------------------------------------------

    def prepare(self):
        rig = self.rig
        rig.faults.disarm()
        rig.resume_stopped()
        self.hits_from = os.path.getsize(rig.faults.hits_file)
        self.history_from = os.path.getsize(rig.service.history)
        rig.service.create(self.schema)
        rig.service.read_to = self.history_from
        rig.cluster.sql(
            'TRUNCATE torture.effect; UPDATE torture.account SET balance = %d;'
            "SELECT inbox_configure('%s', max_attempts => %d, order_policy => '%s')"
            % (BALANCE, rig.service.name, self.max_attempts, self.policy))
        self.keep('round.json', {
            'name': self.name, 'subscription': rig.service.name, 'policy': self.policy,
            'balance': BALANCE, 'accounts': ACCOUNTS, 'max_attempts': self.max_attempts,
            'pullers': self.options.pullers, 'rules': self.rules,
            'schedule': [one.describe() for one in self.faults]})
        rig.service.call('POST', '/control/faults', {
            'seed': self.draw.randint(1, 2 ** 31),
            'rules': [dict(one, subscription=rig.service.name) for one in self.rules]})
        self.publish(self.backlog)
        for _ in range(self.options.pullers):
            self.start_puller()

    def publish(self, count):
        messages = self.ledger.take(count)
        ids = self.rig.service.publish(messages)
        self.published += [{'id': one, 'transfer': transfer.number}
                           for one, transfer in zip(ids, messages)]

    def start_puller(self):
        log = os.path.join(self.folder, 'puller%d.log' % self.started)
        self.started += 1
        through = Way(self.rig)
        puller = Puller(self.rig.program('build/puller-torture/inbox-puller'), log, through, [
            '--handler', 'torture.book', '--dbname', self.rig.conninfo(),
            '--workers=%d' % (1 + self.started % 2),
            '--batch-size=%d' % [3, 20, 200][self.started % 3],
            '--lock-timeout=500ms', '--handler-timeout=5s', '--halt-after=100000'])
        puller.asked_to_stop = False
        self.pullers.append(puller)

    # ---- while it goes on -------------------------------------------------------------------

    def advance(self, steps):
        """Until the clock went on by so much, or nothing happens any more."""
        faults = self.rig.faults
        goal = faults.clock() + steps
        last = faults.clock()
        since = time.monotonic()
        while faults.clock() < goal and time.monotonic() < since + STANDSTILL:
            self.tend()
            if faults.clock() != last:
                last = faults.clock()
                since = time.monotonic()
            time.sleep(PAUSE)

    def tend(self):
        """What must be done again and again: whoever is dead or has stopped is brought back."""
        self.take_hits()
        now = time.monotonic()
        for one in [one for one in self.later
                    if one[1] <= now or one[0] <= self.rig.faults.clock()]:
            self.later.remove(one)
            one[2]()
        for puller in list(self.pullers):
            status = puller.process.poll()
            if status is not None:
                self.replace(puller, status)
        self.rig.note_fired()
        self.look(self.backlog)

    def look(self, backlog):
        self.unacked = self.rig.service.unacked()
        if self.unacked < backlog:
            self.publish(min(100, backlog - self.unacked))

    def take_hits(self):
        for at, pid, point, action in self.rig.faults.new_hits():
            self.note_hit(at, point)
            if action == 'stop':
                self.resume_later(pid)

    def note_hit(self, at, point):
        """For those who wait for one."""

    def resume_later(self, pid, fault=None):
        """A zombie: meanwhile others get what it holds."""
        fault = fault or Fault(self.draw, 'stopped')
        self.in_a_while(fault.span, lambda: resume(pid))
        if fault.zombie:
            self.rig.end_leases()

    def in_a_while(self, span, deed):
        self.later.append((self.rig.faults.clock() + span, time.monotonic() + 0.01 * span + 0.2,
                           deed))

    def replace(self, puller, status):
        self.pullers.remove(puller)
        if status not in (0, -signal.SIGKILL) or (status == 0 and not puller.asked_to_stop):
            self.problems.append('a puller ended with status %s: %s' % (status, puller.log))
        self.rig.end_leases()
        self.start_puller()

    # ---- what goes wrong --------------------------------------------------------------------

    def inject(self, fault):
        if fault.action != 'outside':
            self.rig.faults.arm(fault.what, fault.action, fault.nth)
            return
        deed = getattr(self, 'do_' + fault.what.replace(' ', '_'))
        at = time.time()
        # False: there was nobody to do it to. Triggers of proxies are counted when they fire.
        if deed(fault) is not False and fault.trigger is None:
            self.rig.faults.note(fault.name(), at)

    def any_puller(self, fault):
        return self.pullers[int(fault.choice * len(self.pullers))]

    def do_puller_killed(self, fault):
        return self.any_puller(fault).kill()

    def do_puller_stopped(self, fault):
        pid = self.any_puller(fault).process.pid
        os.kill(pid, signal.SIGSTOP)
        self.resume_later(pid, fault)

    def do_puller_terminated(self, fault):
        puller = self.any_puller(fault)
        # One that was stopped before it got so far would be waited for in vain.
        if not puller.has_started():
            resume(puller.process.pid)
        puller.wait_started()
        puller.asked_to_stop = True
        puller.process.terminate()

    def do_backend_killed(self, fault):
        return self.rig.signal_one(self.rig.at_work(), fault.choice, signal.SIGKILL) is not None

    def do_backend_stopped(self, fault):
        pid = self.rig.signal_one(self.rig.at_work(), fault.choice, signal.SIGSTOP)
        if pid is None:
            return False
        self.resume_later(pid, fault)
        return True

    def do_sessions_terminated(self, _fault):
        return self.rig.cluster.end_sessions()

    def do_statements_cancelled(self, _fault):
        return int(self.rig.cluster.sql(
            'SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity'
            " WHERE application_name = 'puller' AND xact_start IS NOT NULL")) > 0

    def do_server_crashed(self, _fault):
        self.rig.resume_stopped()
        return self.rig.cluster.crash()

    def do_helper_process_killed(self, fault):
        return self.rig.signal_one(HELPERS, fault.choice, signal.SIGKILL) is not None

    def do_handler_replaced(self, _fault):
        self.rig.replace_handler()

    def do_service_frozen(self, fault):
        self.rig.freeze_service(0.005 * fault.span)

    def do_leases_ended(self, _fault):
        self.rig.end_leases()

    def do_database_cut(self, _fault):
        self.rig.database.command('cut')

    def do_database_refused(self, fault):
        self.refuse(self.rig.database, fault)

    def do_database_stalled(self, fault):
        self.stall(self.rig.database, fault)

    def do_database_slow(self, fault):
        self.rig.database.command('latency 5')
        self.in_a_while(fault.span, lambda: self.rig.database.command('latency 0'))

    def do_commit_cut(self, fault):
        self.rig.database.trigger(fault.name(), fault.trigger)

    do_byte_cut = do_commit_cut

    def do_service_cut(self, _fault):
        self.rig.network.command('cut')

    def do_service_refused(self, fault):
        self.refuse(self.rig.network, fault)

    def do_service_stalled(self, fault):
        self.stall(self.rig.network, fault)

    def do_request_cut(self, fault):
        self.rig.network.trigger(fault.name(), fault.trigger)

    def refuse(self, proxy, fault):
        proxy.command('refuse')
        proxy.command('cut')
        self.in_a_while(fault.span, lambda: proxy.command('accept'))

    def stall(self, proxy, fault):
        proxy.command('stall')
        self.in_a_while(fault.span, lambda: proxy.command('resume'))

    def peek(self):
        """In the middle of it all the books are right as well, if they can be seen."""
        wrong = self.rig.peek('''
            SELECT concat_ws(' ', sum(balance), (SELECT count(*) FROM (SELECT FROM torture.effect
                GROUP BY key HAVING count(*) > 1) AS doubled)) FROM torture.account''')
        if wrong not in (None, '%d 0' % (BALANCE * ACCOUNTS)):
            self.problems.append('sum of balances and keys applied twice, meanwhile: ' + wrong)

    # ---- the end ----------------------------------------------------------------------------

    def calm_down(self):
        """Nothing goes wrong any more: all that was published must come to its end."""
        self.rig.behave()
        for _, _, deed in self.later:
            deed()
        self.later = []
        start = ended = since = time.monotonic()
        least = self.unacked
        while time.monotonic() < min(ended + PATIENCE, start + LONGEST_END):
            self.tend_in_peace()
            if self.unacked == 0 and self.lookups_pending() == 0:
                return
            if self.unacked < least:
                least, ended, since = self.unacked, time.monotonic(), time.monotonic()
            elif time.monotonic() > since + ABANDONED:
                self.rig.end_leases()
                since = time.monotonic()
            time.sleep(PAUSE * 3)
        self.problems.append('%d messages are left %d s after the last fault, %d s after the last'
                             ' that ended' % (self.unacked, time.monotonic() - start,
                                              time.monotonic() - ended))

    def tend_in_peace(self):
        self.rig.resume_stopped()
        for puller in list(self.pullers):
            status = puller.process.poll()
            if status is not None:
                self.replace(puller, status)
        self.look(0)

    def lookups_pending(self):
        stats = self.rig.service.call('GET', '/control/stats')
        return stats['lookup']['primary']['pending']

    def stop_pullers(self):
        self.rig.resume_stopped()
        for puller in self.pullers:
            resume(puller.process.pid)
            puller.wait_started()
            puller.process.terminate()
        for puller in self.pullers:
            status = puller.stop()
            if status not in (0, -signal.SIGKILL):
                self.problems.append('a puller ended with status %s: %s' % (status, puller.log))

    def close(self):
        """In the middle of everything."""
        for puller in self.pullers:
            puller.kill()

    def observe(self):
        rig = self.rig
        database = rig.cluster.json('''
            SELECT json_build_object(
                'effects', (SELECT coalesce(json_agg(json_build_array(n, key, intent) ORDER BY n),
                    '[]') FROM torture.effect),
                'balances', (SELECT json_agg(json_build_array(id, balance)) FROM torture.account),
                'claims', (SELECT coalesce(json_agg(key), '[]') FROM inbox_claim
                    WHERE source_id = s.id),
                'failures', (SELECT coalesce(json_agg(json_build_object('key', key,
                        'status', status, 'reason', reason, 'attempts', attempts,
                        'sqlstate', sqlstate, 'error', error, 'ordering_key', ordering_key,
                        'intent', convert_from(payload, 'UTF8')::json->'intent')), '[]')
                    FROM inbox_failure WHERE source_id = s.id))
            FROM inbox_source s WHERE name = '%s'
            ''' % rig.service.name)
        database['unacked'] = rig.service.unacked()
        self.keep('database.json', database)
        self.keep_lines('transfers.jsonl', [
            {'number': one.number, 'key': one.key, 'lane': one.lane, 'trouble': one.trouble,
             'accounts': one.accounts, 'amount': one.amount} for one in self.ledger.transfers])
        self.keep_lines('published.jsonl', self.published)
        rig.service.delete()
        self.copy(rig.service.history, self.history_from, 'history.jsonl')
        self.copy(rig.faults.hits_file, self.hits_from, 'hits')

    def keep(self, name, value):
        with open(os.path.join(self.folder, name), 'w', encoding='utf8') as file:
            json.dump(value, file, indent=1)

    def keep_lines(self, name, values):
        with open(os.path.join(self.folder, name), 'w', encoding='utf8') as file:
            for one in values:
                file.write(json.dumps(one) + '\n')

    def copy(self, source, start, name):
        with open(source, 'rb') as file, open(os.path.join(self.folder, name), 'wb') as copy:
            file.seek(start)
            copy.write(file.read())


class Way:
    """To a puller, the service is where the proxy listens."""

    def __init__(self, rig):
        self.address = '127.0.0.1:%d' % rig.network.port
        self.name = rig.service.name
