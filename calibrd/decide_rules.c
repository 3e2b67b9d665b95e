/* From a solved grid to rules: where they begin, how sure that is, and what they gain; see decide.h and design
 * section 7.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calibrd/decide_parts.h"
#include "calibrd/solve.h"
#include "pageclear/policy.h"

static const double sure_loss = 0.05; /* that a size may not cost for the sake of a simpler kernel */
static const double falling = 0.1;    /* a rule whose gain falls by so much at the end does not hold beyond the grid */
static const double half_octave = 1.4;

/* --- crossovers -------------------------------------------------------------------------------------------------- */

/* The next eighth of an octave, or of the bracket where that is narrower: finer than any measurement here, and numbers
 * that people can read. Brackets are narrow where there is a cliff: above 2 KiB glibc's memset takes twice as long. */
static uint64_t next_round(double bytes, uint64_t low, uint64_t high)
{
	double step = exp2(floor(log2(fmin(bytes, (double)(high - low))))) / 8;

	step = fmax(step, 1);
	return (uint64_t)(step * (1 + floor(bytes / step)));
}

/* Where between two sizes, 0 to 1, a straight line has fallen to a level: 0 if it is there from the start, 1 if it
 * never is. */
static double falls_to(double left, double right, double level)
{
	if (left <= level)
		return 0;
	return right < level ? (left - level) / (left - right) : 1;
}

/* Forbidden for what its cost does not say: it loses on base pages. */
static bool is_barred(const struct cell *cell)
{
	return cell->forbidden && !(cell->worse > GRID_SLOWER);
}

/* Where between size - 1 and size, 0 to 1, the new kernel takes over from the old one: where it becomes cheaper. With
 * an unknown prior not before both priors allow it, nor after they have ceased to allow the old one. */
static double take_over_at(const struct grid *grid, size_t size, unsigned before, unsigned after)
{
	const struct cell *old[] = {grid_cell(grid, size - 1, before), grid_cell(grid, size, before)};
	const struct cell *new[] = {grid_cell(grid, size - 1, after), grid_cell(grid, size, after)};
	double left = new[0]->l - old[0]->l, at = falls_to(left, new[1]->l - old[1]->l, 0);

	/* It won already, and by more than it takes: who knows why it was not chosen. */
	if (left <= -solve_not_libc || is_barred(new[0]))
		return 1;
	if (is_barred(old[1]))
		return 0;
	if (grid->intent == PAGECLEAR_SCRUB || grid->prior != PC_UNKNOWN)
		return at;
	at = fmin(at, 1 - falls_to(old[1]->worse, old[0]->worse, GRID_GUARD));
	return fmax(at, falls_to(new[0]->worse, new[1]->worse, GRID_GUARD));
}

/* Where the new kernel's rule begins: in (size before, size], so that rules ascend. */
static uint64_t crossover(const struct grid *grid, size_t size, unsigned before, unsigned after)
{
	uint64_t low, high = grid->bytes[size], from;

	if (size == 0 || !grid_cell(grid, size - 1, after)->measured || !grid_cell(grid, size, before)->measured ||
	    !grid_cell(grid, size - 1, before)->measured)
		return high;
	low = grid->bytes[size - 1];
	from = next_round((double)low * pow((double)high / (double)low, take_over_at(grid, size, before, after)), low,
	                  high);
	return from < high ? from : high;
}

/* The sizes that a kernel may begin at, as one epoch tells: the first and the last of them, as indices. */
struct bracket {
	size_t low, high;
};

/* What `after` gains over `before` at a size in one epoch, in nat-octaves; NaN where the epoch did not compare them. */
static double epoch_gain(const struct grid *grid, unsigned epoch, size_t size, unsigned before, unsigned after)
{
	return grid->width[size] *
	       (grid_cell(grid, size, before)->epoch[epoch] - grid_cell(grid, size, after)->epoch[epoch]);
}

