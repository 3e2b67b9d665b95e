/*
 * Sets one size as `perf bench mem memset` does, and then step by step as the meter does, so that where two figures
 * differ the step that makes the difference is seen. A report, not a test.
 * Usage: perf BYTES LOOPS; prints GB/s: perf's loop by the wall clock, and by the time that it had the CPU; with zeros
 * instead of perf's values; on an aligned buffer; on the meter's kind of pages; the meter's figure for cached memory,
 * or
 * - where each of its samples was disturbed.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "calibrd/meter.h"
#include "calibrd/stats.h"
#include "kernels/kernels.h"

enum { HUGE_PAGE = 2 << 20, SAMPLES = 31, PASSES = 3 };

/* GB/s by the clock on the wall, which is perf's, and without the time that other processes took. */
struct rate {
	double wall, own;
};

static double now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Not the kernel's: perf fills with its loop counter. */
static void fill(void *at, size_t bytes, unsigned long value)
{
	void *(*volatile set)(void *, int, size_t) = memset;

	set(at, (int)value, bytes);
}

static void zero(void *at, size_t bytes, unsigned long value)
{
	(void)value;
	pc_kernels[0].clear(at, bytes);
}

/* perf's do_memset: the buffer is written once so that no page fault is timed, and then over and over. */
static struct rate loop(void (*set)(void *, size_t, unsigned long), void *at, size_t bytes, unsigned long loops)
{
	double all = (double)bytes * (double)loops, wall, own;

	memset(at, -1, bytes);
	wall = now_ns(CLOCK_MONOTONIC);
	own = now_ns(CLOCK_THREAD_CPUTIME_ID);
	for (unsigned long i = 0; i < loops; i++)
		set(at, bytes, i);
	own = now_ns(CLOCK_THREAD_CPUTIME_ID) - own;
	wall = now_ns(CLOCK_MONOTONIC) - wall;
	return (struct rate){all / wall, all / own};
}

static int as_perf(size_t bytes, unsigned long loops, struct rate *same, struct rate *zeros)
{
	void *at = calloc(1, bytes);

	if (at == NULL)
		return -ENOMEM;
	*same = loop(fill, at, bytes, loops);
	*zeros = loop(zero, at, bytes, loops);
	free(at);
	return 0;
}

static int aligned(size_t bytes, unsigned long loops, int advice, struct rate *out)
{
	size_t whole = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	void *at = aligned_alloc(HUGE_PAGE, whole);

	if (at == NULL)
		return -ENOMEM;
	madvise(at, whole, advice); /* a wish: refused where THP is off */
	*out = loop(zero, at, bytes, loops);
	free(at);
	return 0;
}

/* The median of the undisturbed samples; NaN: there is none. */
static int by_meter(size_t bytes, double *out)
{
	const struct meter_room room = {.target_bytes = bytes};
	const struct meter_ask ask = {.kernel = &pc_kernels[0],
	                              .phase = PHASE_CLEAR,
	                              .prior = PC_CACHED,
	                              .bytes = bytes,
	                              .passes = PASSES,
	                              .exact = true};
	struct meter *meter = NULL;
	struct meter_sample sample = {.tainted = true};
	struct pc_why why = {""};
	double ns[SAMPLES];
	size_t kept = 0;
	int r = meter_real_new(&meter, NULL, &why);

	if (r == 0)
		r = meter->ops->epoch(meter, &room);
	for (unsigned i = 0; i < SAMPLES && r == 0; i++) {
		r = meter->ops->round_begin(meter, i);
		if (r == 0)
			r = meter->ops->sample(meter, &ask, &sample);
		bool tainted = meter->ops->round_end(meter);
		if (r == 0 && !tainted && !sample.tainted)
			ns[kept++] = sample.ns;
	}
	meter_free(meter);
	*out = (double)bytes / stats_median(ns, kept);
	return r;
}

static int measure(size_t bytes, unsigned long loops)
{
	struct rate same, zeros, straight, pages;
	double metered = NAN;
	int r = as_perf(bytes, loops, &same, &zeros);

	if (r == 0)
		r = aligned(bytes, loops, MADV_NOHUGEPAGE, &straight);
	if (r == 0)
		r = aligned(bytes, loops, bytes < HUGE_PAGE ? MADV_NOHUGEPAGE : MADV_HUGEPAGE, &pages);
	if (r == 0)
		r = by_meter(bytes, &metered);
	if (r < 0)
		return r;
	printf("%.3f %.3f %.3f %.3f %.3f ", same.wall, same.own, zeros.own, straight.own, pages.own);
	if (isnan(metered))
		puts("-");
	else
		printf("%.3f\n", metered);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long bytes = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
	unsigned long loops = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	int r;

	if (bytes == 0 || loops == 0) {
		fprintf(stderr, "usage: perf BYTES LOOPS\n");
		return 2;
	}
	r = measure(bytes, loops);
	if (r < 0)
		fprintf(stderr, "perf: %s\n", strerror(-r));
	return r < 0 ? 1 : 0;
}
