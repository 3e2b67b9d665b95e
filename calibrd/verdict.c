/* Quality of a calibration; see verdict.h. */
#include "calibrd/verdict.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "calibrd/grid.h"
#include "calibrd/verdict_parts.h"
#include "pageclear/policy.h"

/* A quarter of the samples dropped, or epochs that differ by more than the smallest crossover can stand: background 2
 * has 5-20 % for a quiet shared guest. */
static const double most_tainted = 0.25, most_spread = 0.25;

enum {
	LEAST_EPOCHS = 3, /* fewer have no spread */
	LEAST_SIZES = 5,  /* fewer than these may be no more than the noisiest of all: sizes at the knee, say */
};

void verdict_say(struct verdict *out, const char *format, ...)
{
	size_t length = strlen(out->reasons);
	va_list list;

	va_start(list, format);
	vsnprintf(out->reasons + length, sizeof(out->reasons) - length, format, list);
	va_end(list);
}

/* --- spread ------------------------------------------------------------------------------------------------------ */

static bool is_compared(const struct cell *cell)
{
	unsigned epochs = 0;

	for (unsigned e = 0; e < COST_EPOCHS && cell->measured; e++)
		epochs += isnan(cell->epoch[e]) ? 0 : 1;
	return epochs >= LEAST_EPOCHS;
}

/* Those where a rival of libc's has been seen often enough for a spread. */
static size_t compared_sizes(const struct grid *grid)
{
	size_t count = 0;

	for (size_t i = 0; i < grid->sizes; i++) {
		unsigned kernel = 1;

		while (kernel < pc_kernel_count && !is_compared(grid_cell(grid, i, kernel)))
			kernel++;
		count += kernel < pc_kernel_count;
	}
	return count;
}

/* A table's typical spread between epochs. NaN: not measured, or too little of it. */
static double spread_of(const struct verdict_facts *facts, unsigned intent, enum pc_prior prior)
{
	struct grid grid;
	double sigma;

	if (grid_build(&grid, facts->data, intent, prior, 1, facts->kernels, 0) != 0)
		return NAN;
	sigma = compared_sizes(&grid) >= LEAST_SIZES ? grid.sigma : NAN;
	grid_free(&grid);
	return sigma;
}

/* The worst of the tables whose prior is known: an unknown prior's is made of two of these, and a scrub's costs are
 * differences, whose spread has another unit. */
static double spread(const struct verdict_facts *facts, const char **where)
{
	static const struct {
		unsigned intent;
		enum pc_prior prior;
		const char *name;
	} tables[] = {
		{PAGECLEAR_COLD, PC_FLUSHED, "cold, flushed"},
		{PAGECLEAR_COLD, PC_CACHED, "cold, cached"},
		{PAGECLEAR_HOT, PC_FLUSHED, "hot, flushed"},
		{PAGECLEAR_HOT, PC_CACHED, "hot, cached"},
	};
	double worst = NAN;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		double sigma = spread_of(facts, tables[i].intent, tables[i].prior);

		if (isnan(sigma) || sigma <= worst)
			continue;
		worst = sigma;
		*where = tables[i].name;
	}
	return worst;
}

/* --- the verdict ------------------------------------------------------------------------------------------------- */

/* True if samples or epochs make it a noisy one. */
static bool is_noisy_in_itself(const struct verdict_facts *facts, struct verdict *out)
{
	const char *where = "";
	bool tainted = facts->tainted > most_tainted;

	out->spread = spread(facts, &where);
	verdict_say(out, "%.1f %% of samples dropped", 100 * facts->tainted);
	verdict_taints(facts, out);
	if (isnan(out->spread))
		verdict_say(out, ", too few epochs or sizes to compare");
	else
		verdict_say(out, ", epochs differ by %.1f %%%s%s", 100 * out->spread,
		            out->spread > most_spread ? ": " : "", out->spread > most_spread ? where : "");
	return tainted || !(out->spread <= most_spread);
}

void verdict_reach(const struct verdict_facts *facts, struct verdict *out)
{
	bool noisy;

	*out = (struct verdict){.quality = "good"};
	if (facts->emulated)
		verdict_say(out, "the CPU is emulated: its timings say nothing of hardware; ");
	noisy = is_noisy_in_itself(facts, out);
	noisy |= verdict_noise(facts, out);
	noisy |= verdict_lost(facts, out);
	verdict_clock(facts, out);
	if (facts->emulated)
		out->quality = "emulated";
	else if (noisy)
		out->quality = "noisy";
}
