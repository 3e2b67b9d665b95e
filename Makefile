# pageclear: build, test, install. `make calibrate` and `make check` are the two to know; `make help` lists the rest.

VERSION := 0.1.0
B ?= build
CC = gcc
PKG_CONFIG ?= pkg-config

CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes $(WERROR)
override CPPFLAGS += -I. -Ilibpolicy/include -D_GNU_SOURCE -DPAGECLEAR_VERSION='"$(VERSION)"'
override CFLAGS += -std=gnu11 $(WARN) -fvisibility=hidden -MMD -MP $(SANITIZE)
override LDFLAGS += $(SANITIZE)

# --- what consists of what -------------------------------------------------------------------------------------------

KERNELS := $(wildcard kernels/*.c)
UNITS := $(patsubst tests/unit/test_%.c,%,$(wildcard tests/unit/test_*.c))
BENCHES := $(patsubst tests/bench/%.c,%,$(wildcard tests/bench/*.c))

objects = $(patsubst %.c,$(B)/obj/%.o,$(1))
CORE = $(call objects,$(KERNELS))
BODY = $(CORE)
LIBS := -lm

all: $(CORE)

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# --- the two commands ------------------------------------------------------------------------------------------------

check: deps-check
	$(MAKE) all tests
	B=$(B) tests/run units

deps:
	tests/deps build

deps-check:
	tests/deps build check

# --- tests -----------------------------------------------------------------------------------------------------------

$(B)/test-%: $(B)/obj/tests/unit/test_%.o $(B)/obj/tests/unit/harness.o $(BODY)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcunit $(LIBS)

$(B)/bench-%: $(B)/obj/tests/bench/%.o $(BODY)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

units: $(addprefix $(B)/test-,$(UNITS))
benches: $(addprefix $(B)/bench-,$(BENCHES))
tests: units

clean:
	rm -rf $(B)

.PHONY: all check deps deps-check units benches tests clean
.SECONDARY:
-include $(shell find $(B) -name '*.d' 2>/dev/null)
