/* Quality of a calibration; see verdict.h. */
#include "calibrd/verdict.h"

#include <math.h>
#include <stdio.h>

#include "calibrd/grid.h"
#include "pageclear/policy.h"

/* A quarter of the samples dropped, or epochs that differ by more than the smallest crossover can stand: background 2
 * has 5-20 % for a quiet shared guest. */
static const double most_tainted = 0.25, most_spread = 0.25;

/* Fewer have no spread. */
static const unsigned least_epochs = 3;

/* Spread of the cold, flushed table: the one with the largest effects, so with the most to lose. NaN if not measured.
 */
static double spread(const struct verdict_facts *facts)
{
	struct grid grid;
	double sigma;

	if (grid_build(&grid, facts->data, PAGECLEAR_COLD, PC_FLUSHED, 1, facts->kernels, 0) != 0)
		return NAN;
	sigma = grid.epochs >= least_epochs ? grid.sigma : NAN;
	grid_free(&grid);
	return sigma;
}

void verdict_reach(const struct verdict_facts *facts, struct verdict *out)
{
	char epochs[48] = "too few epochs to compare";
	bool noisy;

	out->spread = spread(facts);
	if (!isnan(out->spread))
		snprintf(epochs, sizeof(epochs), "epochs differ by %.1f %%", 100 * out->spread);
	noisy = facts->tainted > most_tainted || !(out->spread <= most_spread);
	out->quality = facts->emulated ? "emulated" : noisy ? "noisy" : "good";
	snprintf(out->reasons, sizeof(out->reasons), "%s%.1f %% of samples dropped, %s",
	         facts->emulated ? "the CPU is emulated: its timings say nothing of hardware; " : "",
	         100 * facts->tainted, epochs);
}
