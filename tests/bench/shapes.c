/*
 * Holds every kernel against other shapes of itself (rivals.h), paired in shuffled rounds. A report, not a test: ratios
 * above 1 say that ours is faster than that shape. Usage: shapes [-r TIMES_AS_MANY_ROUNDS] [KERNEL]...
 */
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "calibrd/random.h"
#include "calibrd/stats.h"
#include "kernels/cpu.h"
#include "kernels/kernels.h"
#include "kernels/ticks.h"
#include "tests/bench/rivals.h"

/* The best shape is chosen on the even runs and valued on the odd ones: the luckiest of many would look too good. With
 * six runs a side, the range from least to largest of their medians holds the true one with 97 % (sign test: 1 -
 * 2/2^6). */
enum { RUNS = 12, MORE_MAX = 20, ROUNDS_MAX = 60 * MORE_MAX, SHAPES_MAX = 10, LARGEST = 64 << 20, HUGE_PAGE = 2 << 20 };

static const struct cell {
	const char *name;
	size_t bytes, offset;
	unsigned batch;  /* extents under one timer: a small one alone drowns in the timer's own time */
	unsigned passes; /* of ordinary stores that make it cached; a single one will do where no cache holds it anyway
	                  */
	unsigned rounds; /* a run */
	bool flushed;
} cells[] = {
	{"2K cached", 2048, 0, 16, 3, 40, false},      {"2K flushed", 2048, 0, 16, 3, 40, true},
	{"64K cached", 65536, 0, 1, 3, 60, false},     {"64K flushed", 65536, 0, 1, 3, 60, true},
	{"64K+24 cached", 65536, 24, 1, 3, 60, false}, {"64K+24 flushed", 65536, 24, 1, 3, 60, true},
	{"64M cached", LARGEST, 0, 1, 1, 2, false},    {"64M flushed", LARGEST, 0, 1, 1, 2, true},
};

enum { CELLS = sizeof(cells) / sizeof(cells[0]) };

/* Shape 0 is ours, 1 ours again: the noise floor. */
struct contest {
	const struct pc_kernel *kernel;
	unsigned count;
	const char *names[SHAPES_MAX];
	void (*clear[SHAPES_MAX])(void *dst, size_t len);
	double speed[CELLS][RUNS][SHAPES_MAX]; /* median of ln(time of shape / time of ours) */
};

static struct random random_state = {20261130};
static unsigned more = 1; /* times the rounds of the table above */

/* --- one sample --- */

/* Not memset: it may choose stores that go round the caches. */
static void dirty(unsigned char *at, size_t len)
{
	for (size_t i = 0; i + 8 <= len; i += 8)
		*(volatile uint64_t *)(void *)(at + i) = 0x5a5b5c5d5e5f6061u;
}

/* Extents of a batch don't start in the same L1 set. */
static size_t stride(const struct cell *cell)
{
	return cell->bytes + (cell->batch > 1 ? 320 : 0);
}

static uint64_t sample_once(const struct cell *cell, void (*clear)(void *, size_t), unsigned char *at)
{
	const size_t step = stride(cell),
		     whole = step * cell->batch + 64; /* and the line that an offset reaches into */
	uint64_t start;

	for (unsigned pass = 0; pass < cell->passes; pass++)
		dirty(at, whole);
	if (cell->flushed)
		pc_cpu_flush(at, whole);
	at += cell->offset;
	start = pc_ticks();
	for (unsigned i = 0; i < cell->batch; i++)
		clear(at + i * step, cell->bytes);
	return pc_ticks() - start;
}

