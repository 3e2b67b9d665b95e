/* Thresholds for glibc's memset; see emit_thresholds.h. */
#include "calibctl/emit_thresholds.h"

#include <math.h>

#include "calibrd/decide.h"
#include "calibrd/grid.h"
#include "calibrd/meter.h"
#include "kernels/kernels.h"
#include "libpolicy/document.h"
#include "pageclear/policy.h"

/* As calibrd decides (design section 7): a change must earn 3 % where it holds, and 6 % over an octave besides; no case
 * may lose more than GRID_GUARD anywhere for sure, or 1 % on average. */
static const double per_octave = 0.03, per_threshold = 0.06, mean_loss = 0.01;

/* Below, memset has no loops to choose between. */
enum { SIZE_LEAST = 256 };

/* --- what was measured ------------------------------------------------------------------------------------------- */

static const struct {
	unsigned intent;
	enum pc_prior prior;
} cases[THRESHOLDS_CASES] = {{PAGECLEAR_HOT, PC_CACHED},
                             {PAGECLEAR_HOT, PC_FLUSHED},
                             {PAGECLEAR_COLD, PC_CACHED},
                             {PAGECLEAR_COLD, PC_FLUSHED}};

/* The kernel that goes a path as glibc does: 32-byte stores on all that has AVX2, AVX-512 included (its memset for
 * those is the EVEX one, of the same width). NULL on other architectures. */
static const struct pc_kernel *kernel_of(enum thresholds_path path)
{
	static const char *const names[2][THRESHOLDS_PATHS] = {{"sse2", "stosb", "sse2nt"}, {"avx2", "stosb", "avxnt"}};
	const struct pc_kernel *wide = pc_kernel_find("avx2");

	return pc_kernel_find(names[wide != NULL && pc_kernel_runs(wide)][path]);
}

static size_t find_size(const struct grid *grid, uint64_t bytes)
{
	size_t i = 0;

	while (i < grid->sizes && grid->bytes[i] != bytes)
		i++;
	return i;
}

static void fill_case(struct thresholds_costs *out, size_t to, unsigned which, const struct grid *grid, size_t size)
{
	for (unsigned path = 0; path < THRESHOLDS_PATHS; path++) {
		const struct pc_kernel *kernel = kernel_of((enum thresholds_path)path);
		const struct cell *cell = kernel == NULL ? NULL : grid_cell(grid, size, pc_kernel_index(kernel));
		bool known = cell != NULL && cell->measured;

		out->l[to][which][path] = known ? cell->l : NAN;
		out->low[to][which][path] = known ? cell->interval.low : NAN;
		out->high[to][which][path] = known ? cell->interval.high : NAN;
	}
}

/* Sizes that all grids have. */
static void merge(struct thresholds_costs *out, const struct grid grids[THRESHOLDS_CASES])
{
	for (size_t i = 0; i < grids[0].sizes; i++) {
		size_t at[THRESHOLDS_CASES];
		bool everywhere = grids[0].bytes[i] >= SIZE_LEAST;

		for (unsigned c = 0; c < THRESHOLDS_CASES; c++) {
			at[c] = find_size(&grids[c], grids[0].bytes[i]);
			everywhere = everywhere && at[c] < grids[c].sizes;
		}
		if (!everywhere)
			continue;
		for (unsigned c = 0; c < THRESHOLDS_CASES; c++)
			fill_case(out, out->count, c, &grids[c], at[c]);
		out->bytes[out->count++] = grids[0].bytes[i];
	}
}

int thresholds_costs(struct thresholds_costs *out, const struct dataset *data)
{
	struct grid grids[THRESHOLDS_CASES] = {0};
	int r = 0;

	_Static_assert((int)THRESHOLDS_SIZES == (int)GRID_SIZES, "a grid's sizes fit");
	out->count = 0;
	for (unsigned c = 0; c < THRESHOLDS_CASES && r == 0; c++)
		r = grid_build(&grids[c], data, cases[c].intent, cases[c].prior, 1, UINT32_MAX, DECIDE_SCRUB_WEIGHT);
	if (r == 0)
		merge(out, grids);
	for (unsigned c = 0; c < THRESHOLDS_CASES; c++)
		grid_free(&grids[c]);
	return r == 0 && out->count == 0 ? 1 : r;
}

/* --- what would be better ---------------------------------------------------------------------------------------- */

struct question {
	const struct thresholds_costs *costs;
	const struct thresholds *present;
	bool own;
};

/* Octaves that a size speaks for: half the way to each neighbour. */
static double width(const struct thresholds_costs *costs, size_t i)
{
	size_t below = i > 0 ? i - 1 : i, above = i + 1 < costs->count ? i + 1 : i;

	return log2((double)costs->bytes[above] / (double)costs->bytes[below]) / 2;
}

/* Sums over the sizes whose path differs from the present one. */
struct change {
	double octaves, sums[THRESHOLDS_CASES];
	double told; /* octaves of sizes where some case surely differs */
	double sure; /* mean over the cases, of what surely differs: noise is no reason to move a threshold further */
	uint64_t from, to;
};

/* What a size's new path costs against the present one, and how surely. */
struct difference {
	double l, low, high;
};

