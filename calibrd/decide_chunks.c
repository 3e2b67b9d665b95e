/* Rules and what spot checks prove about chunks; see decide_parts.h and spot.h. */
#include <string.h>

#include "calibrd/decide_parts.h"
#include "calibrd/spot.h"

static unsigned kernel_of(const struct pc_rule *rule)
{
	const struct pc_kernel *kernel = pc_kernel_find(rule->kernel);

	return kernel != NULL ? pc_kernel_index(kernel) : 0;
}

static uint64_t end_of(const struct pc_table *table, size_t i)
{
	return i + 1 < table->rule_count ? table->rules[i + 1].from : UINT64_MAX;
}

/* What the old table has for that kernel at sizes of [from, to) that are checked; 0: whole. */
static uint64_t old_chunk(const struct pc_table *old, const char *kernel, uint64_t from, uint64_t to)
{
	for (uint64_t bytes = SPOT_FROM; old != NULL && bytes <= SPOT_TO; bytes *= 2) {
		const struct pc_rule *rule = pc_table_rule(old, bytes);

		if (bytes >= from && bytes < to && rule->chunk != 0 && strcmp(rule->kernel, kernel) == 0)
			return rule->chunk;
	}
	return 0;
}

static void fill_gain(struct pc_table *table, const struct grid *grid, size_t i)
{
	struct pc_rule *rule = &table->rules[i];
	double gain = decide_gain(grid, kernel_of(rule), rule->from, end_of(table, i));

	rule->gain = gain > 0 ? gain : rule->gain;
}

/* Cuts rule i in two: what is checked, with that chunk, and what is below, as it was. */
static void split(struct pc_table *table, const struct grid *grid, size_t i, uint64_t chunk)
{
	struct pc_rule *rule = &table->rules[i];

	memmove(rule + 1, rule, (table->rule_count++ - i) * sizeof(*rule));
	rule[1].from = SPOT_FROM;
	rule[1].low = rule[1].high = 0; /* a cut is no crossover */
	rule[1].chunk = chunk;
	fill_gain(table, grid, i);
	fill_gain(table, grid, i + 1);
}

/* The opposite, for rules that were cut and have lost what told them apart. */
static void join(struct pc_table *table, const struct grid *grid)
{
	for (size_t i = 1; i < table->rule_count;) {
		struct pc_rule *rule = &table->rules[i];

		if (rule->chunk != rule[-1].chunk || rule->high != 0 || strcmp(rule->kernel, rule[-1].kernel) != 0) {
			i++;
			continue;
		}
		memmove(rule, rule + 1, (--table->rule_count - i) * sizeof(*rule));
		fill_gain(table, grid, i - 1);
	}
}

int decide_chunks(struct pc_table *table, const struct grid *grid, const struct dataset *data,
                  const struct pc_table *old, bool *changed)
{
	for (size_t i = 0; i < table->rule_count; i++) {
		struct pc_rule *rule = &table->rules[i];
		struct spot_range range = {table->intent, table->prior, table->threads, rule->from, end_of(table, i)};
		uint64_t had = rule->chunk != 0 ? rule->chunk : old_chunk(old, rule->kernel, range.from, range.to);
		uint64_t chunk = 0;
		int r = spot_chunk(&chunk, data, &range, kernel_of(rule), had);

		if (r < 0)
			return r;
		if (chunk == rule->chunk)
			continue;
		*changed = true;
		if (chunk == 0 || rule->from >= SPOT_FROM)
			rule->chunk = chunk;
		else if (range.to > SPOT_FROM && table->rule_count < PC_RULES_MAX)
			split(table, grid, i++, chunk);
	}
	join(table, grid);
	return 0;
}
