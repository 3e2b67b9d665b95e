/* Ranges at which two policies choose otherwise; see diff_rules.h. Pure. */
#include "calibctl/diff_rules.h"

#include <stdio.h>
#include <string.h>

#include "calibctl/rule.h"
#include "calibctl/words.h"
#include "pageclear/policy.h"

enum { CHOICE = 80 };

/* What the library does where a policy has nothing to say. */
static struct pc_rule libc_rule = {.kernel = "libc"};
static const struct pc_table libc_table = {.threads = 1, .rule_count = 1, .rules = &libc_rule};

/* --- ranges ------------------------------------------------------------------------------------------------------ */

bool diff_same_choice(const struct pc_rule *a, const struct pc_rule *b)
{
	return strcmp(a->kernel, b->kernel) == 0 && a->chunk == b->chunk && a->pinned == b->pinned;
}

static bool same_order(const struct pc_table *a, const struct pc_table *b)
{
	if (a->rule_count != b->rule_count)
		return false;
	for (size_t i = 0; i < a->rule_count; i++)
		if (!diff_same_choice(&a->rules[i], &b->rules[i]))
			return false;
	return true;
}

/* Neighbours that differ in the same way are one range. */
static void add_range(struct diff_table *out, const struct diff_range *range)
{
	struct diff_range *last = out->range_count > 0 ? &out->ranges[out->range_count - 1] : NULL;

	if (last != NULL && last->to == range->from && diff_same_choice(last->a, range->a) &&
	    diff_same_choice(last->b, range->b))
		last->to = range->to;
	else
		out->ranges[out->range_count++] = *range;
}

void diff_ranges(struct diff_table *out)
{
	const struct pc_table *a = out->a, *b = out->b;
	uint64_t from = 0;

	out->range_count = 0;
	out->moved = same_order(a, b);
	for (size_t i = 0, j = 0; i < a->rule_count && j < b->rule_count;) {
		uint64_t end_a = rule_to(a, i), end_b = rule_to(b, j), to = end_a < end_b ? end_a : end_b;
		struct diff_range range = {from, to, &a->rules[i], &b->rules[j]};

		if (!diff_same_choice(range.a, range.b))
			add_range(out, &range);
		if (to == UINT64_MAX)
			break;
		i += to == end_a;
		j += to == end_b;
		from = to;
	}
}

/* --- tables ------------------------------------------------------------------------------------------------------ */

static bool is_question(const struct diff_table *one, const struct pc_table *table)
{
	return one->intent == table->intent && one->prior == table->prior && one->threads == table->threads;
}

/* Sorted in by intent, then cached, flushed, unknown, then threads. */
static bool comes_before(const struct diff_table *one, const struct pc_table *table)
{
	static const unsigned place[PC_PRIORS] = {[PC_CACHED] = 0, [PC_FLUSHED] = 1, [PC_UNKNOWN] = 2};

	if (one->intent != table->intent)
		return one->intent < table->intent;
	if (one->prior != table->prior)
		return place[one->prior] < place[table->prior];
	return one->threads < table->threads;
}

static size_t add_questions(struct diff_table *out, size_t count, const struct pc_document *document)
{
	for (size_t i = 0; i < document->table_count; i++) {
		const struct pc_table *table = &document->tables[i];
		size_t at = 0;

		while (at < count && comes_before(&out[at], table))
			at++;
		if (at < count && is_question(&out[at], table))
			continue;
		memmove(out + at + 1, out + at, (count - at) * sizeof(*out));
		out[at] =
			(struct diff_table){.intent = table->intent, .prior = table->prior, .threads = table->threads};
		count++;
	}
	return count;
}

static const struct pc_table *table_of(const struct pc_document *document, const struct diff_table *question, bool *own)
{
	const struct pc_table *table =
		pc_document_table(document, question->intent, question->prior, question->threads);

	*own = table != NULL && table->threads == question->threads;
	return table != NULL ? table : &libc_table;
}

