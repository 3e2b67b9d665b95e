/* Tables, rules, hysteresis and pins; see decide.h and design section 7. */
#include "calibrd/decide.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrd/solve.h"
#include "pageclear/policy.h"

static const double falling =
	0.1; /* a rule whose gain falls by so much in the last cell does not hold beyond the grid */
static const double cell_loss = 0.1;   /* an old rule that surely loses more than this in a cell is replaced */
static const double epochs_sure = 0.1; /* quantile of the epochs' gains that must be above 0 */

/* --- crossovers -------------------------------------------------------------------------------------------------- */

/* The next eighth of an octave: finer than any measurement here, and numbers that people can read. */
static uint64_t next_eighth(double bytes)
{
	double octave = exp2(floor(log2(bytes)));

	return (uint64_t)(octave * (9 + floor((bytes / octave - 1) * 8)) / 8);
}

/* Where the new kernel becomes cheaper than the old one: in (size before, size], so that rules ascend. */
static uint64_t crossover(const struct grid *grid, size_t size, unsigned before, unsigned after)
{
	double right = grid_cell(grid, size, after)->l - grid_cell(grid, size, before)->l, left;
	double octaves;
	uint64_t at;

	if (size == 0 || !grid_cell(grid, size - 1, after)->measured || !grid_cell(grid, size, before)->measured ||
	    !grid_cell(grid, size - 1, before)->measured)
		return grid->bytes[size];
	left = grid_cell(grid, size - 1, after)->l - grid_cell(grid, size - 1, before)->l;
	if (!(left > 0 && right < 0))
		return grid->bytes[size];
	octaves = log2((double)grid->bytes[size] / (double)grid->bytes[size - 1]);
	at = next_eighth((double)grid->bytes[size - 1] * exp2(octaves * left / (left - right)));
	return at < grid->bytes[size] ? at : grid->bytes[size];
}

/* The size in [first, last + 1] from which one epoch alone would rather use `after` than `before`; `neutral` if the
 * epoch compared them nowhere. */
static size_t epoch_crossover(const struct grid *grid, unsigned epoch, size_t first, size_t last, unsigned before,
                              unsigned after, size_t neutral)
{
	double gain = 0, best = 0;
	size_t at = last + 1;
	bool seen = false;

	for (size_t i = last + 1; i-- > first;) {
		double a = grid_cell(grid, i, after)->epoch[epoch], b = grid_cell(grid, i, before)->epoch[epoch];

		if (isnan(a) || isnan(b))
			continue;
		seen = true;
		gain += grid->width[i] * (b - a);
		if (gain > best) {
			best = gain;
			at = i;
		}
	}
	return seen ? at : neutral;
}

/* Range of the crossover over epochs, within the two segments that meet there. previous: where the rule before begins.
 */
static void crossover_range(const struct grid *grid, const unsigned *choice, size_t size, struct pc_rule *rule)
{
	size_t first = size, last = solve_segment_end(grid, choice, size), low = size, high = size;
	unsigned before = size > 0 ? choice[size - 1] : 0;

	while (first > 0 && choice[first - 1] == before)
		first--;
	for (unsigned e = 0; e < grid->epochs; e++) {
		size_t at = epoch_crossover(grid, e, first, last, before, choice[size], size);

		low = at < low ? at : low;
		high = at > high ? at : high;
	}
	rule->low = low > 0 ? grid->bytes[low - 1] : grid->bytes[0];
	rule->high = grid->bytes[high < grid->sizes ? high : grid->sizes - 1];
	if (rule->low > rule->from)
		rule->low = rule->from;
	if (rule->high < rule->from)
		rule->high = rule->from;
}

/* --- caution ----------------------------------------------------------------------------------------------------- */

/* Which size three of four epochs agree on to leave the simpler of the two kernels at, or to have gone back to it. */
static size_t cautious_crossover(const struct grid *grid, const unsigned *choice, size_t size, size_t first,
                                 size_t last)
{
	bool back = choice[size] < choice[size - 1];
	double at[COST_EPOCHS], wanted;

	for (unsigned e = 0; e < grid->epochs; e++)
		at[e] = (double)epoch_crossover(grid, e, first, last, choice[size - 1], choice[size], size);
	wanted = stats_quantile(at, grid->epochs, back ? 0.25 : 0.75);
	return (size_t)(back ? floor(wanted) : ceil(wanted));
}

