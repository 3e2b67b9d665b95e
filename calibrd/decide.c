/* Tables, pins and numbers of threads; see decide.h and design section 7. */
#include "calibrd/decide.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "calibrd/decide_parts.h"
#include "calibrd/pins.h"
#include "calibrd/solve.h"
#include "calibrd/spot.h"
#include "pageclear/policy.h"

enum {
	THREADS_MOST = PC_TABLES_MAX / DECIDE_QUESTIONS,
	/* What tables take in policy.yaml at most, and what is left for them in 16 KiB. */
	TABLE_BYTES = 80,
	RULE_BYTES = 110,
	POLICY_BYTES = 15 * 1024,
};

/* --- tables ------------------------------------------------------------------------------------------------------ */

/* True if each rule's kernel was measured (or lies between sizes where it was) somewhere in the rule's range, where the
 * grid reaches it at all. */
static bool is_covered(const struct pc_table *table, const struct grid *grid)
{
	for (size_t i = 0; i < table->rule_count; i++) {
		const struct pc_rule *rule = &table->rules[i];
		uint64_t to = i + 1 < table->rule_count ? rule[1].from : UINT64_MAX;
		unsigned kernel = pc_kernel_index(pc_kernel_find(rule->kernel));
		size_t sizes = 0, measured = 0;

		for (size_t s = 0; s < grid->sizes; s++) {
			if (grid->bytes[s] < rule->from || grid->bytes[s] >= to)
				continue;
			sizes++;
			measured += grid_cell(grid, s, kernel)->measured ? 1 : 0;
		}
		if (sizes > 0 && measured == 0)
			return false;
	}
	return true;
}

/* The rules of one thread for several, unless those measured together say otherwise: true. Their gains are the grid's.
 */
static bool take_over(struct pc_table *table, const struct grid *grid, const unsigned *choice,
                      const struct pc_table *alone)
{
	if (grid->sizes == 0 || !is_covered(alone, grid) ||
	    decide_keep(table, grid, choice, alone, DECIDE_DOUBT_ALONE) == DECIDE_LOST)
		return false;
	for (size_t i = 0; i < table->rule_count; i++) {
		struct pc_rule *rule = &table->rules[i];
		uint64_t to = i + 1 < table->rule_count ? rule[1].from : UINT64_MAX;

		rule->chunk = 0; /* checked for one thread alone, as its crossovers' ranges are its own */
		rule->low = rule->high = 0;
		rule->gain = decide_gain(grid, pc_kernel_index(pc_kernel_find(rule->kernel)), rule->from, to);
	}
	return true;
}

/* The old rules, those of one thread alone (NULL: for that one), or those of the grid: true for the old ones,
 * untouched. What was not measured this time (no sizes) condemns nothing. */
static bool fill_rules(struct pc_table *table, struct grid *grid, const struct pc_table *old,
                       const struct pc_table *alone)
{
	unsigned choice[GRID_SIZES];
	enum decide_fate fate;

	if (grid->sizes > 0) {
		solve_proven(grid, choice);
		decide_cautiously(grid, choice);
	}
	fate = old != NULL ? decide_keep(table, grid, choice, old, grid->many ? DECIDE_DOUBT_MANY : DECIDE_DOUBT_OLD)
	                   : DECIDE_LOST;
	if (fate == DECIDE_LOST && (alone == NULL || !take_over(table, grid, choice, alone)))
		table->rule_count = decide_rules(grid, choice, table->rules);
	return fate == DECIDE_KEPT;
}

/* The table of that question for one thread; NULL: it is this one, or there is none. */
static const struct pc_table *alone_table(const struct decision *decision, const struct pc_table *question)
{
	for (size_t i = 0; question->threads > 1 && i < decision->table_count; i++) {
		const struct pc_table *table = &decision->tables[i];

		if (table->threads == 1 && table->intent == question->intent && table->prior == question->prior)
			return table;
	}
	return NULL;
}

const struct pc_rule *decide_against(const struct pc_table *table, const struct grid *grid)
{
	for (size_t i = 0; i < grid->sizes; i++) {
		const struct pc_rule *rule = pc_table_rule(table, grid->bytes[i]);
		const struct pc_kernel *kernel = pc_kernel_find(rule->kernel);

		if (!rule->pinned && kernel != NULL && grid_cell(grid, i, pc_kernel_index(kernel))->forbidden)
			return rule;
	}
	return NULL;
}

/* Nothing above lets such a rule through; were there a way, a host had better not run it. */
static bool refuse_losses(struct pc_table *table, const struct grid *grid)
{
	if (decide_against(table, grid) == NULL)
		return false;
	table->rules[0] = (struct pc_rule){.from = 0};
	decide_name(&table->rules[0], 0);
	table->rule_count = 1;
	return true;
}

