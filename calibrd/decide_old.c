/* What becomes of the rules that were published before; see decide_parts.h and design section 7. */
#include <math.h>
#include <string.h>

#include "calibrd/decide_parts.h"
#include "calibrd/solve.h"

static const double cell_loss = 0.1;      /* an old rule that surely loses more than this is replaced, */
static const double least_octaves = 0.25; /* if it does so over as much */

static const double mended_most = 1; /* octaves: rules that the data forbid over more are replaced */

/* --- old against new --------------------------------------------------------------------------------------------- */

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

/* True if the old kernel surely loses more than 10 % to the new one at a size. */
static bool loses_at(const struct grid *grid, const unsigned *old, const unsigned *new, size_t size)
{
	return old[size] != new[size] && grid_cell(grid, size, old[size])->interval.low >
	                                         grid_cell(grid, size, new[size])->interval.high + cell_loss;
}

/* True if the old rules do so over a quarter octave: an ordinary size speaks for more, those inside a crossover's
 * bracket for less. Where a crossover lies on a cliff no two calibrations place it alike. */
static bool loses_somewhere(const struct grid *grid, const unsigned *old, const unsigned *new)
{
	double octaves = 0;

	for (size_t i = 0; i < grid->sizes && octaves < least_octaves; i++)
		octaves = loses_at(grid, old, new, i) ? octaves + grid->width[i] : 0;
	return octaves >= least_octaves;
}

/* True if the gains of epochs, beside their spread, leave no doubt that there is one: more standard errors than
 * `doubt`. The new rules are the best of many by the very data that they are measured with, so chance has many tries.
 */
static bool are_sure(const double *gains, size_t count, double doubt)
{
	double sum = 0, squares = 0, mean;

	for (size_t i = 0; i < count; i++)
		sum += gains[i];
	mean = sum / (double)count;
	for (size_t i = 0; i < count; i++)
		squares += (gains[i] - mean) * (gains[i] - mean);
	return count >= 2 && mean > doubt * sqrt(squares / (double)((count - 1) * count));
}

/* True if the new data condemn the old rules: a sure loss of more than 10 % somewhere, or more than two switches cost
 * (one, by many calibrations) in all, and surely so. That a segment is not proven (any more) condemns nothing. */
static bool old_loses(const struct grid *grid, const unsigned *old, const unsigned *new, double doubt)
{
	double gains[COST_EPOCHS];
	size_t count = 0;

	if (loses_somewhere(grid, old, new))
		return true;
	if (!(excess(grid, old, new, COST_EPOCHS) > (grid->many ? 1 : 2) * solve_switch_cost(grid)))
		return false;
	for (unsigned e = 0; e < grid->epochs; e++) {
		gains[count] = excess(grid, old, new, e);
		if (!isnan(gains[count]))
			count++;
	}
	return are_sure(gains, count, doubt);
}

const struct pc_table *decide_old_table(const struct decide_input *input, unsigned intent, enum pc_prior prior,
                                        unsigned threads)
{
	const struct pc_table *table = NULL;

	if (input->old != NULL)
		table = pc_document_table(input->old, intent, prior, threads);
	return table != NULL && table->threads == threads && !names_lost_kernel(table, input->kernels) ? table : NULL;
}

/* --- mending ----------------------------------------------------------------------------------------------------- */

static bool forbids(const struct grid *grid, size_t size, const char *name)
{
	const struct pc_kernel *kernel = pc_kernel_find(name);

	return kernel != NULL && grid_cell(grid, size, pc_kernel_index(kernel))->forbidden;
}

static bool allows(const struct grid *grid, size_t size, const char *name)
{
	const struct pc_kernel *kernel = pc_kernel_find(name);
	const struct cell *cell = kernel != NULL ? grid_cell(grid, size, pc_kernel_index(kernel)) : NULL;

	return cell != NULL && cell->measured && !cell->forbidden;
}

static bool is_plain_libc(const struct pc_rule *rule)
{
	return rule->chunk == 0 && strcmp(rule->kernel, pc_kernels[0].name) == 0;
}

/* Hands [from, to) of rule i to libc; to UINT64_MAX: its end. What is left of it above `to` begins there. */
static void cut(struct pc_table *table, size_t i, uint64_t from, uint64_t to)
{
	struct pc_rule rest[PC_RULES_MAX], libc = {.from = from}, above = table->rules[i];
	bool hole = from > above.from;
	size_t left = table->rule_count - i - 1, at = hole ? i + 1 : i, skipped;

	memcpy(rest, &table->rules[i + 1], left * sizeof(*rest));
	decide_name(&libc, 0);
	if (at == 0 || !is_plain_libc(&table->rules[at - 1]))
		table->rules[at++] = libc;
	if (to != UINT64_MAX) {
		above.from = to;
		above.low = hole ? 0 : above.low; /* a hole is no crossover */
		above.high = hole || above.high == 0 ? 0 : above.high > to ? above.high : to;
		table->rules[at++] = above;
	}
	skipped = to == UINT64_MAX && left > 0 && is_plain_libc(&rest[0]);
	memcpy(&table->rules[at], rest + skipped, (left - skipped) * sizeof(*rest));
	table->rule_count = at + left - skipped;
}

/* Hands the sizes at which the data forbid a rule's kernel, and above them those at which it was not measured any more,
 * to libc. How many octaves that were; infinite where there is no room for it. */
static double mend(struct pc_table *table, const struct grid *grid)
{
	double octaves = 0;

	for (size_t i = 0, end; i < grid->sizes; i = end) {
		const struct pc_rule *rule = pc_table_rule(table, grid->bytes[i]);
		size_t at = (size_t)(rule - table->rules);
		uint64_t next = at + 1 < table->rule_count ? rule[1].from : UINT64_MAX;
		bool first = i == 0 || grid->bytes[i - 1] < rule->from;

		end = i + 1;
		if (!forbids(grid, i, rule->kernel))
			continue;
		octaves += grid->width[i];
		for (; end < grid->sizes && grid->bytes[end] < next && !allows(grid, end, rule->kernel); end++)
			octaves += grid->width[end];
		if (table->rule_count + 2 > PC_RULES_MAX)
			return INFINITY;
		cut(table, at, first ? rule->from : grid->bytes[i],
		    end < grid->sizes && grid->bytes[end] < next ? grid->bytes[end] : UINT64_MAX);
	}
	return octaves;
}

/* Gains and ranges stay as well, old though they are: a table that differed in them alone would be written again. */
static void keep_rules(struct pc_table *table, const struct pc_table *old)
{
	memcpy(table->rules, old->rules, old->rule_count * sizeof(*table->rules));
	table->rule_count = old->rule_count;
}

enum decide_fate decide_keep(struct pc_table *table, const struct grid *grid, const unsigned *choice,
                             const struct pc_table *old, double doubt)
{
	unsigned before[GRID_SIZES];
	double mended;

	keep_rules(table, old);
	if (grid->sizes == 0)
		return DECIDE_KEPT;
	mended = mend(table, grid);
	choose_by(table, grid, before);
	if (mended > mended_most || old_loses(grid, before, choice, doubt))
		return DECIDE_LOST;
	return mended > 0 ? DECIDE_MENDED : DECIDE_KEPT;
}
