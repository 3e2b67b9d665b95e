/*
 * Forms of the probe, beside each other: how many lines, where, timed one by one or at once, believed after one look or
 * two. For each form and state of the target: what it costs, how often it says "flushed", and what probe and clear
 * together lose against the better of libc and a rival that goes round the caches. A report; libpolicy/probe.h has what
 * came of it. Usage: bench-forms [-b] [-n] [-q NS] [-t NS] [-k KERNEL] [-r ROUNDS] [KIB]... -b base pages  -n a
 * neighbour streams through memory on another CPU  -q a clock of that resolution  -t threshold
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calibrd/stats.h"
#include "kernels/kernels.h"
#include "libpolicy/probe.h"
#include "libpolicy/rate.h"
#include "tests/bench/probe_options.h"
#include "tests/bench/states.h"

enum { LINES_MAX = 8 };

static struct probe_options options = {.rounds = 60, .slow_ns = 90};
static double resolution_ns;
static bool base_pages, neighbour;

static double ticks_per_ns;
static struct random chance = {20261130};

/* --- forms ------------------------------------------------------------------------------------------------------- */

static size_t even(size_t total, uint64_t salt, unsigned i)
{
	(void)salt;
	return total / (2 * LINES_MAX) * (2 * i + 1);
}

static size_t golden(size_t total, uint64_t salt, unsigned i)
{
	(void)salt;
	return (size_t)((unsigned __int128)total * ((i + 1) * UINT64_C(0x9e3779b97f4a7c15)) >> 64);
}

static size_t anywhere(size_t total, uint64_t salt, unsigned i)
{
	(void)salt;
	(void)i;
	return (size_t)random_below(&chance, total);
}

static const struct form {
	const char *name;
	unsigned first, second; /* lines of the looks that load them at once; no second: the first decides */
	unsigned serial;        /* lines timed one by one afterwards, of which most must be slow */
	size_t (*offset)(size_t total, uint64_t salt, unsigned i);
	bool stores; /* to another line of the page, beforehand */
} forms[] = {
	{"4 one by one", 0, 0, 4, golden, false},  {"4, even", 0, 0, 4, even, false},
	{"8 one by one", 0, 0, 8, golden, false},  {"1 at once", 1, 0, 0, golden, false},
	{"2 at once", 2, 0, 0, golden, false},     {"4 at once", 4, 0, 0, golden, false},
	{"8 at once", 8, 0, 0, golden, false},     {"8, even", 8, 0, 0, even, false},
	{"2, then 3", 2, 0, 3, golden, false},     {"1 + 1", 1, 1, 0, pc_probe_offset, true},
	{"2 + 2", 2, 2, 0, pc_probe_offset, true}, {"3 + 3", 3, 3, 0, pc_probe_offset, true},
	{"4 + 4", 4, 4, 0, pc_probe_offset, true}, {"4 + 4 golden", 4, 4, 0, golden, true},
	{"4 + 4 random", 4, 4, 0, anywhere, true}, {"4 + 4 load", 4, 4, 0, pc_probe_offset, false},
};

enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

/* A clock that counts in steps of its resolution, from a moment that no load knows. */
static bool is_slow(uint64_t begin, uint64_t end)
{
	double ns = (double)(end - begin) / ticks_per_ns, phase;

	if (resolution_ns > 0) {
		phase = fmod((double)begin / ticks_per_ns, resolution_ns);
		ns = floor((phase + ns) / resolution_ns) * resolution_ns;
	}
	return ns > options.slow_ns;
}

static bool look(const struct form *form, char *at, size_t bytes, unsigned first, unsigned count)
{
	const volatile char *loads[LINES_MAX];
	uint64_t salt = ((uintptr_t)at >> 12) * UINT64_C(0xd1342543de82ef95), begin;

	for (unsigned i = 0; i < count; i++) {
		size_t offset = form->offset(bytes, salt, first + i);

		loads[i] = at + offset;
		if (form->stores)
			*(volatile char *)(at + (offset ^ 2048)) = 0;
	}
	begin = pc_ticks();
	for (unsigned i = 0; i < count; i++)
		(void)*loads[i];
	return is_slow(begin, pc_ticks_end());
}

/* One load instruction for all, as in a loop that stays one: prefetchers learn strides by instruction. */
static __attribute__((noinline)) bool one_by_one(const struct form *form, char *at, size_t bytes)
{
	unsigned slow = 0, fast = 0;

	while (2 * slow <= form->serial && 2 * fast < form->serial)
		if (look(form, at, bytes, form->first + slow + fast, 1))
			slow++;
		else
			fast++;
	return 2 * slow > form->serial;
}

static __attribute__((noinline)) bool says_flushed(const struct form *form, char *at, size_t bytes)
{
	if (form->first > 0 && !look(form, at, bytes, 0, form->first))
		return false;
	if (form->second > 0 && !look(form, at, bytes, form->first, form->second))
		return false;
	return form->serial == 0 || one_by_one(form, at, bytes);
}

/* --- measuring --------------------------------------------------------------------------------------------------- */

static double ns_since(uint64_t begin)
{
	return (double)(pc_ticks() - begin) / ticks_per_ns;
}

static char *place(char *arena, size_t bytes)
{
	return arena + random_below(&chance, (ARENA - bytes) / 4096) * 4096;
}