static long preemptions(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

/* Whoever ran in between took time and cache lines: once more, but not for ever on a busy host. */
static uint64_t sample(const struct cell *cell, void (*clear)(void *, size_t), unsigned char *at)
{
	uint64_t ticks = 0;

	for (unsigned tries = 0; tries < 4; tries++) {
		const long before = preemptions();

		ticks = sample_once(cell, clear, at);
		if (preemptions() == before)
			break;
	}
	return ticks;
}

/* A place in the arena for one round: the same for all shapes in it. */
static unsigned char *place(const struct cell *cell, unsigned char *arena)
{
	if (cell->bytes == LARGEST)
		return arena;
	return arena + random_below(&random_state, LARGEST / HUGE_PAGE) * HUGE_PAGE +
	       random_below(&random_state, 16) * 4096;
}

/* --- a run: rounds on one mapping --- */

static unsigned char *map_arena(void)
{
	const size_t bytes = LARGEST + 2 * (size_t)HUGE_PAGE;
	unsigned char *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *arena;

	if (base == MAP_FAILED) {
		perror("shapes: mmap");
		exit(1);
	}
	arena = base + (-(uintptr_t)base & (HUGE_PAGE - 1));
	madvise(arena, LARGEST + HUGE_PAGE, MADV_HUGEPAGE); /* refused where there are none: then base pages it is */
	munmap(base, (size_t)(arena - base));
	dirty(arena, LARGEST + HUGE_PAGE);
	return arena;
}

static void unmap_arena(unsigned char *arena)
{
	munmap(arena, LARGEST + HUGE_PAGE);
}

static void run_cell(struct contest *contest, unsigned index, unsigned run, unsigned char *arena)
{
	const struct cell *cell = &cells[index];
	static double ratios[SHAPES_MAX][ROUNDS_MAX];
	const unsigned rounds = cell->rounds * more;
	double ticks[SHAPES_MAX];
	unsigned order[SHAPES_MAX];

	for (unsigned round = 0; round < rounds; round++) {
		unsigned char *at = place(cell, arena);

		for (unsigned i = 0; i < contest->count; i++)
			order[i] = i;
		random_shuffle(&random_state, order, contest->count);
		for (unsigned i = 0; i < contest->count; i++)
			ticks[order[i]] = (double)sample(cell, contest->clear[order[i]], at);
		for (unsigned i = 0; i < contest->count; i++)
			ratios[i][round] = log(ticks[i] / ticks[0]);
	}
	for (unsigned i = 0; i < contest->count; i++)
		contest->speed[index][run][i] = stats_median(ratios[i], rounds);
}

/* --- the report --- */

struct summary {
	double middle, low, high; /* ratios, not logarithms */
};

/* Over the runs first, first + step, ... */
static struct summary summarise(const struct contest *contest, unsigned cell, unsigned shape, unsigned first,
                                unsigned step)
{
	double x[RUNS];
	size_t n = 0;

	for (unsigned run = first; run < RUNS; run += step)
		x[n++] = contest->speed[cell][run][shape];
	return (struct summary){exp(stats_median(x, n)), exp(stats_quantile(x, n, 0)), exp(stats_quantile(x, n, 1))};
}

static unsigned best_shape(const struct contest *contest, unsigned cell)
{
	unsigned best = 2;

	for (unsigned i = 3; i < contest->count; i++)
		if (summarise(contest, cell, i, 0, 2).middle < summarise(contest, cell, best, 0, 2).middle)
			best = i;
	return best;
}

static void print_table(const struct contest *contest)
{
	printf("\n%-10s", contest->kernel->name);
	for (unsigned cell = 0; cell < CELLS; cell++)
		printf(" %-16s", cells[cell].name);
	for (unsigned i = 1; i < contest->count; i++) {
		printf("\n  %-8s", contest->names[i]);
		for (unsigned cell = 0; cell < CELLS; cell++) {
			const struct summary all = summarise(contest, cell, i, 0, 1);

			printf(" %.2f (%.2f-%.2f) ", all.middle, all.low, all.high);
		}
	}
	printf("\n");
}

static void print_verdict(const struct contest *contest)
{
	printf("%-10s", contest->kernel->name);
	for (unsigned cell = 0; cell < CELLS; cell++) {
		const unsigned best = best_shape(contest, cell);
		const struct summary value = summarise(contest, cell, best, 1, 2),
				     floor = summarise(contest, cell, 1, 1, 2);

		printf("%s%-14s %.3f (%.3f-%.3f) of %-7s floor %.3f-%.3f\n", cell == 0 ? "" : "          ",
		       cells[cell].name, value.middle, value.low, value.high, contest->names[best], floor.low,
		       floor.high);
	}
}

/* --- who takes part --- */

static void enter(struct contest *contest, const char *name, void (*clear)(void *, size_t))
{
	if (contest->count == SHAPES_MAX) {
		fprintf(stderr, "shapes: more than %d shapes of %s\n", SHAPES_MAX, contest->kernel->name);
		exit(1);
	}
	contest->names[contest->count] = name;
	contest->clear[contest->count++] = clear;
}

static bool wanted(const struct pc_kernel *kernel, char **names)
{
	for (char **name = names; *name != NULL; name++)
		if (strcmp(*name, kernel->name) == 0)
			return true;
	return *names == NULL;
}

/* Returns the kernels asked for, none for all of them. */
static char **read_arguments(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "r:")) != -1) {
		more = option == 'r' ? (unsigned)strtoul(optarg, NULL, 10) : 0;
		if (more < 1 || more > MORE_MAX) {
			fprintf(stderr, "usage: shapes [-r 1..%d] [KERNEL]...\n", MORE_MAX);
			exit(2);
		}
	}
	for (int i = optind; i < argc; i++)
		if (pc_kernel_find(argv[i]) == NULL) {
			fprintf(stderr, "shapes: no kernel %s\n", argv[i]);
			exit(2);
		}
	return argv + optind;
}

