#include "calibctl/story.h"

#include <stdio.h>
#include <string.h>

#include "calibctl/diff_rules.h"
#include "calibctl/words.h"
#include "pageclear/policy.h"

enum { STORY_WIDTH = 92 };

static bool same_rule(const struct pc_rule *a, const struct pc_rule *b)
{
	return a->from == b->from && a->low == b->low && a->high == b->high && a->chunk == b->chunk &&
	       a->gain == b->gain && a->pinned == b->pinned && strcmp(a->kernel, b->kernel) == 0;
}

static bool same_rules(const struct pc_table *a, const struct pc_table *b)
{
	if (a->intent != b->intent || a->rule_count != b->rule_count)
		return false;
	for (size_t i = 0; i < a->rule_count; i++)
		if (!same_rule(&a->rules[i], &b->rules[i]))
			return false;
	return true;
}

/* Choices alone: where each kernel holds, and how it goes about it. */
static bool same_choices(const struct pc_table *a, const struct pc_table *b)
{
	struct diff_table difference = {.a = a, .b = b};

	diff_ranges(&difference);
	return difference.range_count == 0;
}

/* --- one prior, all its numbers of threads ----------------------------------------------------------------------- */

/* The chapter's table is the one for the fewest threads. */
static void add_table(struct chapter *chapter, const struct pc_table *table)
{
	size_t i = chapter->other_count;

	if (chapter->table == NULL) {
		chapter->table = table;
		return;
	}
	if (table->threads < chapter->table->threads) {
		const struct pc_table *fewest = table;

		table = chapter->table;
		chapter->table = fewest;
	}
	for (; i > 0 && chapter->others[i - 1]->threads > table->threads; i--)
		chapter->others[i] = chapter->others[i - 1];
	chapter->others[i] = table;
	chapter->other_count++;
}

/* --- priors that say the same ------------------------------------------------------------------------------------ */

static bool same_chapter(const struct chapter *a, const struct chapter *b)
{
	if (!same_rules(a->table, b->table) || a->table->threads != b->table->threads ||
	    a->other_count != b->other_count)
		return false;
	for (size_t i = 0; i < a->other_count; i++)
		if (a->others[i]->threads != b->others[i]->threads || !same_choices(a->others[i], b->others[i]))
			return false;
	return true;
}

/* Into an earlier chapter of the same intent, which begins at `intent`, if that says the same. */
static void join(struct story *story, size_t intent, const struct chapter *chapter)
{
	for (size_t i = intent; i < story->count; i++)
		if (same_chapter(&story->chapters[i], chapter)) {
			story->chapters[i].priors |= chapter->priors;
			return;
		}
	story->chapters[story->count++] = *chapter;
}

void story_tell(struct story *out, const struct pc_document *document)
{
	static const enum pc_prior order[] = {PC_CACHED, PC_FLUSHED, PC_UNKNOWN};

	memset(out, 0, sizeof(*out));
	for (unsigned intent = PAGECLEAR_HOT; intent <= PAGECLEAR_SCRUB; intent++) {
		size_t begin = out->count;

		for (unsigned p = 0; p < PC_PRIORS; p++) {
			struct chapter chapter = {.priors = 1u << order[p]};

			for (size_t i = 0; i < document->table_count; i++)
				if (document->tables[i].intent == intent && document->tables[i].prior == order[p])
					add_table(&chapter, &document->tables[i]);
			if (chapter.table != NULL)
				join(out, begin, &chapter);
		}
	}
}

/* --- headings ---------------------------------------------------------------------------------------------------- */

static void append(char out[STORY_HEADING], const char *text)
{
	size_t used = strlen(out);

	snprintf(out + used, STORY_HEADING - used, "%s", text);
}

static void append_priors(char out[STORY_HEADING], unsigned priors)
{
	const char *separator = ", ";

	if (priors == (1u << PC_PRIORS) - 1) {
		append(out, ", any prior");
		return;
	}
	for (unsigned p = PC_CACHED; p < PC_PRIORS; p++)
		if (priors >> p & 1) {
			append(out, separator);
			append(out, pc_prior_name((enum pc_prior)p));
			separator = " or ";
		}
	if (priors & 1u << PC_UNKNOWN) {
		append(out, separator);
		append(out, "unknown prior");
	}
}