/* Medians of what libc and the rival take, by state. */
static void measure_clears(char *arena, size_t bytes, double cost[STATES][2])
{
	static double ns[STATES][2][ROUNDS_MAX];

	for (size_t round = 0; round < options.rounds; round++)
		for (unsigned state = 0; state < STATES; state++) {
			char *at = place(arena, bytes);

			for (unsigned k = 0; k < 2; k++) {
				uint64_t begin;

				state_prepare((enum state)state, at, bytes, &chance);
				begin = pc_ticks();
				(k == 0 ? pc_kernels : options.rival)->clear(at, bytes);
				ns[state][k][round] = ns_since(begin);
			}
		}
	for (unsigned state = 0; state < STATES; state++)
		for (unsigned k = 0; k < 2; k++)
			cost[state][k] = stats_median(ns[state][k], options.rounds);
}

struct told {
	double ns[FORMS][STATES][ROUNDS_MAX];
	unsigned flushed[FORMS][STATES];
};

static void measure_forms(char *arena, size_t bytes, struct told *told)
{
	static uint64_t scratch[256];

	memset(told, 0, sizeof(*told));
	for (size_t round = 0; round < options.rounds; round++)
		for (unsigned i = 0; i < FORMS * STATES; i++) {
			unsigned mixed = (unsigned)((i * 41 + round * 13) % (FORMS * STATES)); /* 41: prime to both */
			unsigned f = mixed % FORMS, state = mixed / FORMS;
			char *at = place(arena, bytes);
			uint64_t begin;

			state_prepare((enum state)state, at, bytes, &chance);
			touch_work(scratch, 100);
			begin = pc_ticks();
			told->flushed[f][state] += says_flushed(&forms[f], at, bytes);
			told->ns[f][state][round] = ns_since(begin);
		}
}

/* --- the report -------------------------------------------------------------------------------------------------- */

/* Of the clock alone, which every time here includes. */
static double clock_reading(void)
{
	double ns[31];

	for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++)
		ns[i] = ns_since(pc_ticks());
	return stats_median(ns, sizeof(ns) / sizeof(ns[0]));
}

static void report(char *arena, size_t bytes)
{
	static struct told told;
	double cost[STATES][2], clock_ns = clock_reading();

	measure_clears(arena, bytes, cost);
	measure_forms(arena, bytes, &told);
	printf("\n%zu KiB\n%-13s", bytes >> 10, "");
	for (unsigned state = 0; state < STATES; state++)
		printf("  %-16s", state_names[state]);
	printf("\n%-13s", "libc / rival");
	for (unsigned state = 0; state < STATES; state++)
		printf("  %7.0f/%-8.0f", cost[state][0], cost[state][1]);
	for (unsigned f = 0; f < FORMS; f++) {
		printf("\n%-13s", forms[f].name);
		for (unsigned state = 0; state < STATES; state++) {
			double ns = fmax(0, stats_median(told.ns[f][state], options.rounds) - clock_ns);
			double share = (double)told.flushed[f][state] / (double)options.rounds;
			double whole = ns + share * cost[state][1] + (1 - share) * cost[state][0];

			printf("  %4.0f %3.0f%% %+4.0f%%  ", ns, 100 * share,
			       100 * (whole / fmin(cost[state][0], cost[state][1]) - 1));
		}
	}
	putchar('\n');
}

/* A neighbour that takes cache and memory bandwidth until its parent ends. */
static pid_t start_neighbour(void)
{
	enum { BYTES = 64 << 20 };
	pid_t child = fork();

	if (child != 0)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	while (memory != MAP_FAILED)
		touch_dirty(memory, BYTES);
	_exit(1);
}

static void stop_neighbour(pid_t child)
{
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
}

static bool own_option(int letter)
{
	switch (letter) {
	case 'b':
		base_pages = true;
		return true;
	case 'n':
		neighbour = true;
		return true;
	case 'q':
		resolution_ns = strtod(optarg, NULL);
		return true;
	default:
		return false;
	}
}

int main(int argc, char **argv)
{
	pid_t child = 0;

	if (!probe_options_parse(&options, argc, argv, "bnq:t:k:r:", own_option)) {
		fprintf(stderr, "usage: bench-forms [-b] [-n] [-q NS] [-t NS] [-k KERNEL] [-r 1..%d] [8..%d KIB]...\n",
		        ROUNDS_MAX, ARENA / 2048);
		return 2;
	}
	char *arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ticks_per_ns = pc_rate_since(pc_moment_now());
	if (arena == MAP_FAILED || ticks_per_ns <= 0) {
		fprintf(stderr, "bench-forms: no memory, or no clock\n");
		return 1;
	}
	madvise(arena, ARENA, base_pages ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
	touch_dirty(arena, ARENA);
	if (neighbour)
		child = start_neighbour();
	printf("Each: ns of the probe, share that said \"flushed\", loss of probe and clear against the better of libc "
	       "and %s.\n"
	       "Slow from %.0f ns; %zu rounds; %s pages; clock in steps of %.0f ns (0: its own), of which a reading's "
	       "%.0f ns are taken off%s\n",
	       options.rival->name, options.slow_ns, options.rounds, base_pages ? "base" : "huge", resolution_ns,
	       clock_reading(), neighbour ? "; with a neighbour" : "");
	probe_report(&options, 4, report, arena);
	stop_neighbour(child);
	munmap(arena, ARENA);
	return 0;
}
