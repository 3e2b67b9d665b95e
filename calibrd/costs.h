/*
 * From series to costs: what a kernel costs under an intent, and how two kernels compare, round by round. Pure.
 */
#ifndef CALIBRD_COSTS_H
#define CALIBRD_COSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calibrd/samples.h"
#include "libpolicy/document.h"

/* COST_CLEAR: the clear. COST_HOT: the clear and the first read after it. The others: one phase as it was measured. */
enum cost_kind { COST_CLEAR, COST_HOT, COST_SINGLE, COST_VICTIM_L1, COST_VICTIM_L2, COST_VICTIM_LLC };

struct cost_key {
	enum cost_kind kind;
	enum pc_prior prior;
	uint64_t bytes;
	unsigned threads;
};

/* One contestant: a kernel, and for spot checks how it went over the extent. Zero-initialised but for the kernel: as
 * the grid measures it. */
struct cost_way {
	unsigned kernel;
	uint64_t chunk; /* as in struct series_key */
	bool backward;
	bool base_pages; /* on base pages though page_usual() says huge */
};

/* As many rounds as the last calibrations together hold of one series, were all of them thorough and nothing else open
 * (POOL_MOST, effort_limits, PLAN_ROUNDS_MOST), and more epochs. */
enum { COST_POINTS = 5760, COST_EPOCHS = 64 };

/* Small flushed extents are asked for in two ways (design section 6): in a batch, where each call may hide behind the
 * next, and alone, with ordinary work behind it. Programs do either, and no hint tells which. */
static inline bool costs_asked_alone(enum pc_prior prior, unsigned threads, uint64_t bytes)
{
	return prior == PC_FLUSHED && threads <= 1 && bytes <= 16384;
}

/* Of such an extent's two ln(cost / libc's cost) for cold the worse one counts: libc is left only if it loses neither
 * way. False if either is NaN. */
static inline bool costs_alone_counts(double batched, double alone)
{
	return alone > batched;
}

struct cost_points {
	size_t count;
	double value[COST_POINTS]; /* ns; of pairs: ln(kernel / other) */
	uint8_t epoch[COST_POINTS];
	uint16_t round[COST_POINTS];
};

/* All untainted rounds of a kernel, in order, at most COST_POINTS; none if it was not measured so. */
void costs_of(const struct dataset *data, const struct cost_key *key, unsigned kernel, struct cost_points *out);

/* ln(cost of kernel / cost of other) for the rounds that hold both. */
void costs_paired(const struct dataset *data, const struct cost_key *key, unsigned kernel, unsigned other,
                  struct cost_points *out);

/* The same for two ways that spot checks went. */
void costs_paired_ways(const struct dataset *data, const struct cost_key *key, const struct cost_way *way,
                       const struct cost_way *other, struct cost_points *out);

/* Median over epochs of the medians within them; NaN if empty. by_epoch (COST_EPOCHS, may be NULL) gets each epoch's
 * median, NaN where an epoch has none. */
double costs_centre(const struct cost_points *points, double *by_epoch);

/* costs_centre of a kernel's nanoseconds under a key; NaN if not measured. */
double costs_ns(const struct dataset *data, const struct cost_key *key, unsigned kernel);

#endif
