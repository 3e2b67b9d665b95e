#include "calibctl/story.h"

#include <stdio.h>
#include <string.h>

#include "pageclear/policy.h"

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

/* --- one prior, all its numbers of threads ----------------------------------------------------------------------- */

static void add_threads(struct chapter *chapter, unsigned threads)
{
	size_t i = chapter->thread_count++;

	for (; i > 0 && chapter->threads[i - 1] > threads; i--)
		chapter->threads[i] = chapter->threads[i - 1];
	chapter->threads[i] = threads;
}

static void tell_table(struct story *story, size_t first, const struct pc_table *table)
{
	for (size_t i = first; i < story->count; i++)
		if (same_rules(story->chapters[i].table, table)) {
			add_threads(&story->chapters[i], table->threads);
			return;
		}
	story->chapters[story->count++] = (struct chapter){
		.table = table, .priors = 1u << table->prior, .thread_count = 1, .threads = {table->threads}};
}

/* --- priors that say the same ------------------------------------------------------------------------------------ */

static bool same_chapter(const struct chapter *a, const struct chapter *b)
{
	return same_rules(a->table, b->table) && a->thread_count == b->thread_count &&
	       memcmp(a->threads, b->threads, a->thread_count * sizeof(*a->threads)) == 0;
}

/* Moves chapters from `first` on into earlier ones that say the same, back to `intent`, where their intent begins. */
static void join_priors(struct story *story, size_t intent, size_t first)
{
	size_t kept = first;

	for (size_t i = first; i < story->count; i++) {
		size_t j = intent;

		while (j < first && !same_chapter(&story->chapters[j], &story->chapters[i]))
			j++;
		if (j < first)
			story->chapters[j].priors |= story->chapters[i].priors;
		else
			story->chapters[kept++] = story->chapters[i];
	}
	story->count = kept;
}

void story_tell(struct story *out, const struct pc_document *document)
{
	static const enum pc_prior order[] = {PC_CACHED, PC_FLUSHED, PC_UNKNOWN};

	memset(out, 0, sizeof(*out));
	for (unsigned intent = PAGECLEAR_HOT; intent <= PAGECLEAR_SCRUB; intent++) {
		size_t begin = out->count;

		for (unsigned p = 0; p < PC_PRIORS; p++) {
			size_t first = out->count;

			for (size_t i = 0; i < document->table_count; i++) {
				const struct pc_table *table = &document->tables[i];

				if (table->intent == intent && table->prior == order[p])
					tell_table(out, first, table);
				if (table->threads != document->tables[0].threads)
					out->tells_threads = true;
			}
			join_priors(out, begin, first);
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

void story_heading(const struct story *story, const struct chapter *chapter, char out[STORY_HEADING])
{
	out[0] = '\0';
	append(out, pc_intent_name(chapter->table->intent));
	if (chapter->table->intent != PAGECLEAR_SCRUB)
		append_priors(out, chapter->priors);
	for (size_t i = 0; story->tells_threads && i < chapter->thread_count; i++) {
		char number[24];

		snprintf(number, sizeof(number), "%s%u", i == 0 ? ", " : " or ", chapter->threads[i]);
		append(out, number);
	}
	if (story->tells_threads)
		append(out, chapter->thread_count == 1 && chapter->threads[0] == 1 ? " thread" : " threads");
}
