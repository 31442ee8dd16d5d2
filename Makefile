# SPDX-License-Identifier: PostgreSQL
#
# For people: make demo, make test, make check; sudo make install for real use.
# The extension is built by PGXS, the puller by puller/Makefile, the Pub/Sub server of the tests
# by test/pubsub/Makefile. Targets that end in -here do the work as an ordinary user; the names
# without it install packages first and leave root behind (test/env/).

PG_CONFIG ?= pg_config
export PG_CONFIG

.PHONY: all extension puller pubsub install clean
all: extension puller
extension:
	$(MAKE) -C src all
puller:
	$(MAKE) -C puller
pubsub:
	$(MAKE) -C test/pubsub
# For servers that load no library: one file for psql.
.PHONY: managed
INBOX_VERSION = $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" inbox.control)
managed:
	sql/build-managed $(INBOX_VERSION) >sql/inbox-managed.sql.new && mv sql/inbox-managed.sql.new sql/inbox-managed.sql
# The sources of what is committed, with what PGXN wants to know, as one archive.
.PHONY: dist
DIST = inbox-$(INBOX_VERSION)
dist:
	rm -rf build/dist && mkdir -p build/dist/$(DIST)
	git archive HEAD | tar -x -C build/dist/$(DIST)
	sed 's/@version@/$(INBOX_VERSION)/g' META.json.in >build/dist/$(DIST)/META.json
	tar -C build/dist -czf build/dist/$(DIST).tar.gz $(DIST)
install: all
	$(MAKE) -C src install
	$(MAKE) -C puller install
clean:
	$(MAKE) -C src clean
	$(MAKE) -C puller clean
	$(MAKE) -C test/pubsub clean
	$(MAKE) -C bench clean
	rm -rf build

# ---- a private server, with the extension in it -------------------------------------------

SERVER = $(CURDIR)/build/server
SERVER_BIN = $(SERVER)/bin
PG_TEST = $(abspath $(dir $(shell $(SERVER_BIN)/pg_config --pgxs))../test)
OUT = $(CURDIR)/build/out

.PHONY: server install-private
server:
	@test/env/server build/server
install-private: server
	@$(MAKE) --no-print-directory -s -C src install PG_CONFIG=$(SERVER_BIN)/pg_config

# ---- tests --------------------------------------------------------------------------------

