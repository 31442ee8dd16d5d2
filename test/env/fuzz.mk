# SPDX-License-Identifier: PostgreSQL
#
# Programs for libFuzzer; needs clang. The Makefile that includes this one says what there is in FUZZ,
# where its sources are in FUZZ_FOLDER, what they are linked with in FUZZ_SOURCES and FUZZ_OBJECTS, and
# where to build in FUZZ_BUILD. "make fuzz" runs each for SECONDS. What was found is kept in the build
# tree; a case worth keeping goes to the corpus.

FUZZ_CC ?= clang
FUZZ_SAN = address,undefined -fno-sanitize-recover=undefined
FUZZ_CFLAGS = -std=c11 -O1 -g $(WARNINGS) $(shell pkg-config --cflags $(PKG)) -I.
FUZZ_PARTS = $(FUZZ_SOURCES:%.c=$(FUZZ_BUILD)/%.o)
FUZZ_RUN := $(dir $(lastword $(MAKEFILE_LIST)))fuzz
SECONDS ?= 60

.PHONY: fuzz $(FUZZ:%=fuzz-%)
.SECONDARY: $(FUZZ_PARTS)
fuzz: $(FUZZ:%=fuzz-%)
$(FUZZ:%=fuzz-%): fuzz-%: $(FUZZ_BUILD)/fuzz_%
	@$(FUZZ_RUN) $< $(FUZZ_FOLDER)/corpus/$* $(SECONDS)

$(FUZZ_BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(FUZZ_CC) $(CPPFLAGS) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link,$(FUZZ_SAN) -MMD -MP -c -o $@ $<
$(FUZZ_BUILD)/fuzz_%: $(FUZZ_FOLDER)/fuzz_%.c $(FUZZ_PARTS) $(FUZZ_OBJECTS)
	$(FUZZ_CC) $(CPPFLAGS) $(FUZZ_CFLAGS) -fsanitize=fuzzer,$(FUZZ_SAN) -o $@ $^ $(LDLIBS)

-include $(FUZZ_PARTS:.o=.d)
