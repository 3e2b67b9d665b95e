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
#include "tests/bench/states.h"

enum { ARENA = 48 << 20, HUGE = 2 << 20, ROUNDS_MAX = 400 };

/* Beyond the states that an old target may be in. */
enum { FRESH_BASE = STATES, FRESH_HUGE, ROWS };

enum { LIBC, RIVAL, PROBED, AGAIN, WAYS };

static struct options {
	size_t rounds;
	double slow_ns;
	unsigned lines;
	bool cold;
	const struct pc_kernel *rival;
} options = {.rounds = 40, .slow_ns = 90, .lines = BENCH_PROBE_LINES};

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
	        pc_arch, here, options.lines, options.slow_ns);
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
		pageclear_policy_zero(policy, at, bytes, options.cold ? PAGECLEAR_COLD : PAGECLEAR_HOT);
	else
		(way == RIVAL ? options.rival : pc_kernels)->clear(at, bytes);
}

static double time_clear(unsigned way, char *at, size_t bytes)
{
	uint64_t begin = pc_ticks();

	clear(way, at, bytes);
	if (!options.cold)
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

/* Returns the index of the first size, or -1. */
static int parse(int argc, char **argv)
{
	int option;

	options.rival = pc_kernel_find("clzero");
	if (options.rival == NULL || !pc_kernel_runs(options.rival))
		options.rival = pc_kernel_find("sse2nt");
	while ((option = getopt(argc, argv, "cl:t:r:")) != -1)
		switch (option) {
		case 'c':
			options.cold = true;
			break;
		case 'l':
			options.lines = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 't':
			options.slow_ns = strtod(optarg, NULL);
			break;
		case 'r':
			options.rounds = strtoul(optarg, NULL, 10);
			break;
		default:
			return -1;
		}
	if (options.rival == NULL || options.rounds < 1 || options.rounds > ROUNDS_MAX || options.slow_ns <= 0 ||
	    options.lines < 1 || options.lines > PC_PROBE_MOST)
		return -1;
	for (int i = optind; i < argc; i++)
		if (strtoul(argv[i], NULL, 10) < 8 || strtoul(argv[i], NULL, 10) > ARENA / 2048)
			return -1;
	return optind;
}

int main(int argc, char **argv)
{
	int first = parse(argc, argv), r;

	if (first < 0) {
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
	       options.rival->name, options.lines, options.slow_ns, options.cold ? "" : ", with the first read",
	       options.rounds);
	if (first == argc)
		for (size_t kib = 64; kib <= 4096; kib *= 2)
			report(arena, kib << 10);
	for (int i = first; i < argc; i++)
		report(arena, strtoul(argv[i], NULL, 10) << 10);
	pageclear_policy_close(policy);
	munmap(arena, ARENA);
	return 0;
}
