/*
 * What the library itself costs: its calls beside glibc's memset from 1 byte to 1 GiB, a look-up beside an empty call,
 * opening a policy. Linked as a program links it, against the shared library, so every call goes through the PLT.
 * Usage: bench-cost [LARGEST]. A report; marks with `!` what misses a budget (design 10) by more than memset misses
 * itself.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <pageclear/policy.h>

#include "calibrd/random.h"
#include "calibrd/stats.h"
#include "kernels/cpu.h"

enum {
	RUNS = 5,
	ROUNDS = 41,       /* a run, of small sizes */
	SIZES = 1024,      /* that one loop walks through, a power of two */
	BLOCK_NS = 20000,  /* at least, under one timer */
	CELL_NS = 4000000, /* a run's rounds of one contestant, about */
};

/* The same symbol without the header's inline body. */
void zero_exported(void *dst, size_t len, unsigned intent) __asm__("pageclear_zero");

__attribute__((visibility("default"))) int shim_empty(const void *policy, const void *query, void *choice);

static const struct pageclear_policy *builtin;
static size_t sizes[SIZES];
static struct random random_state = {20261130};

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* --- who takes part ---------------------------------------------------------------------------------------------- */

/* All loops begin with a line of code: they differ in the call and in nothing else. */
#define LOOP(name, call)                                                                                               \
	static __attribute__((noinline, aligned(64))) void name(void *at, size_t n)                                    \
	{                                                                                                              \
		for (size_t i = 0; i < n; i++) {                                                                       \
			size_t len = sizes[i % SIZES];                                                                 \
                                                                                                                       \
			call;                                                                                          \
			__asm__ volatile("" : : "r"(at) : "memory");                                                   \
		}                                                                                                      \
	}

LOOP(run_memset, memset(at, 0, len))
LOOP(run_inline, pageclear_zero(at, len, PAGECLEAR_HOT))
LOOP(run_hot, zero_exported(at, len, PAGECLEAR_HOT))
LOOP(run_cold, zero_exported(at, len, PAGECLEAR_COLD))
LOOP(run_wipe, zero_exported(at, len, PAGECLEAR_WIPE))
LOOP(run_builtin, pageclear_policy_zero(builtin, at, len, PAGECLEAR_HOT))

static const struct contestant {
	const char *name;
	void (*run)(void *at, size_t n);
} contestants[] = {
	{"memset", run_memset}, {"again", run_memset}, {"inline", run_inline},   {"hot", run_hot},
	{"cold", run_cold},     {"wipe", run_wipe},    {"builtin", run_builtin},
};

enum { CONTESTANTS = sizeof(contestants) / sizeof(contestants[0]), MEMSET = 0, AGAIN = 1, INLINE = 2 };

/* --- a row of sizes ---------------------------------------------------------------------------------------------- */

struct cell {
	double ns;          /* a call, median over the runs' medians */
	double ratio;       /* memset's time by this one's, paired, likewise */
	double least, most; /* of the runs */
	double more_ns;     /* than memset, likewise */
};

static double time_block(void (*run)(void *, size_t), void *at, size_t calls)
{
	double start = now_ns();

	run(at, calls);
	return (now_ns() - start) / (double)calls;
}

static size_t calls_for(double ns)
{
	return ns >= BLOCK_NS ? 1 : (size_t)(BLOCK_NS / ns) + 1;
}

static unsigned rounds_for(double ns)
{
	double rounds = CELL_NS / fmax(ns, BLOCK_NS);

	return rounds >= ROUNDS ? ROUNDS : rounds <= 3 ? 3 : (unsigned)rounds;
}

/* One run: medians of each contestant's time, quotient with memset's and difference to it. */
static void run_once(void *at, size_t calls, unsigned rounds, double ns[], double ratio[], double more[])
{
	static double all[3][CONTESTANTS][ROUNDS];
	unsigned order[CONTESTANTS];

	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < CONTESTANTS; i++)
			order[i] = i;
		random_shuffle(&random_state, order, CONTESTANTS);
		for (unsigned i = 0; i < CONTESTANTS; i++)
			all[0][order[i]][round] = time_block(contestants[order[i]].run, at, calls);
		for (unsigned i = 0; i < CONTESTANTS; i++) {
			all[1][i][round] = all[0][MEMSET][round] / all[0][i][round];
			all[2][i][round] = all[0][i][round] - all[0][MEMSET][round];
		}
	}
	for (unsigned i = 0; i < CONTESTANTS; i++) {
		ns[i] = stats_median(all[0][i], rounds);
		ratio[i] = stats_median(all[1][i], rounds);
		more[i] = stats_median(all[2][i], rounds);
	}
}

