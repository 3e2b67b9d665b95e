/* What a calibration could know of the truth, and what noise explains; see truth.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrd/solve.h"
#include "pageclear/policy.h"
#include "tests/sim/truth_parts.h"

/* --- what was measured ------------------------------------------------------------------------------------------- */

static bool speaks_for(const struct truth *truth, const struct series_key *key)
{
	enum phase phase = truth->intent == PAGECLEAR_SCRUB ? PHASE_VICTIM_L1 : PHASE_CLEAR;
	enum pc_prior prior = truth->intent == PAGECLEAR_SCRUB ? PC_FLUSHED : truth->prior;

	return key->phase == phase && key->threads == truth->threads && key->chunk == 0 &&
	       (prior == PC_UNKNOWN || key->prior == prior);
}

static unsigned epochs_of(const struct series *series)
{
	unsigned count = 0;

	for (size_t i = 0; i < series->count; i++)
		count += i == 0 || series->rounds[i].epoch != series->rounds[i - 1].epoch;
	return count;
}

/* The entry of a size, with libc's rounds of the prior that has fewer. */
static void learn_libc(struct truth_known *known, const struct series *series)
{
	size_t at = 0;

	while (at < known->sizes && known->at[at].bytes < series->key.bytes)
		at++;
	if (at < known->sizes && known->at[at].bytes == series->key.bytes) {
		known->at[at].priors |= 1u << series->key.prior;
		if (series->count < known->at[at].pairs) {
			known->at[at].pairs = series->count;
			known->at[at].epochs = epochs_of(series);
		}
		return;
	}
	if (known->sizes == TRUTH_SIZES)
		abort(); /* more than any grid has */
	memmove(&known->at[at + 1], &known->at[at], (known->sizes++ - at) * sizeof(known->at[0]));
	known->at[at].bytes = series->key.bytes;
	known->at[at].pairs = series->count;
	known->at[at].epochs = epochs_of(series);
	known->at[at].priors = 1u << series->key.prior;
	known->at[at].kernels = 1;
}

static void drop_half_known(struct truth_known *known)
{
	const unsigned both = 1u << PC_CACHED | 1u << PC_FLUSHED;
	size_t kept = 0;

	for (size_t i = 0; i < known->sizes; i++)
		if (!truth_is_guarded(known->truth) || known->at[i].priors == both)
			known->at[kept++] = known->at[i];
	known->sizes = kept;
}

bool truth_learn(struct truth_known *out, const struct truth *truth, const struct sim_noise *noise,
                 const struct dataset *data)
{
	*out = (struct truth_known){.truth = truth, .noise = noise};
	for (size_t i = 0; i < data->count; i++)
		if (data->series[i].key.kernel == 0 && data->series[i].count > 0 &&
		    speaks_for(truth, &data->series[i].key))
			learn_libc(out, &data->series[i]);
	drop_half_known(out);
	for (size_t i = 0; i < data->count; i++) {
		const struct series *series = &data->series[i];

		for (size_t s = 0; series->count > 0 && speaks_for(truth, &series->key) && s < out->sizes; s++)
			if (out->at[s].bytes == series->key.bytes)
				out->at[s].kernels |= 1u << series->key.kernel;
	}
	return out->sizes > 0;
}

static double octaves_apart(uint64_t a, uint64_t b)
{
	return fabs(log2((double)a / (double)b));
}

uint32_t truth_heard(const struct truth_known *known, uint64_t bytes)
{
	uint32_t heard = 1;

	for (size_t i = 0; i < known->sizes; i++)
		if (octaves_apart(known->at[i].bytes, bytes) <= 1)
			heard |= known->at[i].kernels;
	return heard;
}

unsigned truth_pairs(const struct truth_known *known, uint64_t bytes)
{
	unsigned pairs = 0;

	for (size_t i = 0; i < known->sizes; i++)
		if (octaves_apart(known->at[i].bytes, bytes) <= 0.5)
			pairs += known->at[i].pairs;
	return pairs;
}

static size_t nearest(const struct truth_known *known, uint64_t bytes)
{
	size_t at = 0;

	while (at + 1 < known->sizes &&
	       octaves_apart(known->at[at + 1].bytes, bytes) < octaves_apart(known->at[at].bytes, bytes))
		at++;
	return at;
}

/* --- noise ------------------------------------------------------------------------------------------------------- */

/* Variance of the mean over n epochs of a walk that goes half of the way back each time. */
static double mean_of_walk(double deviation, unsigned n)
{
	double sum = 1;

	for (unsigned j = 1; j < n; j++)
		sum += 2 * (1 - (double)j / n) * exp2(-(double)j);
	return deviation * deviation * (1 + 1 / 9.0) * sum / n;
}