void story_heading(const struct chapter *chapter, char out[STORY_HEADING])
{
	char threads[32];

	out[0] = '\0';
	append(out, pc_intent_name(chapter->table->intent));
	if (chapter->table->intent != PAGECLEAR_SCRUB)
		append_priors(out, chapter->priors);
	snprintf(threads, sizeof(threads), ", %u threads", chapter->table->threads);
	if (chapter->table->threads != 1)
		append(out, threads);
}

/* --- more threads ------------------------------------------------------------------------------------------------ */

/* Onto the last line, or onto a new one, indented, where that would get too long. */
static void add_words(char out[STORY_THREADS], const char *separator, const char *words)
{
	size_t used = strlen(out);
	const char *line = strrchr(out, '\n');
	size_t length = line != NULL ? strlen(line + 1) : used;

	if (length > 0 && length + strlen(separator) + strlen(words) > STORY_WIDTH)
		snprintf(out + used, STORY_THREADS - used, "%s\n    %s", separator[0] == ' ' ? "" : ",", words);
	else
		snprintf(out + used, STORY_THREADS - used, "%s%s", separator, words);
}

static void add_range(char out[STORY_THREADS], const char *separator, const struct diff_range *range)
{
	char words[160], from[WORDS_SHORT], to[WORDS_SHORT], chunk[WORDS_SHORT];
	bool whole = range->b->chunk == 0;

	words_size(range->from, from);
	words_size(range->to, to);
	words_size(range->b->chunk, chunk);
	snprintf(words, sizeof(words), "%s%s%s %s %s%s%s", range->b->kernel, whole ? "" : " in pieces of ",
	         whole ? "" : chunk, range->to == UINT64_MAX ? "from" : "for", from,
	         range->to == UINT64_MAX ? " on" : " - ", range->to == UINT64_MAX ? "" : to);
	add_words(out, separator, words);
}

/* Neighbours with the same choice are told as one, whatever the fewest threads choose there. */
static void add_ranges(char out[STORY_THREADS], const struct diff_table *difference)
{
	for (size_t i = 0, next; i < difference->range_count; i = next) {
		struct diff_range range = difference->ranges[i];

		for (next = i + 1; next < difference->range_count && difference->ranges[next].from == range.to &&
		                   diff_same_choice(difference->ranges[next].b, range.b);
		     next++)
			range.to = difference->ranges[next].to;
		add_range(out, i == 0 ? " " : ", ", &range);
	}
}

static void end_line(char out[STORY_THREADS])
{
	size_t used = strlen(out);

	snprintf(out + used, STORY_THREADS - used, "\n");
}

static void add_same(const struct chapter *chapter, char out[STORY_THREADS])
{
	size_t count = 0;
	char words[48];

	for (size_t i = 0; i < chapter->other_count; i++) {
		if (!same_choices(chapter->table, chapter->others[i]))
			continue;
		snprintf(words, sizeof(words), "%s%u", count++ == 0 ? "the same with " : "or ",
		         chapter->others[i]->threads);
		add_words(out, count == 1 ? "" : " ", words);
	}
	if (count == 0)
		return;
	add_words(out, " ", "threads");
	end_line(out);
}

static void add_other(const struct pc_table *fewest, const struct pc_table *other, char out[STORY_THREADS])
{
	struct diff_table difference = {.a = fewest, .b = other};
	char words[96];

	diff_ranges(&difference);
	if (difference.range_count == 0)
		return;
	if (other->rule_count == 1 && other->rules[0].chunk == 0) {
		snprintf(words, sizeof(words), "with %u threads: %s for all sizes", other->threads,
		         other->rules[0].kernel);
		add_words(out, "", words);
	} else {
		snprintf(words, sizeof(words), "with %u threads otherwise:", other->threads);
		add_words(out, "", words);
		add_ranges(out, &difference);
	}
	end_line(out);
}

void story_threads(const struct chapter *chapter, char out[STORY_THREADS])
{
	out[0] = '\0';
	add_same(chapter, out);
	for (size_t i = 0; i < chapter->other_count; i++)
		add_other(chapter->table, chapter->others[i], out);
}