static void measure(void *at, struct cell cells[])
{
	double all[3][RUNS][CONTESTANTS], x[RUNS];
	double guess = time_block(run_memset, at, calls_for(1 + (double)sizes[0] / 30));

	for (unsigned run = 0; run < RUNS; run++)
		run_once(at, calls_for(guess), rounds_for(guess), all[0][run], all[1][run], all[2][run]);
	for (unsigned i = 0; i < CONTESTANTS; i++)
		for (unsigned what = 0; what < 3; what++) {
			for (unsigned run = 0; run < RUNS; run++)
				x[run] = all[what][run][i];
			*(what == 0   ? &cells[i].ns
			  : what == 1 ? &cells[i].ratio
			              : &cells[i].more_ns) = stats_median(x, RUNS);
			if (what == 1) {
				cells[i].least = stats_quantile(x, RUNS, 0);
				cells[i].most = stats_quantile(x, RUNS, 1);
			}
		}
}

/* Budgets: the inline part as memset against itself, 5 ns more below 1 KiB, 0.95x from there. */
static bool misses(const struct cell cells[], unsigned i, size_t most_len)
{
	double floor = fmin(cells[AGAIN].least, 1 / cells[AGAIN].most);

	if (i == INLINE && most_len <= 256)
		return cells[i].ratio < fmin(floor, 0.97) && cells[i].more_ns > 0.5;
	return most_len < 1024 ? cells[i].more_ns > 5 : cells[i].ratio < fmin(floor, 0.95);
}

static void print_cells(const char *name, const struct cell cells[], size_t most_len)
{
	printf("%12s %12.2f", name, cells[MEMSET].ns);
	for (unsigned i = AGAIN; i < CONTESTANTS; i++) {
		printf("  %5.2f%c", cells[i].ratio, misses(cells, i, most_len) ? '!' : ' ');
		if (i == AGAIN)
			printf("(%.2f-%.2f)", cells[i].least, cells[i].most);
		else if (most_len < 1024)
			printf("%+5.1f ns", cells[i].more_ns);
		else
			printf("        ");
	}
	putchar('\n');
}

static void row(const char *name, void *at, size_t least, size_t most)
{
	struct cell cells[CONTESTANTS];

	for (size_t i = 0; i < SIZES; i++)
		sizes[i] = least + (most > least ? random_below(&random_state, most - least + 1) : 0);
	measure(at, cells);
	print_cells(name, cells, most);
}

/* --- the tables -------------------------------------------------------------------------------------------------- */

static void print_sizes(char *at, size_t largest)
{
	static const size_t between[] = {100, 257, 384, 768, 1000, 1500, 3000, 6000};
	size_t more = 0;
	char name[32];

	printf("%12s %12s  %-18s", "bytes", "memset ns", "again (range)");
	for (unsigned i = INLINE; i < CONTESTANTS; i++)
		printf("  %-13s", contestants[i].name);
	putchar('\n');
	for (size_t len = 1; len <= largest; len *= 2) {
		for (; more < sizeof(between) / sizeof(between[0]) && between[more] < len; more++) {
			snprintf(name, sizeof(name), "%zu", between[more]);
			row(name, at, between[more], between[more]);
		}
		snprintf(name, sizeof(name), "%zu", len);
		row(name, at, len, len);
	}
	/* No branch that depends on the size can be foretold. */
	row("mixed 1-256", at, 1, 256);
	row("257-1023", at, 257, 1023);
	row("1K-4K", at, 1024, 4096);
	row("4K-64K", at, 4096, 65536);
}

static __attribute__((noinline, aligned(64))) void run_empty(const struct pageclear_query *query,
                                                             struct pageclear_choice *choice, size_t n)
{
	while (n-- > 0)
		shim_empty(builtin, query, choice);
}

static __attribute__((noinline, aligned(64))) void run_choose(const struct pageclear_query *query,
                                                              struct pageclear_choice *choice, size_t n)
{
	while (n-- > 0)
		pageclear_policy_choose(builtin, query, choice);
}