/* Where in first..last + 1 one epoch alone would leave `before` for `after`. */
static struct bracket epoch_bracket(const struct grid *grid, unsigned epoch, size_t first, size_t last, unsigned before,
                                    unsigned after)
{
	size_t high = last + 1, low;
	double gain = 0, best = 0;

	for (size_t i = last + 1; i-- > first;) {
		double more = epoch_gain(grid, epoch, i, before, after);

		gain += isnan(more) ? 0 : more;
		if (gain > best) {
			best = gain;
			high = i;
		}
	}
	for (low = high; low > first && isnan(epoch_gain(grid, epoch, low - 1, before, after)); low--)
		;
	return (struct bracket){low, high};
}

/* The same as a vote on a rule that begins at `size`: an epoch that knows too few sizes to tell (those inside a
 * crossover's bracket are added late) agrees. */
static struct bracket epoch_vote(const struct grid *grid, unsigned epoch, size_t size, size_t first, size_t last,
                                 unsigned before, unsigned after)
{
	struct bracket at = epoch_bracket(grid, epoch, first, last, before, after);

	return at.low <= size && size <= at.high ? (struct bracket){size, size} : at;
}

/* Range of the crossover over epochs, within the two segments that meet there. */
static void crossover_range(const struct grid *grid, const unsigned *choice, size_t size, struct pc_rule *rule)
{
	size_t first = size, last = solve_segment_end(grid, choice, size), low = size, high = size;
	unsigned before = size > 0 ? choice[size - 1] : 0;

	while (first > 0 && choice[first - 1] == before)
		first--;
	for (unsigned e = 0; e < grid->epochs; e++) {
		struct bracket at = epoch_vote(grid, e, size, first, last, before, choice[size]);

		low = at.low < low ? at.low : low;
		high = at.high > high ? at.high : high;
	}
	rule->low = low > 0 ? grid->bytes[low - 1] : grid->bytes[0];
	rule->high = grid->bytes[high < grid->sizes ? high : grid->sizes - 1];
	if (rule->low > rule->from)
		rule->low = rule->from;
	if (rule->high < rule->from)
		rule->high = rule->from;
}

/* --- caution ----------------------------------------------------------------------------------------------------- */

/* Which size three of four epochs (half of those of many calibrations) agree on to leave the simpler of the two kernels
 * at, or to have gone back to it. */
static size_t cautious_crossover(const struct grid *grid, const unsigned *choice, size_t size, size_t first,
                                 size_t last)
{
	bool back = choice[size] < choice[size - 1];
	double at[COST_EPOCHS], share = grid->many ? 0.5 : 0.75, wanted;

	for (unsigned e = 0; e < grid->epochs; e++) {
		struct bracket vote = epoch_vote(grid, e, size, first, last, choice[size - 1], choice[size]);

		at[e] = (double)(back ? vote.low : vote.high);
	}
	wanted = stats_quantile(at, grid->epochs, back ? 1 - share : share);
	return (size_t)(back ? floor(wanted) : ceil(wanted));
}

/* True if the segment that holds a size is libc's or proven. */
static bool stands(const struct grid *grid, const unsigned *choice, size_t size)
{
	size_t first = size;

	while (first > 0 && choice[first - 1] == choice[size])
		first--;
	return choice[size] == 0 || solve_is_proven(grid, choice[size], first, solve_segment_end(grid, choice, size));
}

/* Gives sizes [from, to) of one segment to its neighbour's kernel, if that may stand there, surely loses at none of
 * them, and both are proven as they are then. */
static void hand_over(const struct grid *grid, unsigned *choice, size_t from, size_t to, unsigned kernel)
{
	unsigned wanted[GRID_SIZES];

	memcpy(wanted, choice, grid->sizes * sizeof(*choice));
	for (size_t i = from; i < to; i++) {
		const struct cell *cell = grid_cell(grid, i, kernel);

		if (!cell->measured || cell->forbidden || cell->doubtful ||
		    cell->interval.low > grid_cell(grid, i, choice[i])->interval.high + sure_loss)
			return;
		wanted[i] = kernel;
	}
	if (stands(grid, wanted, from - 1) && stands(grid, wanted, to))
		memcpy(choice, wanted, grid->sizes * sizeof(*choice));
}

