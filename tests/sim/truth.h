/*
 * What a policy's choice really costs on a simulated host, and how much of that nobody could have known: costs are
 * design section 1's, computed from the curves without noise, in nats against libc.
 */
#ifndef TESTS_TRUTH_H
#define TESTS_TRUTH_H

#include "calibrd/samples.h"
#include "tests/sim/meter_sim.h"

/* One table's question. */
struct truth {
	const struct sim_host *host;
	unsigned intent;
	enum pc_prior prior;
	unsigned threads;
	double scrub_weight;
	uint64_t last_level_from; /* extents whose scrub is asked about the last level's victim; 0: of the L2's size */
};

/* Finds last_level_from in what was measured. */
void truth_find_last_level(struct truth *truth, const struct dataset *data);

/* ln(cost / libc's cost), for scrub the difference over libc's; with the prior unknown the mean of both. */
double truth_l(const struct truth *truth, unsigned kernel, uint64_t bytes);

/* With the prior unknown: by how much the worse one of the two priors loses more than the 5 % against libc that the
 * guard allows; else, or where it does not, 0. */
double truth_beyond_guard(const struct truth *truth, unsigned kernel, uint64_t bytes);

/* The least of a mask's kernels that the guard allows. */
double truth_least(const struct truth *truth, uint32_t kernels, uint64_t bytes);

/* What choosing a kernel costs more than that, and beyond the guard. */
double truth_regret(const struct truth *truth, unsigned kernel, uint32_t kernels, uint64_t bytes);

/* --- what a calibration could know of it ------------------------------------------------------------------------- */

enum { TRUTH_SIZES = 192 };

struct truth_known {
	const struct truth *truth;
	const struct sim_noise *noise;
	size_t sizes; /* that libc was measured at, under both priors if that is the question; ascending */
	struct {
		uint64_t bytes;
		unsigned pairs, epochs; /* libc's */
		unsigned priors;        /* bits */
		uint32_t kernels;       /* with any round there */
	} at[TRUTH_SIZES];
};

/* False if nothing was measured for the question. */
bool truth_learn(struct truth_known *out, const struct truth *truth, const struct sim_noise *noise,
                 const struct dataset *data);

/* Kernels heard within an octave of that size: who was to be measured at all is the design's choice (finalists,
 * families), not the decision's. */
uint32_t truth_heard(const struct truth_known *known, uint64_t bytes);

/* libc's rounds within half an octave; with the prior unknown of one prior. */
unsigned truth_pairs(const struct truth_known *known, uint64_t bytes);

/* What a decision makes of its samples. */
enum truth_view {
	TRUTH_BEST,    /* the mean over all epochs, and the least cost: nobody can do better */
	TRUTH_CAREFUL, /* three of four epochs must agree about a crossover (design: deciding), so that it is one
	                * epoch's spread that moves it; and libc stays unless a gain is proven at 95 % */
};

/*
 * Standard deviation that a calibration's estimate of l(a) - l(b) has at that size, from its own number of epochs E and
 * pairs N at the nearest measured one:
 *
 *     s^2 = pi/2 * (2 between^2 / E + 2 within^2 / N) + slope^2 * var(knee)
 *
 * two kernels' noise each, pi/2 for medians instead of means (their asymptotic efficiency), and the slope of the
 * difference over octaves times what the mean over epochs of the cache's walk is off by.
 */
double truth_deviation(const struct truth_known *known, enum truth_view view, unsigned a, unsigned b, uint64_t bytes);

/*
 * What taking the least of such estimates costs on average, at most: the sum over rivals of d * P(estimate of the rival
 * is below that of the best) = d * Phi(-d / s), where d is what the rival really costs more. No decision can be asked
 * for less from the same samples: it is 0 where kernels are equal or far apart, and at most 0.17 s a rival. To the
 * careful libc is a rival that wins unless the estimate is 1.645 s beyond: d * Phi(1.645 - d / s).
 *
 * With the prior unknown the guard is judged by estimates as well. Who is by m inside it passes for outside with
 * probability Phi(-m / s): then the next best one is taken; who is by e outside passes for inside with Phi(-e / s) and
 * costs e.
 */
double truth_explained(const struct truth_known *known, enum truth_view view, uint32_t kernels, uint64_t bytes);

/*
 * What the design gives away on purpose, even without noise: 3 % an octave for not being libc, and switches that must
 * earn 6 % over one, or more in noise. The mean regret of the sequence of kernels that is the cheapest by that count
 * for the true costs at the measured sizes. 0 or -ENOMEM.
 */
int truth_designed(const struct truth_known *known, double *regret);

/* Which side the figures themselves demand at a size. */
enum truth_side { TRUTH_EITHER, TRUTH_ROUND, TRUTH_TEMPORAL };

/*
 * Stores that go round the caches (non-temporal ones and whole lines) against all others, libc among them: the side
 * with the cheapest kernel, if its lead is one that this calibration could see. To leave the caches alone a lead must
 * be 3 % over what libc's side costs (design: deciding), so the least that noise must do to a lead of d is d - 0.03
 * there and d + 0.03 on the other side; that is asked to be three deviations, so that of a few dozen questions 99 of
 * 100 come out right together. Anything less may end either way.
 */
enum truth_side truth_side(const struct truth *truth, const struct sim_noise *noise, const struct dataset *data,
                           uint64_t bytes);

bool truth_goes_round(unsigned kernel);

#endif