/* Gives sizes [from, to) to a kernel, if it may stand there and what becomes of its segment is proven. */
static void hand_over(const struct grid *grid, unsigned *choice, size_t from, size_t to, unsigned kernel)
{
	unsigned kept[GRID_SIZES];
	size_t first = from, last;

	memcpy(kept, choice, grid->sizes * sizeof(*choice));
	for (size_t i = from; i < to; i++) {
		if (!grid_cell(grid, i, kernel)->measured || grid_cell(grid, i, kernel)->forbidden)
			return;
		kept[i] = kernel;
	}
	while (first > 0 && kept[first - 1] == kernel)
		first--;
	last = solve_segment_end(grid, kept, from);
	if (kernel == 0 || solve_is_proven(grid, kernel, first, last))
		memcpy(choice, kept, grid->sizes * sizeof(*choice));
}

/* Where epochs disagree about a crossover the simpler kernel has the benefit of the doubt: a switch too late loses a
 * gain, one too early more than that (non-temporal stores inside the caches). Each segment keeps at least one size. */
static void be_cautious(const struct grid *grid, unsigned *choice)
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

/* Geometric mean over the sizes of [from, to) of libc's cost over the kernel's; 0 where none was measured. */
static double gain_over(const struct grid *grid, unsigned kernel, uint64_t from, uint64_t to)
{
	double sum = 0;
	size_t count = 0;

	for (size_t i = 0; i < grid->sizes; i++)
		if (grid->bytes[i] >= from && grid->bytes[i] < to && grid_cell(grid, i, kernel)->measured) {
			sum += log(grid_cell(grid, i, kernel)->ratio);
			count++;
		}
	return count > 0 ? exp(sum / (double)count) : 0;
}

static void name_kernel(struct pc_rule *rule, unsigned kernel)
{
	snprintf(rule->kernel, sizeof(rule->kernel), "%s", pc_kernels[kernel].name);
}

/* True if the gain is not falling at the end of the grid, so that the rule may hold beyond it. Scrub's always does: its
 * grid ends where victims get dear, far below what is scrubbed, and a default that fills the caches is what scrub is
 * not for. */
static bool holds_beyond(const struct grid *grid, unsigned kernel)
{
	size_t n = grid->sizes;

	return grid->intent == PAGECLEAR_SCRUB || n < 2 ||
	       (grid_cell(grid, n - 2, kernel)->measured &&
	        grid_cell(grid, n - 1, kernel)->l - grid_cell(grid, n - 2, kernel)->l < falling + grid->sigma);
}

static void fill_gains(const struct grid *grid, struct pc_rule *rules, size_t count, const unsigned *kernels)
{
	for (size_t i = 0; i < count; i++)
		rules[i].gain =
			gain_over(grid, kernels[i], rules[i].from, i + 1 < count ? rules[i + 1].from : UINT64_MAX);
}

size_t decide_rules(const struct grid *grid, const unsigned *choice, struct pc_rule *rules)
{
	unsigned kernels[PC_RULES_MAX] = {0};
	size_t count = 1;

	rules[0] = (struct pc_rule){.from = 0};
	for (size_t i = 0; i < grid->sizes && count + 1 < PC_RULES_MAX; i++) {
		if (choice[i] == kernels[count - 1])
			continue;
		rules[count] = (struct pc_rule){.from = crossover(grid, i, kernels[count - 1], choice[i])};
		crossover_range(grid, choice, i, &rules[count]);
		kernels[count++] = choice[i];
	}
	if (kernels[count - 1] != 0 && !holds_beyond(grid, kernels[count - 1])) {
		rules[count] = (struct pc_rule){.from = 2 * grid->bytes[grid->sizes - 1]};
		kernels[count++] = 0;
	}
	for (size_t i = 0; i < count; i++)
		name_kernel(&rules[i], kernels[i]);
	fill_gains(grid, rules, count, kernels);
	return count;
}