SUITE = test/env/suite
REGRESS_TESTS = $(patsubst test/sql/%.sql,%,$(sort $(wildcard test/sql/*.sql)))
ISOLATION_TESTS = $(patsubst test/specs/%.spec,%,$(sort $(wildcard test/specs/*.spec)))
REGRESS_OPTIONS = --bindir=$(SERVER_BIN) --inputdir=test --dbname=inbox_regress \
	--encoding=UTF8 --no-locale --temp-config=test/env/postgresql.conf
TAP = PATH=$(SERVER_BIN):$$PATH PG_REGRESS=$(PG_TEST)/regress/pg_regress \
	PERL5LIB=$(PG_TEST)/perl:$(CURDIR)/test/e2e/lib INBOX_ROOT=$(CURDIR)
# PostgreSQL 15 takes the first one, later ones the others.
TAP_DIRS = TESTDIR=$(OUT)/$1 TESTDATADIR=$(OUT)/$1/tmp_check TESTLOGDIR=$(OUT)/$1/tmp_check/log

CHECK_SUITES = unit regress isolation
# What is slower, or asks for more packages, is added by EXTRA_SUITES, as CI does.
EXTRA_SUITES =
TEST_SUITES = $(CHECK_SUITES) regress-managed isolation-managed tap-managed tap-ext pubsub-server conformance e2e e2e-managed coming-over page deploy property property-managed demo-run $(EXTRA_SUITES)
E2E_TESTS = test/e2e/t
# At once: each of these tests waits for most of its time.
E2E_JOBS = 5
PAGE_TESTS = test/page/t
COMING_OVER_TESTS = test/coming-over/t

.PHONY: unit regress isolation regress-managed isolation-managed tap-managed tap-ext e2e e2e-managed property property-managed guards mutants
unit:
	$(SUITE) unit $(MAKE) -s -C puller check
regress: install-private
	mkdir -p $(OUT)/regress
	$(SUITE) regress $(PG_TEST)/regress/pg_regress $(REGRESS_OPTIONS) \
		--temp-instance=$(OUT)/regress/instance --outputdir=$(OUT)/regress $(REGRESS_TESTS)
isolation: install-private
	mkdir -p $(OUT)/isolation
	PATH=$(PG_TEST)/isolation:$$PATH \
	$(SUITE) isolation $(PG_TEST)/isolation/pg_isolation_regress $(REGRESS_OPTIONS) \
		--temp-instance=$(OUT)/isolation/instance --outputdir=$(OUT)/isolation \
		--load-extension=inbox $(ISOLATION_TESTS)
# The same tests against inbox-managed.sql; what ends in -c is about what only the library does.
regress-managed: server managed
	mkdir -p $(OUT)/regress-managed
	$(SUITE) regress-managed $(PG_TEST)/regress/pg_regress $(REGRESS_OPTIONS) \
		--launcher=$(CURDIR)/test/managed/psql --create-role=inbox_installer \
		--temp-instance=$(OUT)/regress-managed/instance --outputdir=$(OUT)/regress-managed \
		$(filter-out %-c,$(REGRESS_TESTS))
isolation-managed: server managed
	mkdir -p $(OUT)/isolation-managed
	PATH=$(PG_TEST)/isolation:$$PATH \
	$(SUITE) isolation-managed $(PG_TEST)/isolation/pg_isolation_regress $(REGRESS_OPTIONS) \
		--launcher=$(CURDIR)/test/managed/isolation --create-role=inbox_installer \
		--temp-instance=$(OUT)/isolation-managed/instance --outputdir=$(OUT)/isolation-managed \
		$(filter-out %-c,$(ISOLATION_TESTS))
tap-managed: install-private managed puller pubsub
	rm -rf $(OUT)/tap-managed && mkdir -p $(OUT)/tap-managed
	$(TAP) $(call TAP_DIRS,tap-managed) $(SUITE) tap-managed prove -v test/managed/t
tap-ext: install-private managed
	rm -rf $(OUT)/tap-ext && mkdir -p $(OUT)/tap-ext
	$(TAP) $(call TAP_DIRS,tap-ext) $(SUITE) tap-ext prove -v test/tap-ext
# One test end to end runs the puller with sanitizers.
.PHONY: puller-san
puller-san:
	$(MAKE) -C puller SAN=address,undefined
e2e: install-private puller puller-san pubsub
	rm -rf $(OUT)/e2e && mkdir -p $(OUT)/e2e
	$(TAP) $(call TAP_DIRS,e2e) $(SUITE) e2e prove -v -j$(E2E_JOBS) $(E2E_TESTS)
# From other consumers to inbox: those of Redis, and Node.js and Go programs, with the real ones.
.PHONY: coming-over
coming-over: install-private puller pubsub
	rm -rf $(OUT)/coming-over && mkdir -p $(OUT)/coming-over
	$(TAP) $(call TAP_DIRS,coming-over) $(SUITE) coming-over prove -v -j3 $(COMING_OVER_TESTS)
# The same tests against inbox-managed.sql, by pullers that were granted 'puller' and no more, with the
# tests' own service alone; but not where the database plays no part, or the same one:
#   150 to 152, 161          what Pub/Sub answers, or does not
#   170, 175, 231, 265       settings, completion and logs
#   260, 340 to 345          names, credentials, TLS, HTTP/2 and proxies on the way to Pub/Sub
#   270, 280                 the puller's own processor time, memory and loop
#   620                      two minutes without a server; 130 has shorter times
#   800                      the examples, which make a database of their own
E2E_NOT_MANAGED = 150 151 152 161 170 175 231 260 265 270 280 340 341 342 343 344 345 620 800
E2E_MANAGED = $(filter-out $(E2E_NOT_MANAGED:%=test/e2e/t/%_%),$(sort $(wildcard test/e2e/t/*.t)))
e2e-managed: install-private managed puller pubsub
	rm -rf $(OUT)/e2e-managed && mkdir -p $(OUT)/e2e-managed
	$(TAP) $(call TAP_DIRS,e2e-managed) INBOX_VARIANT=managed $(SUITE) e2e-managed prove -v -j$(E2E_JOBS) \
		$(E2E_MANAGED)
# What a puller serves to people and monitors: in a browser, to Prometheus, to hostile clients.
.PHONY: page
page: install-private puller pubsub
	rm -rf $(OUT)/page && mkdir -p $(OUT)/page
	$(TAP) PERL5LIB=$(PG_TEST)/perl:$(CURDIR)/test/e2e/lib:$(CURDIR)/test/page/lib \
		$(call TAP_DIRS,page) $(SUITE) page prove -v -j2 $(PAGE_TESTS)
# Streams of messages drawn from SEEDS seeds, SEED the first; the same ones for both. PARKED more are of
# what the others leave out.
SEED = 1
SEEDS = 200
PARKED = $(if $(filter command line,$(origin SEED)),0,12)
property: install-private puller pubsub
	PATH=$(SERVER_BIN):$$PATH \
	$(SUITE) property test/property/run --seed $(SEED) --seeds $(SEEDS) --parked $(PARKED)
property-managed: install-private managed puller pubsub
	PATH=$(SERVER_BIN):$$PATH INBOX_VARIANT=managed \
	$(SUITE) property-managed test/property/run --seed $(SEED) --seeds $(SEEDS) --parked $(PARKED)
# Random faults for SECONDS, drawn from SEED (a fresh one unless given); MANAGED=1 takes the managed
# inbox; a seed SEED/NUMBER is one round. The sweep takes every fault point, one after the other, at
# its first PASSAGES passages.
TORTURE_SERVER = $(CURDIR)/build/torture/server
TORTURE = PATH=$(TORTURE_SERVER)/bin:$$PATH
TORTURE_SEED = $(if $(filter command line,$(origin SEED)),--seed $(SEED))
SECONDS = $(if $(CI),180,60)
PULLERS = 3
PASSAGES = $(if $(CI),1,5)
TORTURE_RUN = test/torture/run $(or $(TORTURE_SEED),--failed test/torture/seeds) --seconds $(SECONDS) --pullers $(PULLERS)
TORTURE_VARIANT = $(if $(MANAGED),INBOX_VARIANT=managed)
TORTURES = torture torture-managed torture-sweep
.PHONY: torture-build $(TORTURES) $(TORTURES:%=%-here)
$(TORTURES):
	@test/env/unprivileged $(MAKE) --no-print-directory -s $@-here
torture-build: server managed pubsub
	@test/torture/build $(TORTURE_SERVER)
torture-here: torture-build
	$(TORTURE) $(TORTURE_VARIANT) $(SUITE) torture $(TORTURE_RUN)
torture-managed-here: torture-build
	$(TORTURE) INBOX_VARIANT=managed $(SUITE) torture-managed $(TORTURE_RUN)
torture-sweep-here: torture-build
	$(TORTURE) $(TORTURE_VARIANT) $(SUITE) torture-sweep test/torture/run --sweep \
		--passages $(PASSAGES) $(TORTURE_SEED)
# The Pub/Sub server of the tests: its own tests, and what it has in common with Google's emulator
# and with Google's own clients.
.PHONY: pubsub-server conformance
pubsub-server: install-private
	$(TAP) $(SUITE) pubsub-server $(MAKE) -s -C test/pubsub check
conformance: pubsub
	$(SUITE) conformance $(MAKE) -s -C test/pubsub conformance
# GUARDS and MUTANTS name some of them: all unless given.
guards: install-private pubsub
	$(SUITE) guards test/guards/run $(GUARDS)
mutants: install-private pubsub
	$(SUITE) mutants test/guards/run --mutants $(MUTANTS)
# The puller against a simulated service and database, on new seeds: with and without sanitizers.
SIMULATE_SECONDS = 120
SIMULATE_SEED =
.PHONY: simulate
simulate:
	$(MAKE) -s -C puller ../build/puller/test/test_flow
	$(MAKE) -s -C puller SAN=address,undefined ../build/puller-san/test/test_flow
	$(SUITE) simulate puller/test/simulate $(SIMULATE_SECONDS) "$(SIMULATE_SEED)" \
		build/puller/test/test_flow build/puller-san/test/test_flow
# Each parser under libFuzzer for FUZZ_SECONDS, two at a time.
FUZZ_SECONDS = 60
.PHONY: fuzz fuzz-here
fuzz:
	$(SUITE) fuzz $(MAKE) -s -k -j2 fuzz-here
fuzz-here: fuzz-puller fuzz-pubsub
.PHONY: fuzz-puller fuzz-pubsub
fuzz-puller:
	$(MAKE) -s -k -C puller fuzz SECONDS=$(FUZZ_SECONDS)
fuzz-pubsub:
	$(MAKE) -s -k -C test/pubsub fuzz SECONDS=$(FUZZ_SECONDS)
# Memory that runs out at every place, and each call of libpq and libcurl that fails; in CI the first
# of each function, otherwise all (EXHAUST_CALLS).
EXHAUST_CALLS = $(if $(CI),1)
.PHONY: exhaust exhaust-here
exhaust: install-private puller-san pubsub
	rm -rf $(OUT)/exhaust && mkdir -p $(OUT)/exhaust
	$(TAP) $(call TAP_DIRS,exhaust) EXHAUST_CALLS=$(EXHAUST_CALLS) $(SUITE) exhaust $(MAKE) -s -k exhaust-here
exhaust-here: exhaust-memory exhaust-calls
.PHONY: exhaust-memory exhaust-calls
exhaust-memory:
	$(MAKE) -s -k -C puller exhaust
exhaust-calls:
	prove -v test/exhaust
# The extension in a server under valgrind: all regression tests, or in CI some that go everywhere.
VALGRIND_TESTS = $(if $(CI),process batch fail retry order keys-c leaks-c,$(REGRESS_TESTS))
.PHONY: valgrind
valgrind: install-private
	$(SUITE) valgrind test/valgrind/run $(SERVER_BIN) $(PG_TEST) $(VALGRIND_TESTS)
# Instructions a message, counted by callgrind, against bench/instructions.budget.
.PHONY: instructions
instructions: install-private puller
	$(MAKE) -s -C bench count PG_CONFIG=$(SERVER_BIN)/pg_config
	$(SUITE) instructions bench/instructions
.PHONY: sanitize style tidy
sanitize:
	$(SUITE) sanitize $(MAKE) -s -C puller check SAN=address,undefined
style:
	$(SUITE) style clang-format --dry-run -Werror $(wildcard $(addsuffix /*.[ch], \
		src puller puller/test test/pubsub test/pubsub/proxy test/pubsub/t test/pubsub/bench test/pubsub/t/unit \
		bench))
# The analyser sees the puller; the extension is PostgreSQL's macros to it.
tidy:
	$(SUITE) tidy $(MAKE) -s -C puller tidy

.PHONY: check-here test-here
check-here: all
	@rm -f $(OUT)/*.count
	@$(MAKE) --no-print-directory -s -k $(CHECK_SUITES) || true
	@$(SUITE) --total $(CHECK_SUITES)
test-here: all
	@rm -f $(OUT)/*.count
	@$(MAKE) --no-print-directory -s -k $(TEST_SUITES) || true
	@$(SUITE) --total $(TEST_SUITES)
# What each suite of the last run took.
.PHONY: times times-here
times:
	@test/env/unprivileged $(MAKE) --no-print-directory -s times-here
times-here:
	@$(SUITE) --times

# The examples of deploy/ against this puller.
.PHONY: deploy
deploy: puller
	$(SUITE) deploy test/deploy/kubernetes puller/inbox-puller

# On other releases of Debian, each in a chroot: their PostgreSQL, compiler and libraries. For root.
MATRIX = bookworm trixie sid
MATRIX_SUITES = $(CHECK_SUITES) deploy regress-managed isolation-managed tap-managed tap-ext pubsub-server e2e
.PHONY: matrix
matrix:
	@test/matrix/run "$(MATRIX_SUITES)" $(MATRIX)
# The Debian packages, built in one chroot, and installed, used and purged in another. For root.
PACKAGE_RELEASES = bookworm
.PHONY: package-test
package-test:
	@$(SUITE) package-test test/package/run $(PACKAGE_RELEASES)
# The chroots are kept for the next time, until this.
.PHONY: chroot-clean
chroot-clean:
	rm -rf --one-file-system build/chroot

.PHONY: check test demo
check:
	@test/env/packages build test $(EXTRA_PACKAGES)
	@test/env/unprivileged $(MAKE) --no-print-directory -s check-here
test:
	@test/env/packages build test coming-over page $(EXTRA_PACKAGES)
	@test/env/unprivileged $(MAKE) --no-print-directory -s test-here
demo:
	@test/env/packages build demo
	@echo "building the extension, the puller and a private PostgreSQL"
	@test/env/unprivileged $(MAKE) --no-print-directory -s -j2 demo-here
# The same steps with fewer payments, as a test.
.PHONY: demo-run
demo-run: install-private puller pubsub
	PAYMENTS=1500 $(SUITE) demo-run demo/run
.PHONY: demo-here
demo-here: install-private puller pubsub
	@demo/run

# What examples/*/run does, EXAMPLE being the folder.
.PHONY: example example-here
example:
	@test/env/packages build demo
	@test/env/unprivileged $(MAKE) --no-print-directory -s -j2 example-here EXAMPLE=$(EXAMPLE)
example-here: install-private puller pubsub
	@PATH=$(SERVER_BIN):$(CURDIR)/puller:$(CURDIR)/test/pubsub:$$PATH examples/$(EXAMPLE)/steps

# ---- benchmarks: QUICK=1 takes less than two minutes and says less --------------------------

BENCH_ALL = bench/run && bench/path && DISK_MS=1 bench/path
BENCHES = bench bench-contention bench-purge bench-scale bench-growth
.PHONY: $(BENCHES) $(BENCHES:%=%-here)
$(BENCHES):
	@test/env/packages build demo
	@test/env/unprivileged $(MAKE) --no-print-directory -s $@-here
$(BENCHES:%=%-here): install-private managed puller pubsub
	@$(MAKE) -C bench PG_CONFIG=$(SERVER_BIN)/pg_config
	@$(if $(filter bench-here,$@),$(BENCH_ALL),bench/$(patsubst bench-%-here,%,$@))

# Messages a second through pull and acknowledge of the tests' Pub/Sub server.
.PHONY: bench-pubsub
bench-pubsub:
	@test/env/packages build
	$(MAKE) -s -C test/pubsub bench
