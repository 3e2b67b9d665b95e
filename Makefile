# pageclear: build, test, install. `make calibrate` and `make check` are the two to know; `make help` lists the rest.

VERSION := 0.1.0
PREFIX ?= /usr
LIBDIR ?= $(PREFIX)/lib
B ?= build
CC = gcc

CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes $(WERROR)
override CPPFLAGS += -I. -Ilibpolicy/include -D_GNU_SOURCE -DPAGECLEAR_VERSION='"$(VERSION)"'
override CFLAGS += -std=gnu11 $(WARN) -fvisibility=hidden -MMD -MP $(SANITIZE)
override LDFLAGS += $(SANITIZE)

# make V=1 shows the commands.
Q := $(if $(V),,@)
say = $(if $(V),@:,@printf '  %-4s %s\n' $(1) $@)

# --- what consists of what -------------------------------------------------------------------------------------------

KERNELS := $(wildcard kernels/*.c)
POLICY := $(wildcard libpolicy/*.c)
CALIBRD := $(filter-out calibrd/main.c,$(wildcard calibrd/*.c))
UNITS := $(patsubst tests/unit/test_%.c,%,$(wildcard tests/unit/test_*.c))
SIMS := $(patsubst tests/sim/test_%.c,%,$(wildcard tests/sim/test_*.c))
SIM := $(filter-out tests/sim/test_%,$(wildcard tests/sim/*.c))
BENCHES := $(patsubst tests/bench/%.c,%,$(wildcard tests/bench/*.c))

objects = $(patsubst %.c,$(B)/obj/%.o,$(1))
CORE = $(call objects,$(KERNELS) $(POLICY))
BODY = $(CORE) $(call objects,$(CALIBRD)) $(B)/gen/migrations.o
LIBS_POLICY := -lyaml
LIBS_CALIBRD := $(LIBS_POLICY) -lsqlite3 -lsystemd -lcpuid -lm -lpthread

all: $(B)/libpolicy.so $(B)/libpolicy.a $(B)/libpolicy.pc $(BODY)

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(B)/pic/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(SMALL) -DPAGECLEAR_SHARED -fPIC -c -o $@ $<

# What runs once per load is built for size: the library's budget is 48 KiB.
$(patsubst %,$(B)/pic/libpolicy/%.o,tree document values search file process rate builtin why): SMALL := -Os

$(B)/gen/migrations.c: schema/embed.sh $(wildcard schema/*.sql)
	@mkdir -p $(@D)
	$(Q)sh schema/embed.sh $(sort $(wildcard schema/*.sql)) >$@.new
	$(Q)mv $@.new $@

$(B)/gen/migrations.o: $(B)/gen/migrations.c
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(B)/libpolicy.so.0: $(patsubst %.c,$(B)/pic/%.o,$(KERNELS) $(POLICY)) libpolicy/libpolicy.map
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libpolicy.so.0 -Wl,--version-script=libpolicy/libpolicy.map \
		-Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,-z,noseparate-code -o $@ $(filter %.o,$^) $(LIBS_POLICY)

$(B)/libpolicy.so: $(B)/libpolicy.so.0
	$(Q)ln -sf libpolicy.so.0 $@

# One object whose only global names are the public ones: internals cannot meet a program's own names.
$(B)/libpolicy.a: $(CORE)
	$(call say,LD)
	$(Q)$(LD) -r -o $(B)/libpolicy.o $^
	$(Q)$(OBJCOPY) --wildcard --keep-global-symbol='pageclear_*' $(B)/libpolicy.o
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $(B)/libpolicy.o

$(B)/libpolicy.pc: libpolicy/libpolicy.pc.in Makefile
	@mkdir -p $(@D)
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' $< >$@

OBJCOPY ?= objcopy

# --- the two commands ------------------------------------------------------------------------------------------------

check: deps-check
	$(MAKE) -j$$(nproc) all tests
	B=$(B) tests/run units sims cli

deps:
	tests/deps build

deps-check:
	tests/deps build check

# --- tests -----------------------------------------------------------------------------------------------------------

$(B)/test-%: $(B)/obj/tests/unit/test_%.o $(B)/obj/tests/unit/harness.o $(BODY)
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcunit $(LIBS_CALIBRD)

$(B)/sim-%: $(B)/obj/tests/sim/test_%.o $(call objects,$(SIM) tests/unit/harness.c) $(BODY)
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcunit $(LIBS_CALIBRD)

$(B)/bench-%: $(B)/obj/tests/bench/%.o $(BODY)
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS_CALIBRD)

units: $(addprefix $(B)/test-,$(UNITS))
sims: $(addprefix $(B)/sim-,$(SIMS))
benches: $(addprefix $(B)/bench-,$(BENCHES))
tests: units sims

clean:
	rm -rf $(B)

.PHONY: all check deps deps-check units sims benches tests clean
.SECONDARY:
-include $(shell find $(B) -name '*.d' 2>/dev/null)