/* --- hysteresis -------------------------------------------------------------------------------------------------- */

/* What the old rules choose for each size of the grid; what cannot be chosen any more counts as libc. */
static void choose_by(const struct pc_table *table, const struct grid *grid, unsigned *choice)
{
	for (size_t i = 0; i < grid->sizes; i++) {
		const struct pc_kernel *kernel = pc_kernel_find(pc_table_rule(table, grid->bytes[i])->kernel);
		unsigned k = kernel != NULL ? pc_kernel_index(kernel) : 0;

		choice[i] = grid_cell(grid, i, k)->measured ? k : 0;
	}
}

static bool names_lost_kernel(const struct pc_table *table, uint32_t kernels)
{
	for (size_t i = 0; i < table->rule_count; i++) {
		const struct pc_kernel *kernel = pc_kernel_find(table->rules[i].kernel);

		if (kernel == NULL || (pc_kernel_index(kernel) != 0 && (kernels >> pc_kernel_index(kernel) & 1) == 0) ||
		    table->rules[i].pinned)
			return true;
	}
	return false;
}

/* What the old choice costs more than the new one in one epoch (COST_EPOCHS: over all), in nat-octaves; NaN if the
 * epoch holds no size at which they differ. */
static double excess(const struct grid *grid, const unsigned *old, const unsigned *new, unsigned epoch)
{
	double sum = 0;
	bool seen = false;

	for (size_t i = 0; i < grid->sizes; i++) {
		const struct cell *a = grid_cell(grid, i, old[i]), *b = grid_cell(grid, i, new[i]);
		double more = epoch == COST_EPOCHS ? a->l - b->l : a->epoch[epoch] - b->epoch[epoch];

		if (old[i] == new[i] || isnan(more))
			continue;
		seen = true;
		sum += grid->width[i] * more;
	}
	return seen ? sum : NAN;
}

/* True if the new data condemn the old rules: a size at which they forbid its kernel, a sure loss of more than 10 %
 * somewhere, or more than a switch costs in all, and epochs say so alike. That a segment is not proven (any more)
 * condemns nothing. */
static bool old_loses(const struct grid *grid, const unsigned *old, const unsigned *new)
{
	double gains[COST_EPOCHS];
	size_t count = 0;

	for (size_t i = 0; i < grid->sizes; i++)
		if (grid_cell(grid, i, old[i])->forbidden ||
		    (old[i] != new[i] &&
		     grid_cell(grid, i, old[i])->interval.low > grid_cell(grid, i, new[i])->interval.high + cell_loss))
			return true;
	if (!(excess(grid, old, new, COST_EPOCHS) > solve_switch_cost(grid)))
		return false;
	for (unsigned e = 0; e < grid->epochs; e++) {
		gains[count] = excess(grid, old, new, e);
		if (!isnan(gains[count]))
			count++;
	}
	return stats_quantile(gains, count, epochs_sure) > 0;
}

/* The old table of that question, if it may still be had as it is. */
static const struct pc_table *old_table(const struct decide_input *input, unsigned intent, enum pc_prior prior,
                                        unsigned threads)
{
	const struct pc_table *table = NULL;

	if (input->old != NULL)
		table = pc_document_table(input->old, intent, prior, threads);
	return table != NULL && table->threads == threads && !names_lost_kernel(table, input->kernels) ? table : NULL;
}

/* --- pins -------------------------------------------------------------------------------------------------------- */

static bool pin_applies(const struct pin *pin, const struct pc_table *table)
{
	return pin->intent == table->intent && (pin->any_prior || pin->prior == table->prior);
}