/* Where epochs disagree about a crossover the simpler kernel has the benefit of the doubt: a switch too late loses a
 * gain, one too early more than that (non-temporal stores inside the caches). Each segment keeps at least one size. */
void decide_cautiously(const struct grid *grid, unsigned *choice)
{
	size_t size = solve_segment_end(grid, choice, 0) + 1;

	while (size < grid->sizes) { /* begins a segment */
		unsigned before = choice[size - 1], after = choice[size];
		size_t first = size - 1, last = solve_segment_end(grid, choice, size), wanted;

		while (first > 0 && choice[first - 1] == before)
			first--;
		wanted = cautious_crossover(grid, choice, size, first, last);
		if (after > before && wanted > size)
			hand_over(grid, choice, size, wanted < last ? wanted : last, before);
		else if (after < before && wanted < size)
			hand_over(grid, choice, wanted > first ? wanted : first + 1, size, after);
		size = last + 1;
	}
}

/* --- rules ------------------------------------------------------------------------------------------------------- */

/* Geometric mean over the sizes of [from, to), by the octaves that each speaks for, of libc's cost over the kernel's; 0
 * where none was measured. */
double decide_gain(const struct grid *grid, unsigned kernel, uint64_t from, uint64_t to)
{
	double sum = 0, width = 0;

	for (size_t i = 0; i < grid->sizes; i++) {
		const struct cell *cell = grid_cell(grid, i, kernel);

		if (grid->bytes[i] < from || grid->bytes[i] >= to || !cell->measured || cell->interpolated)
			continue;
		sum += grid->width[i] * log(cell->ratio);
		width += grid->width[i];
	}
	return width > 0 ? exp(sum / width) : 0;
}

void decide_name(struct pc_rule *rule, unsigned kernel)
{
	snprintf(rule->kernel, sizeof(rule->kernel), "%s", pc_kernels[kernel].name);
}

/* True if the gain is not falling at the end of the grid, so that the rule may hold beyond it; the last step is taken
 * half an octave wide or more. Scrub's always does: its grid ends where victims get dear, far below what is scrubbed,
 * and a default that fills the caches is what scrub is not for. */
static bool holds_beyond(const struct grid *grid, unsigned kernel)
{
	size_t last = grid->sizes - 1, before = last;

	if (grid->intent == PAGECLEAR_SCRUB || last == 0)
		return true;
	while (before > 0 && (double)grid->bytes[last] < half_octave * (double)grid->bytes[before])
		before--;
	return grid_cell(grid, before, kernel)->measured &&
	       grid_cell(grid, last, kernel)->l - grid_cell(grid, before, kernel)->l < falling + grid->sigma;
}

static void fill_gains(const struct grid *grid, struct pc_rule *rules, size_t count, const unsigned *kernels)
{
	for (size_t i = 0; i < count; i++)
		rules[i].gain =
			decide_gain(grid, kernels[i], rules[i].from, i + 1 < count ? rules[i + 1].from : UINT64_MAX);
}

size_t decide_rules(const struct grid *grid, const unsigned *choice, struct pc_rule *rules)
{
	unsigned kernels[PC_RULES_MAX] = {0};
	size_t count = 1, i;

	rules[0] = (struct pc_rule){.from = 0};
	for (i = 0; i < grid->sizes && count + 1 < PC_RULES_MAX; i++) {
		if (choice[i] == kernels[count - 1])
			continue;
		rules[count] = (struct pc_rule){.from = crossover(grid, i, kernels[count - 1], choice[i])};
		crossover_range(grid, choice, i, &rules[count]);
		kernels[count++] = choice[i];
	}
	if (kernels[count - 1] != 0 && (i < grid->sizes || !holds_beyond(grid, kernels[count - 1]))) {
		/* no room for more rules, or no reason to believe in this one any further */
		rules[count] = (struct pc_rule){.from = i < grid->sizes ? grid->bytes[i] : 2 * grid->bytes[i - 1]};
		kernels[count++] = 0;
	}
	for (size_t j = 0; j < count; j++)
		decide_name(&rules[j], kernels[j]);
	fill_gains(grid, rules, count, kernels);
	return count;
}