static double slope(const struct truth *truth, unsigned a, unsigned b, uint64_t bytes)
{
	const double step = 0.25;

	return (truth_shifted_l(truth, a, bytes, step) - truth_shifted_l(truth, b, bytes, step) -
	        truth_shifted_l(truth, a, bytes, -step) + truth_shifted_l(truth, b, bytes, -step)) /
	       (2 * step);
}

/* Of one pair, in units of a scrub's scale: a kernel's readings of all victims less libc's. */
static double scrub_within(const struct truth *truth, const struct sim_noise *noise, uint64_t bytes)
{
	const struct sim_host *host = truth->host;
	double squares = 0;

	for (unsigned v = 0; v < truth_victims(truth, bytes); v++) {
		uint64_t victim = v < 2 ? truth_victim_bytes(host, v) : host->llc_bytes / 2;
		double there = host->victim_ns[v] > 0 ? sim_slowness(host) * host->victim_ns[v]
		                                      : (double)victim / 64 * sim_latency_ns(host, victim, 0);

		squares += there * there;
	}
	return noise->victim * sqrt(squares) / truth_scrub_scale(truth, bytes);
}

double truth_deviation(const struct truth_known *known, enum truth_view view, unsigned a, unsigned b, uint64_t bytes)
{
	const struct truth *truth = known->truth;
	const struct sim_noise *noise = known->noise;
	size_t at = nearest(known, bytes);
	bool scrub = truth->intent == PAGECLEAR_SCRUB;
	unsigned epochs = view == TRUTH_BEST ? known->at[at].epochs : 1;
	double pairs = (double)known->at[at].pairs * epochs / known->at[at].epochs;
	double crowd = truth->threads > 1 ? 1 + noise->crowd : 1, between, within, moved;

	between = crowd * noise->between * (scrub ? truth->scrub_weight : 1);
	within = crowd * (scrub ? scrub_within(truth, noise, bytes) : noise->within);
	moved = noise->knee > 0 && !scrub ? slope(truth, a, b, bytes) : 0;
	return sqrt(M_PI / 2 * (2 * between * between / epochs + 2 * within * within / pairs) +
	            moved * moved * mean_of_walk(noise->knee, epochs));
}

static double below(double deviations)
{
	return erfc(deviations / sqrt(2)) / 2;
}

/* --- what noise explains ----------------------------------------------------------------------------------------- */

/* Taking the least of the estimates of those that the guard allows. */
static double by_estimates(const struct truth_known *known, enum truth_view view, uint32_t allowed, unsigned best,
                           uint64_t bytes)
{
	double sum = 0;

	for (unsigned k = 0; k < pc_kernel_count; k++) {
		double more = (allowed >> k & 1) != 0
		                      ? truth_l(known->truth, k, bytes) - truth_l(known->truth, best, bytes)
		                      : 0;
		double s = more > 0 ? truth_deviation(known, view, k, best, bytes) : 0;

		sum += s > 0 ? more * below(more / s - (k == 0 && view == TRUTH_CAREFUL ? 1.645 : 0)) : 0;
	}
	return sum;
}

/* Probability that the guard is judged wrongly: by one prior's estimate. */
static double misjudged(const struct truth_known *known, enum truth_view view, unsigned kernel, uint64_t bytes)
{
	double inside = fabs(truth_inside_guard(known->truth, kernel, bytes));
	double s = truth_deviation(known, view, kernel, 0, bytes);

	return s > 0 && !isinf(inside) ? below(inside / s) : 0;
}

/* From the best allowed kernel on: the first one that does not pass for outside is taken. */
static double by_guard(const struct truth_known *known, enum truth_view view, uint32_t allowed, unsigned best,
                       uint64_t bytes)
{
	double sum = 0, reached = 1, l = truth_l(known->truth, best, bytes);
	unsigned at = best;

	while (at != 0 && reached > 1e-3) {
		unsigned next = 0;

		reached *= misjudged(known, view, at, bytes);
		allowed &= ~(1u << at);
		for (unsigned k = 1; k < pc_kernel_count; k++)
			if ((allowed >> k & 1) != 0 &&
			    truth_l(known->truth, k, bytes) < truth_l(known->truth, next, bytes))
				next = k;
		sum += reached * (truth_l(known->truth, next, bytes) - l);
		l = truth_l(known->truth, next, bytes);
		at = next;
	}
	return sum;
}