/* Cuts [from, to) out of the rules and puts the pinned kernel there. */
static void apply_pin(struct pc_table *table, const struct pin *pin)
{
	struct pc_rule old[PC_RULES_MAX], after = *pc_table_rule(table, pin->to), rule = {.from = pin->from};
	size_t count = table->rule_count, kept = 0;

	memcpy(old, table->rules, count * sizeof(*old));
	name_kernel(&rule, pin->kernel);
	rule.pinned = true;
	if (after.from != pin->to)
		after.low = after.high = 0; /* a cut is no crossover */
	after.from = pin->to;
	for (size_t i = 0; i < count && old[i].from < pin->from; i++)
		table->rules[kept++] = old[i];
	table->rules[kept++] = rule;
	if (pin->to != UINT64_MAX)
		table->rules[kept++] = after;
	for (size_t i = 0; i < count; i++)
		if (old[i].from > pin->to)
			table->rules[kept++] = old[i];
	table->rule_count = kept;
}

/* --- tables ------------------------------------------------------------------------------------------------------ */

/* Gains and ranges stay as well, old though they are: a table that differed in them alone would be written again. */
static void keep_rules(struct pc_table *table, const struct pc_table *old)
{
	memcpy(table->rules, old->rules, old->rule_count * sizeof(*table->rules));
	table->rule_count = old->rule_count;
}

/* The old rules or those of the grid: true for the old ones. What was not measured this time (no sizes) condemns
 * nothing. */
static bool fill_rules(struct pc_table *table, struct grid *grid, const struct pc_table *old)
{
	unsigned choice[GRID_SIZES], before[GRID_SIZES];

	if (grid->sizes > 0) {
		solve_proven(grid, choice);
		be_cautious(grid, choice);
		if (old != NULL)
			choose_by(old, grid, before);
		if (old == NULL || old_loses(grid, before, choice)) {
			table->rule_count = decide_rules(grid, choice, table->rules);
			return false;
		}
	}
	keep_rules(table, old);
	return true;
}

/* One question's table: none where nothing was measured and there is no old one. */
static int add_table(const struct decide_input *input, struct pc_table question, struct grid *grid,
                     struct decision *out)
{
	struct pc_table *table = &out->tables[out->table_count];
	const struct pc_table *old = old_table(input, question.intent, question.prior, question.threads);

	if (grid->sizes == 0 && old == NULL)
		return 0;
	*table = question;
	table->rules = calloc(PC_RULES_MAX, sizeof(*table->rules));
	if (table->rules == NULL)
		return -ENOMEM;
	out->kept[out->table_count++] = fill_rules(table, grid, old);
	for (size_t i = 0; i < input->pin_count; i++) {
		if (!pin_applies(&input->pins[i], table) || input->pins[i].from >= input->pins[i].to)
			continue;
		if (table->rule_count + 2 > PC_RULES_MAX)
			return -E2BIG;
		apply_pin(table, &input->pins[i]);
	}
	return 0;
}

static const struct {
	unsigned intent;
	enum pc_prior prior;
} questions[] = {
	{PAGECLEAR_HOT, PC_CACHED},    {PAGECLEAR_HOT, PC_FLUSHED},  {PAGECLEAR_HOT, PC_UNKNOWN},
	{PAGECLEAR_COLD, PC_CACHED},   {PAGECLEAR_COLD, PC_FLUSHED}, {PAGECLEAR_COLD, PC_UNKNOWN},
	{PAGECLEAR_SCRUB, PC_UNKNOWN},
};

int decide(const struct decide_input *input, struct decision *out)
{
	struct decision *decision = calloc(1, sizeof(*decision));
	int r = decision != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]) && r == 0; i++) {
		struct pc_table question = {.intent = questions[i].intent, .prior = questions[i].prior, .threads = 1};
		struct grid grid = {0};

		r = grid_build(&grid, input->data, question.intent, question.prior, question.threads, input->kernels,
		               input->scrub_weight);
		if (r >= 0) /* 1: nothing measured, a grid without sizes */
			r = add_table(input, question, &grid, decision);
		grid_free(&grid);
	}
	if (r == 0)
		*out = *decision;
	else if (decision != NULL)
		decision_free(decision);
	free(decision);
	return r;
}

void decision_free(struct decision *decision)
{
	for (size_t i = 0; i < decision->table_count; i++)
		free(decision->tables[i].rules);
	*decision = (struct decision){0};
}
