# pageclear: build, test, install. `make calibrate` and `make check` are the two to know; `make help` lists the rest.

VERSION := 0.1.0
PREFIX ?= /usr
LIBDIR ?= $(PREFIX)/lib
B ?= build
CC = gcc

CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes $(WERROR)
# Only a child that asks libcpuid loads it, and only the very version whose headers it was compiled with.
LIBCPUID := $(shell readelf -d "$$($(CC) -print-file-name=libcpuid.so)" 2>/dev/null | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
override CPPFLAGS += -I. -Ilibpolicy/include -D_GNU_SOURCE -DPAGECLEAR_VERSION='"$(VERSION)"' \
	-DLIBCPUID_SONAME='"$(LIBCPUID)"'
# No link-time optimisation: the archive is one object with its internals made local, which intermediate code would not survive.
override CFLAGS += -std=gnu11 $(WARN) -fvisibility=hidden -fno-lto -MMD -MP $(SANITIZE)
override LDFLAGS += $(SANITIZE)

# make V=1 shows the commands.
Q := $(if $(V),,@)
say = $(if $(V),@:,@printf '  %-4s %s\n' $(1) $@)

# --- what consists of what -------------------------------------------------------------------------------------------

KERNELS := $(wildcard kernels/*.c)
POLICY := $(wildcard libpolicy/*.c)
CALIBRD := $(filter-out calibrd/main.c,$(wildcard calibrd/*.c))
CALIBCTL := $(wildcard calibctl/*.c)
UNITS := $(patsubst tests/unit/test_%.c,%,$(wildcard tests/unit/test_*.c))
SIMS := $(patsubst tests/sim/test_%.c,%,$(wildcard tests/sim/test_*.c))
SIM := $(filter-out tests/sim/test_%,$(wildcard tests/sim/*.c))
TOOLS := $(patsubst tests/tools/%.c,%,$(wildcard tests/tools/*.c))
BENCHES := $(patsubst tests/bench/%.c,%,$(wildcard tests/bench/*.c))

objects = $(patsubst %.c,$(B)/obj/%.o,$(1))
CORE = $(call objects,$(KERNELS) $(POLICY))
BODY = $(CORE) $(call objects,$(CALIBRD)) $(B)/gen/migrations.o
LIBS_POLICY := -lyaml
LIBS_CALIBRD := $(LIBS_POLICY) -lsqlite3 -lsystemd -lm -lpthread
LIBS_CALIBCTL := $(LIBS_CALIBRD) -ljansson

all: $(B)/libpolicy.so $(B)/libpolicy.a $(B)/libpolicy.pc $(B)/libpageclear-preload.so $(B)/calibrd $(B)/calibctl

# The archive is for libraries as well: its objects are position-independent, whatever the compiler's default is.
$(CORE): PIC := -fPIC

# What the Makefile says, the version and the flags, is in every object.
$(B)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(PIC) -c -o $@ $<

$(B)/pic/%.o: %.c Makefile
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

# For LD_PRELOAD, with a libpolicy of its own inside, whose calls of memset (the compiler's too) go to libc's. start.o comes
# last: constructors run in this order.
PRELOAD := $(patsubst %.c,$(B)/pic/%.o,$(KERNELS) $(POLICY) calibrd/sizes.c preload/preload.c preload/start.c)
link_preload = $(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libpageclear-preload.so \
	-Wl,--version-script=preload/preload.map -Wl,--wrap=memset -Wl,--wrap=__memset_chk -Wl,-z,defs -Wl,-z,relro -Wl,-z,now \
	-Wl,-z,nodelete -Wl,-z,noseparate-code -o $@ $(filter %.o,$^) $(LIBS_POLICY)

$(B)/pic/preload/preload.o: SMALL := -fno-builtin

$(B)/libpageclear-preload.so: $(PRELOAD) preload/preload.map
	$(call say,LINK)
	$(Q)$(link_preload)

# One object whose only global names are the public ones: internals cannot meet a program's own names.
$(B)/libpolicy.a: $(CORE)
	$(call say,LD)
	$(Q)$(LD) -r -o $(B)/libpolicy.o $^
	$(Q)$(OBJCOPY) --wildcard --keep-global-symbol='pageclear_*' $(B)/libpolicy.o
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $(B)/libpolicy.o

# Written anew each time: it depends on PREFIX and LIBDIR as well.
$(B)/libpolicy.pc: libpolicy/libpolicy.pc.in FORCE
	@mkdir -p $(@D)
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' $< >$@

$(B)/calibrd: $(B)/obj/calibrd/main.o $(BODY)
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS_CALIBRD)

$(B)/calibctl: $(call objects,$(CALIBCTL)) $(BODY)
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS_CALIBCTL)

OBJCOPY ?= objcopy

# --- the two commands ------------------------------------------------------------------------------------------------

calibrate: deps
	$(MAKE) -j$$(nproc) all
	@mkdir -p run
	$(B)/calibrd --once --database run/calibrd.db --policy run/policy.yaml $(CALIBRATE)
	$(B)/calibctl --policy run/policy.yaml show

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

$(addprefix $(B)/test-calibctl_,words where story evidence diff_rules diff_cost history_line job): \
	$(call objects,$(addprefix calibctl/,words.c where.c story.c evidence.c diff_rules.c diff_cost.c history_line.c job.c))

$(B)/test-calibctl_verify_print: $(call objects,$(addprefix calibctl/,verify_print.c verify_restore.c subject.c where.c words.c \
	output.c json.c columns.c))
$(B)/test-calibctl_verify_print: LIBS_CALIBRD += -ljansson

$(B)/test-calibctl_emit: $(call objects,$(addprefix calibctl/,emit_thresholds.c emit_loader.c emit_child.c))

# bench's parts are tested together: its loops, on a meter that is not there.
BENCH_TESTS := $(addprefix $(B)/test-,$(filter calibctl_bench%,$(UNITS)))
$(BENCH_TESTS): $(call objects,$(filter calibctl/bench%,$(CALIBCTL)) $(addprefix calibctl/,args.c words.c tried.c output.c json.c \
	columns.c signals.c))
$(BENCH_TESTS): LIBS_CALIBRD += -ljansson

$(B)/sim-%: $(B)/obj/tests/sim/test_%.o $(call objects,$(SIM) tests/unit/harness.c) $(BODY)
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcunit $(LIBS_CALIBRD)

$(B)/tool-%: $(B)/obj/tests/tools/%.o $(BODY)
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS_CALIBRD)

$(B)/bench-%: $(B)/obj/tests/bench/%.o $(BODY)
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS_CALIBRD)

# As a program is linked: every call goes to the shared library through the PLT.
$(B)/bench-cost: $(call objects,tests/bench/cost.c calibrd/stats.c kernels/cpu.c kernels/cpuid.c) $(B)/shim-empty.so $(B)/libpolicy.so.0
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN' -o $@ $(filter %.o,$^) -L$(B) -l:shim-empty.so -l:libpolicy.so.0 -lm

# calibrd with kernels that fault, hang and clear wrongly on purpose.
$(B)/obj/kernels/table-faulty.o: kernels/table.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -DPC_TEST_KERNELS -c -o $@ $<

$(B)/calibrd-faulty: $(B)/obj/calibrd/main.o $(B)/obj/kernels/table-faulty.o $(filter-out %/kernels/table.o,$(BODY))
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS_CALIBRD)

# The preload library with them, so that a test can see which clears go by the policy.
$(B)/pic/kernels/table-faulty.o: kernels/table.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -DPAGECLEAR_SHARED -DPC_TEST_KERNELS -fPIC -c -o $@ $<

$(B)/libpageclear-preload-faulty.so: $(subst kernels/table.o,kernels/table-faulty.o,$(PRELOAD)) preload/preload.map
	$(call say,LINK)
	$(Q)$(link_preload)

# calibrd with a simulated meter, for tests that go through many calibrations.
FAST := -Wl,--wrap=meter_real_new -Wl,--wrap=trial_run -Wl,--wrap=surroundings_find
$(B)/calibrd-fast: $(call objects,tests/fast/meter.c $(addprefix tests/sim/,meter_sim.c sim_host.c hosts.c)) \
	$(B)/obj/calibrd/main.o $(BODY)
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $(FAST) -o $@ $^ $(LIBS_CALIBRD)

# What tests put before the system's own functions.
$(B)/shim-%.so: tests/shims/%.c
	@mkdir -p $(B)
	$(call say,LINK)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -shared -fPIC -o $@ $<

units: $(addprefix $(B)/test-,$(UNITS))
sims: $(addprefix $(B)/sim-,$(SIMS))
tools: $(addprefix $(B)/tool-,$(TOOLS)) $(B)/calibrd-faulty $(B)/calibrd-fast $(B)/libpageclear-preload-faulty.so \
	$(B)/shim-clock.so $(B)/shim-memsets.so $(B)/bench-perf
benches: $(addprefix $(B)/bench-,$(BENCHES)) $(B)/shim-memsets.so
tests: units sims tools

# --- slower tiers ----------------------------------------------------------------------------------------------------

SOURCES := $(wildcard kernels/*.c libpolicy/*.c calibrd/*.c calibctl/*.c tests/unit/*.c tests/sim/*.c tests/tools/*.c \
	tests/bench/*.c tests/fast/*.c tests/shims/*.c tests/fuzz/*.c tests/abi/*.c examples/*.c preload/*.c tests/preload/*.c \
	tests/safety/*.c)
HEADERS := $(wildcard kernels/*.h libpolicy/*.h libpolicy/include/pageclear/*.h calibrd/*.h calibctl/*.h preload/*.h tests/*/*.h)
STRICT := WERROR=-Werror
TIDY = clang-tidy --quiet --warnings-as-errors="*" "$$1" -- -std=gnu11 -I. -Ilibpolicy/include -D_GNU_SOURCE \
	-DPAGECLEAR_VERSION="\"\"" -DLIBCPUID_SONAME="\"\""

# Both compilers strictly, arm64 for all that is not x86 by nature, format, two analysers, shell and man pages.
lint: deps-check
	tests/deps lint
	$(MAKE) -j$$(nproc) B=$(B)/gcc $(STRICT) all tests benches
	$(MAKE) -j$$(nproc) B=$(B)/clang CC=clang $(STRICT) all tests benches
	$(MAKE) check-arm64
	@echo clang-format
	@clang-format --dry-run -Werror $(SOURCES) $(HEADERS)
	cppcheck --quiet --std=c11 --enable=warning,performance,portability --error-exitcode=1 --inline-suppr \
		--suppressions-list=tests/cppcheck.txt -I. -Ilibpolicy/include -DPAGECLEAR_VERSION='""' -DLIBCPUID_SONAME='""' -D__x86_64__ \
		kernels libpolicy calibrd calibctl preload
	@echo clang-tidy
	@printf '%s\n' $(wildcard kernels/*.c libpolicy/*.c calibrd/*.c calibctl/*.c preload/*.c) | \
		xargs -P 2 -n 1 sh -c '$(TIDY) 2>/dev/null' tidy
	shellcheck tests/run tests/deps tests/abi/dump tests/bench/run tests/bench/preload .ci/run schema/embed.sh tests/cli/*.bats \
		tests/cli/*.bash tests/system/*.bats tests/system/*.bash
	mandoc -Tlint -Wwarning man/*.[1-8]

# Kernels and library for arm64: objects of the whole library, whose one foreign part is libyaml.
ARM64 := aarch64-linux-gnu-gcc
check-arm64:
	tests/deps build lint
	@mkdir -p $(B)/arm64
	@for source in $(KERNELS) $(POLICY) $(CALIBRD) $(wildcard preload/*.c); do \
		$(ARM64) $(CPPFLAGS) -std=gnu11 -O2 $(WARN) -Werror -idirafter /usr/include -c -o $(B)/arm64/object.o \
			$$source || exit 1; done

SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=all

# Everything again under ASan and UBSan, threads under TSan, fuzzers for a while, a booted systemd.
check-all: deps-check
	tests/deps slow
	$(MAKE) -j$$(nproc) B=$(B)/asan SANITIZE="$(SANITIZERS)" units sims
	B=$(B)/asan tests/run units sims
	$(MAKE) -j$$(nproc) B=$(B)/tsan SANITIZE=-fsanitize=thread $(B)/tsan/test-process \
		$(B)/tsan/test-process_trouble $(B)/tsan/test-zero $(B)/tsan/test-meter_crew $(B)/tsan/test-meter_crew_sleep \
		$(B)/tsan/test-meter_taint $(B)/tsan/test-safety_threads $(B)/tsan/test-safety_signals
	B=$(B)/tsan ONLY=process tests/run units
	B=$(B)/tsan ONLY=zero tests/run units
	B=$(B)/tsan ONLY=safety tests/run units
	B=$(B)/tsan ONLY=meter_crew tests/run units
	B=$(B)/tsan ONLY=meter_taint tests/run units
	$(MAKE) fuzz FUZZ_SECONDS=20
	$(MAKE) all tools sims
	$(MAKE) B=$(B)/asan SANITIZE="$(SANITIZERS)" $(B)/asan/tool-bus_stand
	B=$(B) BUS_STAND=$(B)/asan/tool-bus_stand ONLY=cli-bus tests/run cli
	B=$(B) PAGECLEAR_SEEDS=100 tests/run sims
	B=$(B) ONLY=kills PAGECLEAR_KILLS=200 TEST_TIMEOUT=1800 tests/run cli
	B=$(B) ONLY=readers PAGECLEAR_PUBLICATIONS=10000 TEST_TIMEOUT=1800 tests/run cli
	B=$(B) ONLY=linear PAGECLEAR_PARSE_MOST=65536 tests/run cli
	B=$(B) ONLY=cli-safety PAGECLEAR_LOADS=1000 tests/run cli
	B=$(B) tests/run system

FUZZ_SECONDS ?= 600
FUZZERS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
$(B)/fuzz-%: tests/fuzz/fuzz_%.c $(KERNELS) $(POLICY) $(CALIBRD) $(B)/gen/migrations.c $(HEADERS)
	$(call say,LINK)
	$(Q)clang $(CPPFLAGS) -std=gnu11 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -o $@ \
		$(filter %.c,$^) $(LIBS_CALIBRD)

fuzz:
	tests/deps build slow
	@mkdir -p $(B)
	$(MAKE) $(addprefix $(B)/fuzz-,$(FUZZERS))
	for name in $(FUZZERS); do mkdir -p $(B)/corpus/$$name; \
		$(B)/fuzz-$$name -max_total_time=$(FUZZ_SECONDS) -max_len=70000 -timeout=10 -print_final_stats=0 -verbosity=0 \
			-artifact_prefix=$(B)/ $(B)/corpus/$$name \
			$$(ls -d tests/fuzz/corpus/$$name tests/data/$$name 2>/dev/null) || exit 1; done

bench: deps
	$(MAKE) all benches
	B=$(B) tests/bench/run $(PARTS)

# --- install ---------------------------------------------------------------------------------------------------------

# A function without a page of its own stands on another's, under NAME: as alias.3:page.3.
MAN_LINKS = $(shell cd man && for page in *.3; do sed -n "/^.Sh SYNOPSIS/q; s/^.Nm \([a-z_]*\).*/\1/p" $$page | \
	while read -r name; do [ -e $$name.3 ] || echo $$name.3:$$page; done; done)

# Read from there only: the bus looks into /etc and /usr/share, calibrd for the vendor's file into /usr/lib.
BUS_POLICY = $(if $(filter /usr,$(PREFIX)),/usr/share/dbus-1,/etc/dbus-1)/system.d
VENDOR = $(if $(filter /usr,$(PREFIX)),/usr/lib/pageclear)

install: all
	install -D -m 755 $(B)/calibrd $(DESTDIR)$(PREFIX)/sbin/calibrd
	install -D -m 755 $(B)/calibctl $(DESTDIR)$(PREFIX)/bin/calibctl
	install -D -m 644 $(B)/libpolicy.so.0 $(DESTDIR)$(LIBDIR)/libpolicy.so.$(VERSION)
	ln -sf libpolicy.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libpolicy.so.0
	$(Q)ln -sf libpolicy.so.0 $(DESTDIR)$(LIBDIR)/libpolicy.so
	install -m 644 $(B)/libpolicy.a $(DESTDIR)$(LIBDIR)/libpolicy.a
	install -m 755 $(B)/libpageclear-preload.so $(DESTDIR)$(LIBDIR)/libpageclear-preload.so
	install -D -m 644 $(B)/libpolicy.pc $(DESTDIR)$(LIBDIR)/pkgconfig/libpolicy.pc
	install -D -m 644 libpolicy/include/pageclear/policy.h $(DESTDIR)$(PREFIX)/include/pageclear/policy.h
	$(if $(VENDOR),install -D -m 644 configs/calibrd.yaml $(DESTDIR)$(VENDOR)/calibrd.yaml)
	[ -e $(DESTDIR)/etc/pageclear/calibrd.yaml ] || \
		install -D -m 644 configs/calibrd.yaml $(DESTDIR)/etc/pageclear/calibrd.yaml
	install -d $(DESTDIR)/etc/pageclear/calibrd.yaml.d $(DESTDIR)$(PREFIX)/share/pageclear \
		$(DESTDIR)$(PREFIX)/share/dbus-1/interfaces $(DESTDIR)$(BUS_POLICY) $(DESTDIR)$(PREFIX)/lib/systemd/system
	install -m 644 schema/*.json $(DESTDIR)$(PREFIX)/share/pageclear
	install -m 644 schema/*.xml $(DESTDIR)$(PREFIX)/share/dbus-1/interfaces
	install -m 644 configs/*.conf $(DESTDIR)$(BUS_POLICY)
	install -D -m 644 systemd/pageclear.tmpfiles $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/pageclear.conf
	install -D -m 644 systemd/pageclear.catalog $(DESTDIR)$(PREFIX)/lib/systemd/catalog/pageclear.catalog
	sed 's|@PREFIX@|$(PREFIX)|' systemd/calibrd.service >$(DESTDIR)$(PREFIX)/lib/systemd/system/calibrd.service
	for page in man/*.[1-8]; do \
		install -D -m 644 $$page $(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/$${page##*/} || exit 1; done
	for link in $(MAN_LINKS); do ln -sf $${link#*:} $(DESTDIR)$(PREFIX)/share/man/man3/$${link%:*} || exit 1; done

# What install put there and no more: configuration, policy and measurements stay.
uninstall:
	cd $(DESTDIR)$(PREFIX)/ && rm -f sbin/calibrd bin/calibctl include/pageclear/policy.h \
		lib/systemd/system/calibrd.service lib/systemd/catalog/pageclear.catalog lib/tmpfiles.d/pageclear.conf \
		$(addprefix share/pageclear/,$(notdir $(wildcard schema/*.json))) \
		$(addprefix share/dbus-1/interfaces/,$(notdir $(wildcard schema/*.xml))) \
		$(addprefix share/man/man3/,$(foreach link,$(MAN_LINKS),$(firstword $(subst :, ,$(link))))) \
		$(foreach page,$(notdir $(wildcard man/*.[1-8])),share/man/man$(subst .,,$(suffix $(page)))/$(page))
	cd $(DESTDIR)$(LIBDIR)/ && rm -f libpolicy.so.$(VERSION) libpolicy.so.0 libpolicy.so libpolicy.a pkgconfig/libpolicy.pc \
		libpageclear-preload.so
	rm -f $(addprefix $(DESTDIR)$(BUS_POLICY)/,$(notdir $(wildcard configs/*.conf))) \
		$(if $(VENDOR),$(DESTDIR)$(VENDOR)/calibrd.yaml)
	-rmdir $(addprefix $(DESTDIR),$(PREFIX)/include/pageclear $(PREFIX)/share/pageclear $(VENDOR))

clean:
	rm -rf $(B)

help:
	@echo 'make calibrate   build, measure this host (a minute), show the policy'
	@echo 'make check       build and run the tests'
	@echo 'make check-all   the same under sanitizers, fuzzers, a booted systemd'
	@echo 'make lint        gcc and clang strictly, arm64, format, analysers'
	@echo 'make bench       every figure that the README states, on this host'
	@echo 'make fuzz        libFuzzer on all that parses ($(FUZZ_SECONDS) s each)'
	@echo 'make check-arm64 what is not x86 by nature compiles for arm64'
	@echo 'make deps        install the packages that the build needs'
	@echo 'make install     DESTDIR= PREFIX=$(PREFIX); uninstall leaves configuration, policy and measurements'

FORCE:

.PHONY: FORCE all calibrate check deps deps-check units sims tools benches tests lint check-arm64 check-all fuzz bench install \
	uninstall clean help
.SECONDARY:
-include $(shell find $(B) -name '*.d' -type f 2>/dev/null)