static bool gather(struct contest *contest, const struct pc_kernel *kernel)
{
	*contest = (struct contest){.kernel = kernel};
	enter(contest, "ours", kernel->clear);
	enter(contest, "again", kernel->clear);
	for (const struct rival *rival = rivals; rival->kernel != NULL; rival++)
		if (strcmp(rival->kernel, kernel->name) == 0)
			enter(contest, rival->shape, rival->clear);
	if (contest->count == 2)
		return false;
	if (!pc_kernel_runs(kernel))
		printf("%s: this host can't execute it\n", kernel->name);
	return pc_kernel_runs(kernel);
}

/* A shape that leaves something out is no rival. */
static bool clears_exactly(const struct cell *cell, void (*clear)(void *, size_t))
{
	static unsigned char buffer[2 * 65536] __attribute__((aligned(4096)));
	size_t cleared = 0;

	if (cell->offset + cell->bytes + 64 > sizeof(buffer))
		return true;
	dirty(buffer, sizeof(buffer));
	clear(buffer + cell->offset, cell->bytes);
	for (size_t i = 0; i < sizeof(buffer); i++)
		cleared += buffer[i] == 0;
	return cleared == cell->bytes && buffer[cell->offset] == 0 && buffer[cell->offset + cell->bytes - 1] == 0;
}

static void check(const struct contest *contest)
{
	for (unsigned i = 0; i < contest->count; i++)
		for (unsigned cell = 0; cell < CELLS; cell++)
			if (!clears_exactly(&cells[cell], contest->clear[i])) {
				fprintf(stderr, "shapes: %s, %s does not clear %s\n", contest->kernel->name,
				        contest->names[i], cells[cell].name);
				exit(1);
			}
}

/* A migration in mid-run would put the caches' contents elsewhere. */
static void stay_on_this_cpu(void)
{
	const int cpu = sched_getcpu();
	cpu_set_t set;

	CPU_ZERO(&set);
	if (cpu >= 0)
		CPU_SET((size_t)cpu, &set);
	if (cpu < 0 || sched_setaffinity(0, sizeof(set), &set) != 0)
		perror("shapes: cannot stay on one CPU");
}

int main(int argc, char **argv)
{
	static struct contest contests[PC_KERNEL_MAX];
	char **names = read_arguments(argc, argv);
	unsigned count = 0;

	for (unsigned i = 0; i < pc_kernel_count; i++)
		if (wanted(&pc_kernels[i], names) && gather(&contests[count], &pc_kernels[i]))
			count++;
	for (unsigned i = 0; i < count; i++)
		check(&contests[i]);
	stay_on_this_cpu();
	for (unsigned run = 0; run < RUNS; run++) {
		unsigned char *arena = map_arena();

		for (unsigned i = 0; i < count; i++)
			for (unsigned cell = 0; cell < CELLS; cell++)
				run_cell(&contests[i], cell, run, arena);
		unmap_arena(arena);
	}
	printf("Speed of ours over each shape, median of %d runs (least-largest); 'again' is ours against itself.\n",
	       RUNS);
	for (unsigned i = 0; i < count; i++)
		print_table(&contests[i]);
	printf("\nSpeed of ours over its best rival, chosen on half of the runs and valued on the other half:\n");
	for (unsigned i = 0; i < count; i++)
		print_verdict(&contests[i]);
	return 0;
}
