/*
 * What probing earns and costs, end to end: clears without a hint by a policy that probes, beside both clears that it
 * chooses from, for targets in known states and for fresh mappings, where the kernel has yet to give the memory. A
 * report for `make bench`; it judges nothing. Usage: bench-probe [-c] [-l LINES] [-t NS] [-r ROUNDS] [KIB]... -c cold:
 * the first read isn't part of it
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <pageclear/policy.h>

#include "calibrd/bench.h"
#include "calibrd/stats.h"
#include "kernels/kernels.h"
#include "libpolicy/policy.h"
#include "libpolicy/rate.h"
#include "tests/bench/probe_options.h"
#include "tests/bench/states.h"

enum { HUGE = 2 << 20 };

/* Beyond the states that an old target may be in. */
enum { FRESH_BASE = STATES, FRESH_HUGE, ROWS };

enum { LIBC, RIVAL, PROBED, AGAIN, WAYS };

static struct probe_options options = {.rounds = 40, .slow_ns = 90};
static unsigned lines = BENCH_PROBE_LINES;
static bool cold;

static const struct pageclear_policy *policy;
static double ticks_per_ns;
static struct random chance = {20261130};
static volatile uint64_t sink;

/* --- a policy that probes ---------------------------------------------------------------------------------------- */

static int write_policy(FILE *file)
{
	static const char *const intents[] = {"hot", "cold"};
	char here[64];

	pc_cpu_signature(here, sizeof(here));
	fprintf(file,
	        "format: 1\ngeneration: 1\nversion: \"0\"\nwritten: \"2026-11-30T10:42:07Z\"\nquality: good\n"
	        "host: {topology: \"0\", arch: \"%s\", cpus: [\"%s\"]}\nprobe: {from: 1024, lines: %u, slow_ns: %.2f}\n"
	        "clear:\n",
	        pc_arch, here, lines, options.slow_ns);
	for (unsigned i = 0; i < 2; i++)
		fprintf(file,
		        "- {intent: %s, when: {threads: 1, prior: cached}, rules: [{from: 0, kernel: libc}]}\n"
		        "- {intent: %s, when: {threads: 1, prior: flushed}, rules: [{from: 0, kernel: %s}]}\n",
		        intents[i], intents[i], options.rival->name);
	return ferror(file) || fflush(file) != 0 ? -EIO : 0;
}

static int open_policy(void)
{
	char path[] = "/tmp/pageclear-probe-XXXXXX";
	int fd = mkstemp(path), r;
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	if (file == NULL)
		return -errno;
	r = write_policy(file);
	if (r == 0)
		r = pageclear_policy_open(&policy, path);
	fclose(file);
	unlink(path);
	return r;
}

/* --- measuring --------------------------------------------------------------------------------------------------- */

static void clear(unsigned way, char *at, size_t bytes)
{
	if (way == PROBED)
		pageclear_policy_zero(policy, at, bytes, cold ? PAGECLEAR_COLD : PAGECLEAR_HOT);
	else
		(way == RIVAL ? options.rival : pc_kernels)->clear(at, bytes);
}

static double time_clear(unsigned way, char *at, size_t bytes)
{
	uint64_t begin = pc_ticks();

	clear(way, at, bytes);
	if (!cold)
		sink += touch_read(at, bytes);
	return (double)(pc_ticks() - begin) / ticks_per_ns;
}

/* NaN without memory. Aligned as malloc's large blocks are not, but a program's own huge arenas. */
static double time_fresh(unsigned way, size_t bytes, int advice)
{
	char *map = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at = map + (-(uintptr_t)map & (HUGE - 1));
	double ns;

	if (map == MAP_FAILED)
		return NAN;
	madvise(map, bytes + HUGE, advice);
	ns = time_clear(way, at, bytes);
	munmap(map, bytes + HUGE);
	return ns;
}

static double sample(unsigned row, unsigned way, char *arena, size_t bytes)
{
	static uint64_t scratch[256];

	if (row >= STATES) {
		int advice = row == FRESH_HUGE ? MADV_HUGEPAGE : MADV_NOHUGEPAGE;

		/* The kernel hands out what was unmapped last, and clears it faster where it is still cached. */
		time_fresh(LIBC, bytes, advice);
		return time_fresh(way, bytes, advice);
	}
	state_prepare((enum state)row, arena, bytes, &chance);
	touch_work(scratch, 100);
	return time_clear(way, arena, bytes);
}

static void report(char *arena, size_t bytes)
{
	static double ns[WAYS][ROUNDS_MAX];
	double middle[WAYS], best;

	printf("%zu KiB\n", bytes >> 10);
	for (unsigned row = 0; row < ROWS; row++) {
		for (size_t round = 0; round < options.rounds; round++) {
			char *at = arena + random_below(&chance, (ARENA - bytes) / 4096) * 4096;

			for (unsigned i = 0; i < WAYS; i++) {
				unsigned way = (unsigned)((i + round) % WAYS);

				ns[way][round] = sample(row, way, at, bytes);
			}
		}
		for (unsigned way = 0; way < WAYS; way++)
			middle[way] = stats_median(ns[way], options.rounds);
		best = fmin(middle[LIBC], middle[RIVAL]);
		printf("  %-12s %9.0f %9.0f %9.0f   %5.2fx of libc (libc again %.2fx)   %+4.0f %% against the better\n",
		       row == FRESH_BASE   ? "fresh, base"
		       : row == FRESH_HUGE ? "fresh, huge"
		                           : state_names[row],
		       middle[LIBC], middle[RIVAL], middle[PROBED], middle[LIBC] / middle[PROBED],
		       middle[LIBC] / middle[AGAIN], 100 * (middle[PROBED] / best - 1));
	}
}

static bool own_option(int letter)
{
	switch (letter) {
	case 'c':
		cold = true;
		return true;
	case 'l':
		lines = (unsigned)strtoul(optarg, NULL, 10);
		return true;
	default:
		return false;
	}
}

int main(int argc, char **argv)
{
	int r;

	if (!probe_options_parse(&options, argc, argv, "cl:t:r:", own_option) || lines < 1 || lines > PC_PROBE_MOST) {
		fprintf(stderr, "usage: bench-probe [-c] [-l 1..%d] [-t NS] [-r 1..%d] [8..%d KIB]...\n", PC_PROBE_MOST,
		        ROUNDS_MAX, ARENA / 2048);
		return 2;
	}
	char *arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ticks_per_ns = pc_rate_since(pc_moment_now());
	r = arena == MAP_FAILED ? -ENOMEM : ticks_per_ns <= 0 ? -ENOSYS : open_policy();
	if (r < 0) {
		fprintf(stderr, "bench-probe: %s\n", strerror(-r));
		return 1;
	}
	madvise(arena, ARENA, MADV_HUGEPAGE);
	touch_dirty(arena, ARENA);
	printf("ns by libc, by %s, by whichever the probe says (%u lines, slow from %.0f ns)%s; medians of %zu\n",
	       options.rival->name, lines, options.slow_ns, cold ? "" : ", with the first read", options.rounds);
	probe_report(&options, 2, report, arena);
	pageclear_policy_close(policy);
	munmap(arena, ARENA);
	return 0;
}