static void print_choose(void)
{
	enum { CALLS = 5000, TIMES = RUNS * ROUNDS };
	struct pageclear_query query = {.size = sizeof(query)};
	struct pageclear_choice choice = {.size = sizeof(choice)};
	double empty[TIMES], chosen[TIMES], start, between;

	for (unsigned i = 0; i < TIMES; i++) {
		query.len = (size_t)1 << i % 31;
		query.intent = i % 3;
		start = now_ns();
		run_empty(&query, &choice, CALLS);
		between = now_ns();
		run_choose(&query, &choice, CALLS);
		chosen[i] = (now_ns() - between) / CALLS;
		empty[i] = (between - start) / CALLS;
		chosen[i] -= empty[i];
	}
	printf("pageclear_policy_choose: %.2f ns more than an empty call through the PLT, of %.2f ns (budget 2 ns)\n",
	       stats_median(chosen, TIMES), stats_median(empty, TIMES));
}

/* --- opening ----------------------------------------------------------------------------------------------------- */

/* A policy of about `bytes`: as many tables for many threads as it takes, each as calibrd writes them. */
static int write_policy(FILE *file, size_t bytes, bool probing)
{
	char here[64];

	pc_cpu_signature(here, sizeof(here));
	fprintf(file,
	        "format: 1\ngeneration: 7\nversion: \"0.1.0\"\nwritten: \"2026-11-30T10:42:07Z\"\nquality: "
	        "good\nhost:\n"
	        "  topology: \"3f9ac2d14b07\"\n  arch: \"%s\"\n  cpus: [\"%s\"]\n  knee_bytes: 8388608\n%sclear:\n",
#if defined(__aarch64__)
	        "aarch64",
#else
	        "x86_64",
#endif
	        here, probing ? "probe: {from: 262144, lines: 4, slow_ns: 57}\n" : "");
	for (unsigned threads = 1; ftell(file) < (long)bytes - 500; threads++) {
		fprintf(file, "- intent: cold\n  when: {threads: %u, prior: flushed}\n  rules:\n", threads);
		fprintf(file, "  - {from: 0, kernel: libc}\n");
		for (unsigned rule = 0; rule < 5; rule++)
			fprintf(file, "  - {from: %u, low: %u, high: %u, kernel: %s, chunk: 0, gain: 2.%u}\n",
			        4096u << 2 * rule, 2048u << 2 * rule, 8192u << 2 * rule, rule % 2 ? "sse2nt" : "stosb",
			        rule);
	}
	return ferror(file) || fflush(file) != 0 ? -1 : 0;
}

static void print_open(bool probing)
{
	enum { TIMES = 51 };
	char path[] = "/tmp/pageclear-cost-XXXXXX";
	int fd = mkstemp(path);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	double us[TIMES];
	int r = 0;

	if (file == NULL || write_policy(file, 8192, probing) < 0) {
		perror("bench-cost: a policy to open");
		exit(1);
	}
	for (unsigned i = 0; i < TIMES && r == 0; i++) {
		const struct pageclear_policy *policy;
		double start = now_ns();

		r = pageclear_policy_open(&policy, path);
		us[i] = (now_ns() - start) / 1000;
		if (r == 0)
			pageclear_policy_close(policy);
	}
	if (r < 0) {
		fprintf(stderr, "bench-cost: open: %s\n", strerror(-r));
		exit(1);
	}
	printf("pageclear_policy_open of %ld bytes%s: first %.0f us, ", ftell(file), probing ? " with a probe" : "",
	       us[0]);
	printf("median of %d %.0f us (budget 400 us)\n", TIMES, stats_median(us, TIMES));
	fclose(file);
	unlink(path);
}

/* --- all of it --------------------------------------------------------------------------------------------------- */

/* At most half of what is free, at least what the mixed rows take. */
static size_t affordable(size_t largest)
{
	size_t bytes = (size_t)sysconf(_SC_AVPHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);

	while (largest > bytes / 2)
		largest /= 2;
	return largest < 65536 ? 65536 : largest;
}

int main(int argc, char **argv)
{
	size_t largest = affordable(argc > 1 ? strtoull(argv[1], NULL, 0) : (size_t)1 << 30);
	char words[1024], *at = mmap(NULL, largest, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (argc > 2) {
		fprintf(stderr, "usage: bench-cost [LARGEST]\n");
		return 2;
	}
	if (at == MAP_FAILED || pageclear_policy_builtin(&builtin) < 0) {
		perror("bench-cost: memory");
		return 1;
	}
	madvise(at, largest, MADV_HUGEPAGE); /* a wish */
	memset(at, 1, largest);
	pageclear_status(words, sizeof(words));
	printf("memset's time over ours, medians of %d runs, the same memory again and again. Policy: %s\n", RUNS,
	       words);
	print_choose();
	print_open(false);
	print_open(true);
	print_sizes(at, largest);
	pageclear_policy_close(builtin);
	munmap(at, largest);
	return 0;
}