static struct difference difference(const struct question *question, size_t i, unsigned c, enum thresholds_path now,
                                    enum thresholds_path then)
{
	const struct thresholds_costs *costs = question->costs;
	bool own = question->own; /* then the present path is libc's own, against which all was measured */

	return (struct difference){costs->l[i][c][then] - (own ? 0 : costs->l[i][c][now]),
	                           costs->low[i][c][then] - (own ? 0 : costs->high[i][c][now]),
	                           costs->high[i][c][then] - (own ? 0 : costs->low[i][c][now])};
}

/* False if a change there is unheard of, or surely a loss. */
static bool add_size(struct change *out, const struct question *question, size_t i, enum thresholds_path now,
                     enum thresholds_path then)
{
	double octaves = width(question->costs, i);
	bool told = false;

	for (unsigned c = 0; c < THRESHOLDS_CASES; c++) {
		struct difference at = difference(question, i, c, now, then);

		if (!(at.low <= GRID_GUARD) || isnan(at.l)) /* low may be NaN as well */
			return false;
		out->sums[c] += octaves * at.l;
		if (at.low <= 0 && at.high >= 0)
			continue;
		out->sure += octaves * at.l / THRESHOLDS_CASES;
		told = true;
	}
	out->told += told ? octaves : 0;
	out->octaves += octaves;
	out->from = out->from == 0 ? question->costs->bytes[i] : out->from;
	out->to = question->costs->bytes[i];
	return true;
}

/* Sizes that say nothing allow no loss elsewhere. */
static bool is_sound(const struct change *change)
{
	for (unsigned c = 0; c < THRESHOLDS_CASES; c++)
		if (change->sums[c] > mean_loss * change->told)
			return false;
	return true;
}

/* NaN: not to be done. */
static double cost(struct change *out, const struct question *question, const struct thresholds *tried)
{
	*out = (struct change){0};
	for (size_t i = 0; i < question->costs->count; i++) {
		/* Lengths somewhat below the size were measured: their middle says which path was or would be taken. */
		uint64_t middle = question->costs->bytes[i] - meter_shorter(question->costs->bytes[i]) / 2;
		enum thresholds_path now = thresholds_path(question->present, middle);
		enum thresholds_path then = thresholds_path(tried, middle);

		if (now != then && !add_size(out, question, i, now, then))
			return NAN;
	}
	if (!is_sound(out))
		return NAN;
	return out->sure + per_octave * out->octaves + per_threshold * (tried->stosb != question->present->stosb) +
	       per_threshold * (tried->nontemporal != question->present->nontemporal);
}

static void consider(struct thresholds_choice *best, double *least, const struct question *question,
                     const struct thresholds *tried)
{
	struct change change;
	double found = cost(&change, question, tried);

	if (!(found < *least) || change.octaves <= 0)
		return;
	*least = found;
	*best = (struct thresholds_choice){.value = *tried,
	                                   .set_stosb = tried->stosb != question->present->stosb,
	                                   .set_nontemporal = tried->nontemporal != question->present->nontemporal,
	                                   .from = change.from,
	                                   .to = change.to};
	double all = 0;
	for (unsigned c = 0; c < THRESHOLDS_CASES; c++) {
		best->gains[c] = exp(-change.sums[c] / change.octaves);
		all += change.sums[c] / THRESHOLDS_CASES;
	}
	best->gain = exp(-all / change.octaves);
}

static bool is_within(uint64_t value, uint64_t least, uint64_t most)
{
	return least <= value && value <= most;
}

/* The i-th and j-th way of setting them: 0 leaves one alone, the others put it where the measured sizes end and begin.
 * False if it may not stand there, or would say nothing: from the other one's value on, no size between them takes a
 * path of its own. */
static bool candidate(const struct question *question, const struct thresholds_range *range, size_t i, size_t j,
                      struct thresholds *out)
{
	const uint64_t *bytes = question->costs->bytes;

	out->stosb = i == 0 ? question->present->stosb : bytes[i - 1];
	/* From the size itself on it would miss nearly all that was measured there. */
	out->nontemporal = j == 0 ? question->present->nontemporal : bytes[j - 1] - meter_shorter(bytes[j - 1]);
	if (j > 0 && out->nontemporal < out->stosb && bytes[j - 1] >= out->stosb)
		out->nontemporal = out->stosb;
	return (i == 0 || (range->stosb && is_within(out->stosb, range->least.stosb, range->most.stosb))) &&
	       (j == 0 || (range->nontemporal && out->nontemporal >= out->stosb &&
	                   is_within(out->nontemporal, range->least.nontemporal, range->most.nontemporal)));
}

void thresholds_choose(struct thresholds_choice *out, const struct thresholds_costs *costs,
                       const struct thresholds *present, const struct thresholds_range *range, bool own)
{
	const struct question question = {costs, present, own};
	double least = 0; /* of leaving all as it is */

	*out = (struct thresholds_choice){.value = *present, .gain = 1};
	for (size_t i = 0; i <= costs->count; i++)
		for (size_t j = 0; j <= costs->count; j++) {
			struct thresholds tried;

			if (candidate(&question, range, i, j, &tried))
				consider(out, &least, &question, &tried);
		}
}