/* One question's table: none where nothing was measured and there is no old one. */
static int add_table(const struct decide_input *input, struct pc_table question, struct grid *grid,
                     struct decision *out)
{
	size_t at = out->table_count;
	struct pc_table *table = &out->tables[at];
	const struct pc_table *old = decide_old_table(input, question.intent, question.prior, question.threads);
	bool changed = false;
	int r;

	if (grid->sizes == 0 && old == NULL)
		return 0;
	*table = question;
	table->rules = calloc(PC_RULES_MAX, sizeof(*table->rules));
	if (table->rules == NULL)
		return -ENOMEM;
	out->table_count++;
	out->kept[at] = fill_rules(table, grid, old, alone_table(out, &question));
	out->refused[at] = refuse_losses(table, grid);
	r = decide_chunks(table, grid, input->data, old, &changed);
	out->kept[at] = out->kept[at] && !out->refused[at] && !changed;
	return r;
}

const struct decide_question decide_questions[DECIDE_QUESTIONS] = {
	{PAGECLEAR_HOT, PC_CACHED},    {PAGECLEAR_HOT, PC_FLUSHED},  {PAGECLEAR_HOT, PC_UNKNOWN},
	{PAGECLEAR_COLD, PC_CACHED},   {PAGECLEAR_COLD, PC_FLUSHED}, {PAGECLEAR_COLD, PC_UNKNOWN},
	{PAGECLEAR_SCRUB, PC_UNKNOWN},
};

static int answer(const struct decide_input *input, unsigned threads, struct decision *out)
{
	int r = 0;

	for (size_t i = 0; i < DECIDE_QUESTIONS && r == 0; i++) {
		struct pc_table question = {
			.intent = decide_questions[i].intent, .prior = decide_questions[i].prior, .threads = threads};
		struct grid grid = {0};

		r = grid_build(&grid, input->data, question.intent, question.prior, threads, input->kernels,
		               input->scrub_weight);
		if (r >= 0) { /* 1: nothing measured, a grid without sizes */
			grid.many = input->calibrations >= DECIDE_MANY;
			spot_forbid(&grid, input->data);
			r = add_table(input, question, &grid, out);
		}
		grid_free(&grid);
	}
	return r;
}

/* --- numbers of threads ------------------------------------------------------------------------------------------ */

struct thread_counts {
	size_t count;
	unsigned at[THREADS_MOST]; /* ascending, 1 first */
};

/* Inserts in ascending order what is not there yet; of too many the largest go. */
static void add_threads(struct thread_counts *counts, unsigned threads)
{
	size_t at = 0;

	while (at < counts->count && counts->at[at] < threads)
		at++;
	if (threads == 0 || at == THREADS_MOST || (at < counts->count && counts->at[at] == threads))
		return;
	if (counts->count == THREADS_MOST)
		counts->count--;
	memmove(counts->at + at + 1, counts->at + at, (counts->count - at) * sizeof(counts->at[0]));
	counts->at[at] = threads;
	counts->count++;
}

static struct thread_counts find_threads(const struct decide_input *input)
{
	struct thread_counts counts = {.count = 1, .at = {1}};

	for (size_t i = 0; i < input->data->count; i++)
		if (input->data->series[i].count > 0)
			add_threads(&counts, input->data->series[i].key.threads);
	if (counts.count > 1 || input->old == NULL)
		return counts;
	for (size_t i = 0; i < input->old->table_count; i++)
		add_threads(&counts, input->old->tables[i].threads);
	return counts;
}

static bool has_room(const struct decision *decision)
{
	size_t rules = 0;

	for (size_t i = 0; i < decision->table_count; i++)
		rules += decision->tables[i].rule_count;
	return decision->table_count * TABLE_BYTES + rules * RULE_BYTES <= POLICY_BYTES;
}

/* Drops the tables of the most threads until the rest has room, but never those of one. */
static void leave_room(struct decision *decision)
{
	while (decision->table_count > 0 && !has_room(decision)) {
		unsigned most = decision->tables[decision->table_count - 1].threads;

		if (most == 1)
			return;
		while (decision->table_count > 0 && decision->tables[decision->table_count - 1].threads == most)
			free(decision->tables[--decision->table_count].rules);
	}
}

int decide(const struct decide_input *input, struct decision *out)
{
	struct decision *decision = calloc(1, sizeof(*decision));
	struct thread_counts counts = find_threads(input);
	int r = decision != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; i < counts.count && r == 0; i++)
		r = answer(input, counts.at[i], decision);
	/* Last, when what several threads take over from one is decided. */
	for (size_t i = 0; r == 0 && i < decision->table_count; i++)
		r = pins_apply(&decision->tables[i], input->pins, input->pin_count);
	if (r == 0)
		leave_room(decision);
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