size_t diff_tables(struct diff_table *out, const struct pc_document *a, const struct pc_document *b)
{
	size_t count = add_questions(out, add_questions(out, 0, a), b);

	for (size_t i = 0; i < count; i++) {
		out[i].a = table_of(a, &out[i], &out[i].in_a);
		out[i].b = table_of(b, &out[i], &out[i].in_b);
		diff_ranges(&out[i]);
	}
	return count;
}

/* --- words ------------------------------------------------------------------------------------------------------- */

static bool has_moved(const struct diff_table *table, size_t rule)
{
	return table->a->rules[rule].from != table->b->rules[rule].from;
}

size_t diff_change_count(const struct diff_table *table)
{
	size_t count = 0;

	if (!table->moved)
		return table->range_count;
	for (size_t i = 0; i < table->a->rule_count; i++)
		count += has_moved(table, i);
	return count;
}

static void choice_words(const struct pc_rule *rule, char out[CHOICE])
{
	char chunk[WORDS_SHORT];

	words_size(rule->chunk, chunk);
	snprintf(out, CHOICE, "%s%s%s%s", rule->kernel, rule->chunk > 0 ? " in pieces of " : "",
	         rule->chunk > 0 ? chunk : "", rule->pinned ? " (pinned)" : "");
}

static void moved_words(const struct diff_table *table, size_t change, char out[DIFF_CHANGE])
{
	char from[WORDS_SHORT], to[WORDS_SHORT], choice[CHOICE];
	size_t rule = 0;

	for (; rule < table->a->rule_count; rule++)
		if (has_moved(table, rule) && change-- == 0)
			break;
	words_size(table->a->rules[rule].from, from);
	words_size(table->b->rules[rule].from, to);
	choice_words(&table->a->rules[rule], choice);
	snprintf(out, DIFF_CHANGE, "%s from %s -> %s", choice, from, to);
}

void diff_change(const struct diff_table *table, size_t change, char out[DIFF_CHANGE])
{
	const struct diff_range *range = &table->ranges[change];
	char from[WORDS_SHORT], to[WORDS_SHORT] = "no limit", a[CHOICE], b[CHOICE];

	if (table->moved) {
		moved_words(table, change, out);
		return;
	}
	words_size(range->from, from);
	if (range->to != UINT64_MAX)
		words_size(range->to, to);
	choice_words(range->a, a);
	choice_words(range->b, b);
	if (range->from == 0 && range->to == UINT64_MAX)
		snprintf(out, DIFF_CHANGE, "all sizes: %s -> %s", a, b);
	else
		snprintf(out, DIFF_CHANGE, "%s - %s: %s -> %s", from, to, a, b);
}

void diff_knee_words(const struct pc_document *document, char out[DIFF_CHANGE])
{
	char size[WORDS_SHORT];

	words_size(document->knee_bytes, size);
	snprintf(out, DIFF_CHANGE, "%s", document->knee_bytes > 0 ? size : "not known");
}

void diff_probe_words(const struct pc_document *document, char out[DIFF_CHANGE])
{
	char from[WORDS_SHORT];

	words_size(document->probe.from, from);
	if (document->probe.from == 0)
		snprintf(out, DIFF_CHANGE, "none");
	else
		snprintf(out, DIFF_CHANGE, "from %s on, %u loads, %g ns", from, document->probe.lines,
		         document->probe.slow_ns);
}

void diff_instead(const struct diff_table *table, char out[DIFF_CHANGE])
{
	const struct pc_table *other = table->in_a ? table->b : table->a;

	if (other == &libc_table)
		snprintf(out, DIFF_CHANGE, "libc");
	else
		snprintf(out, DIFF_CHANGE, "that for %u thread%s", other->threads, other->threads == 1 ? "" : "s");
}

void diff_heading(const struct diff_table *table, char out[DIFF_CHANGE])
{
	bool scrub = table->intent == PAGECLEAR_SCRUB;
	char threads[32] = "";

	if (table->threads != 1)
		snprintf(threads, sizeof(threads), ", %u threads", table->threads);
	snprintf(out, DIFF_CHANGE, "%s%s%s%s%s", pc_intent_name(table->intent), scrub ? "" : ", ",
	         scrub ? "" : pc_prior_name(table->prior), !scrub && table->prior == PC_UNKNOWN ? " prior" : "",
	         threads);
}