double truth_explained(const struct truth_known *known, enum truth_view view, uint32_t kernels, uint64_t bytes)
{
	const struct truth *truth = known->truth;
	uint32_t allowed = 1;
	unsigned best = 0;
	double sum = 0;

	for (unsigned k = 1; k < pc_kernel_count; k++) {
		double outside = truth_beyond_guard(truth, k, bytes);

		if ((kernels >> k & 1) == 0)
			continue;
		if (outside > 0)
			sum += outside * misjudged(known, view, k, bytes);
		else
			allowed |= 1u << k;
		if (outside == 0 && truth_l(truth, k, bytes) < truth_l(truth, best, bytes))
			best = k;
	}
	return sum + by_estimates(known, view, allowed, best, bytes) + by_guard(known, view, allowed, best, bytes);
}

/* --- what the design gives away ---------------------------------------------------------------------------------- */

static double width(const struct truth_known *known, size_t size)
{
	size_t left = size > 0 ? size - 1 : size, right = size + 1 < known->sizes ? size + 1 : size;

	return right > left ? octaves_apart(known->at[right].bytes, known->at[left].bytes) / (double)(right - left) : 1;
}

static void fill_grid(struct grid *grid, const struct truth_known *known)
{
	grid->sizes = known->sizes < GRID_SIZES ? known->sizes : GRID_SIZES;
	for (size_t i = 0; i < grid->sizes; i++) {
		uint64_t bytes = known->at[i].bytes;
		uint32_t heard = truth_heard(known, bytes);

		grid->bytes[i] = bytes;
		grid->width[i] = width(known, i);
		grid->sigma = fmax(grid->sigma, truth_deviation(known, TRUTH_CAREFUL, 0, 0, bytes));
		for (unsigned k = 0; k < pc_kernel_count; k++) {
			grid_cell(grid, i, k)->measured = (heard >> k & 1) != 0;
			grid_cell(grid, i, k)->forbidden = truth_beyond_guard(known->truth, k, bytes) > 0;
			grid_cell(grid, i, k)->l = truth_l(known->truth, k, bytes);
		}
	}
}

int truth_designed(const struct truth_known *known, double *regret)
{
	struct grid grid = {.cells = calloc(GRID_SIZES * pc_kernel_count, sizeof(struct cell))};
	unsigned choice[GRID_SIZES];
	double octaves = 0;

	if (grid.cells == NULL)
		return -ENOMEM;
	fill_grid(&grid, known);
	solve_grid(&grid, solve_switch_cost(&grid), choice);
	*regret = 0;
	for (size_t i = 0; i < grid.sizes; i++) {
		uint32_t heard = truth_heard(known, grid.bytes[i]);

		*regret += grid.width[i] * truth_regret(known->truth, choice[i], heard, grid.bytes[i]);
		octaves += grid.width[i];
	}
	*regret /= octaves;
	grid_free(&grid);
	return 0;
}

/* --- sides ------------------------------------------------------------------------------------------------------- */

bool truth_goes_round(unsigned kernel)
{
	return pc_kernels[kernel].family == PC_NONTEMPORAL || pc_kernels[kernel].family == PC_LINE;
}

/* The cheapest of one side; pc_kernel_count if it has none. */
static unsigned cheapest(const struct truth *truth, bool round, uint64_t bytes, double *l)
{
	unsigned best = pc_kernel_count;

	*l = INFINITY;
	for (unsigned k = 0; k < pc_kernel_count; k++)
		if ((truth->host->kernels >> k & 1) != 0 && truth_goes_round(k) == round &&
		    truth_beyond_guard(truth, k, bytes) == 0 && truth_l(truth, k, bytes) < *l) {
			*l = truth_l(truth, k, bytes);
			best = k;
		}
	return best;
}

enum truth_side truth_side(const struct truth *truth, const struct sim_noise *noise, const struct dataset *data,
                           uint64_t bytes)
{
	struct truth_known known;
	double round_l, temporal_l, seen;
	unsigned round = cheapest(truth, true, bytes, &round_l), temporal = cheapest(truth, false, bytes, &temporal_l);

	if (!truth_learn(&known, truth, noise, data))
		return TRUTH_EITHER;
	if (round == pc_kernel_count) /* there is none, or the guard forbids all */
		return TRUTH_TEMPORAL;
	seen = 3 * truth_deviation(&known, TRUTH_BEST, round, temporal, bytes);
	if (temporal_l - round_l - 0.03 > seen)
		return TRUTH_ROUND;
	return round_l - temporal_l + 0.03 > seen ? TRUTH_TEMPORAL : TRUTH_EITHER;
}
