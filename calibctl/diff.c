/*
 * diff: which rules differ between two policies, and whether it matters in cost. Here: the question and the facts.
 */
#include "calibctl/diff.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "calibctl/args.h"
#include "calibctl/ledger.h"
#include "calibctl/output.h"
#include "calibctl/words.h"

/* What the command line names, and where it is looked for. */
struct question {
	const struct calibctl *ctl;
	const struct args *args;
	struct where where;
	struct store *store; /* NULL: no database */
	int opened;          /* as ledger_open(), with reason */
	struct pc_why reason;
};

/* --- the two sides ----------------------------------------------------------------------------------------------- */

/* Each returns 0; 1 with why: the command line names no such generation; or -errno with why. */

static bool is_number(const char *text)
{
	return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

static int from_database(struct diff_side *side, const struct question *question, uint64_t generation,
                         struct pc_why *why)
{
	struct published row = {0};
	struct pc_why reason;

	if (question->store == NULL)
		return pc_why(why, -ENOENT, "%s", question->reason.text);
	int r = store_generation(question->store, generation, &row, &reason);
	if (r == 1)
		return ledger_lacks(question->store, &question->where, generation, why);
	if (r == 0)
		r = pc_document_parse(&side->document, row.yaml, strlen(row.yaml), &reason);
	side->generation = generation;
	free(row.yaml);
	return r < 0 ? ledger_why(r, &question->where, &reason, why) : 0;
}

static int from_file(struct diff_side *side, const char *path, struct pc_why *why)
{
	struct pc_why reason;
	int r = pc_document_read(&side->document, path, &reason);

	side->path = path;
	if (r < 0)
		return pc_why(why, r, "%s: %s", path, reason.text);
	side->generation = side->document->generation;
	return 0;
}

static int named(struct diff_side *side, const struct question *question, const char *word, struct pc_why *why)
{
	if (!is_number(word))
		return from_file(side, word, why);
	errno = 0;
	uint64_t generation = strtoull(word, NULL, 10);
	if (errno != 0 || generation > INT64_MAX)
		return pc_why(why, 1, "%s is no generation's number: `calibctl history` lists them", word);
	return from_database(side, question, generation, why);
}

static int in_force(struct diff_side *side, const struct question *question, struct pc_why *why)
{
	const struct where *where = &question->where;

	side->in_force = true;
	if (where_is_off(where))
		return pc_why(why, -ENOENT, "no policy is in force: $PAGECLEAR_POLICY is `builtin`");
	if (where->policy_source == WHERE_NOWHERE)
		return pc_why(why, -ENOENT, "no policy is in force: none in /run/pageclear or /etc/pageclear");
	return from_file(side, where->policy, why);
}

/* The newest publication below a generation. */
static int before(struct diff_side *side, const struct question *question, uint64_t generation, struct pc_why *why)
{
	struct published *list = NULL;
	struct pc_why reason;
	size_t count = 0, i = 0;

	if (question->store == NULL)
		return pc_why(why, -ENOENT, "%s: name both policies", question->reason.text);
	int r = store_publications(question->store, SIZE_MAX, &list, &count, &reason);
	if (r < 0)
		return ledger_why(r, &question->where, &reason, why);
	while (i < count && list[i].generation >= generation)
		i++;
	r = i < count ? from_database(side, question, list[i].generation, why)
	              : pc_why(why, -ENOENT, "nothing was published before generation %" PRIu64 ": name the other one",
	                       generation);
	free(list);
	return r;
}

static int find_sides(struct diff *diff, const struct question *question, const struct arg_words *words,
                      struct pc_why *why)
{
	int r = words->word[1] != NULL ? named(&diff->b, question, words->word[1], why)
	                               : in_force(&diff->b, question, why);

	if (r != 0)
		return r;
	return words->word[0] != NULL ? named(&diff->a, question, words->word[0], why)
	                              : before(&diff->a, question, diff->b.generation, why);
}

/* --- comparing --------------------------------------------------------------------------------------------------- */

/* On the newest measurements of B's topology, else of A's. */
static int load_measured(struct diff *diff, const struct question *question, struct dataset *data)
{
	const char *topology = diff->b.document->topology;
	struct pc_why reason;
	int r = store_latest(question->store, topology, &diff->calibration, &reason);

	if (r == 1 && strcmp(diff->a.document->topology, topology) != 0)
		r = store_latest(question->store, diff->a.document->topology, &diff->calibration, &reason);
	if (r == 1)
		pc_why_say(&reason, "no finished calibration of topology %s", topology);
	if (r == 0) {
		r = store_series(question->store, diff->calibration.id, data, &reason);
		if (r < 0)
			store_calibration_free(&diff->calibration);
	}
	return r != 0 ? ledger_why(r, &question->where, &reason, &diff->reason) : 0;
}

static void weigh(struct diff *diff, const struct question *question)
{
	struct dataset data = {0};

	diff->measured = question->opened;
	diff->reason = question->reason;
	if (question->store == NULL)
		return;
	diff->measured = load_measured(diff, question, &data);
	for (size_t i = 0; i < diff->count && diff->measured == 0; i++)
		if (diff->tables[i].range_count > 0 && diff_cost(&diff->costs[i], &data, &diff->tables[i]) < 0) {
			diff->measured = pc_why(&diff->reason, -ENOMEM, "out of memory");
			store_calibration_free(&diff->calibration);
		}
	dataset_clear(&data);
}

bool diff_same_header(const struct pc_document *a, const struct pc_document *b)
{
	return strcmp(a->topology, b->topology) == 0 && strcmp(a->quality, b->quality) == 0 && diff_same_knee(a, b) &&
	       diff_same_probe(a, b);
}

bool diff_same_knee(const struct pc_document *a, const struct pc_document *b)
{
	char left[DIFF_CHANGE], right[DIFF_CHANGE];

	diff_knee_words(a, left);
	diff_knee_words(b, right);
	return strcmp(left, right) == 0;
}

bool diff_same_probe(const struct pc_document *a, const struct pc_document *b)
{
	char left[DIFF_CHANGE], right[DIFF_CHANGE];

	diff_probe_words(a, left);
	diff_probe_words(b, right);
	return strcmp(left, right) == 0;
}

bool diff_table_differs(const struct diff_table *table)
{
	return table->range_count > 0 || table->in_a != table->in_b;
}

bool diff_same(const struct diff *diff)
{
	bool same = diff_same_header(diff->a.document, diff->b.document);

	for (size_t i = 0; i < diff->count; i++)
		same = same && !diff_table_differs(&diff->tables[i]);
	return same;
}

bool diff_decided_from(const struct diff_side *side, const struct calibration *calibration)
{
	int64_t written;

	return words_parse_time(side->document->written, &written) == 0 && written == calibration->finished;
}

/* ----------------------------------------------------------------------------------------------------------------- */

static enum outcome tell(const struct diff *diff, const struct calibctl *ctl, bool exit_code)
{
	enum outcome outcome = exit_code && !diff_same(diff) ? PROBLEM : DONE;

	if (diff->measured < 0)
		outcome = output_failed(&diff->reason);
	if (ctl->json)
		return output_json(diff_json(diff), outcome);
	diff_print(diff);
	return outcome;
}

static enum outcome compare(struct diff *diff, const struct question *question, const struct arg_words *words,
                            bool exit_code)
{
	struct pc_why why;
	int r = find_sides(diff, question, words, &why);

	if (r != 0)
		return r < 0 ? output_failed(&why) : args_misused(question->args, "%s", why.text);
	diff->count = diff_tables(diff->tables, diff->a.document, diff->b.document);
	weigh(diff, question);
	enum outcome outcome = tell(diff, question->ctl, exit_code);
	if (diff->measured == 0)
		store_calibration_free(&diff->calibration);
	return outcome;
}

enum outcome verb_diff(struct calibctl *ctl, struct args *args)
{
	static struct diff diff;
	static struct question question;
	bool exit_code = false;
	const struct arg_option options[] = {{"--exit-code", NULL, &exit_code}, {0}};
	struct arg_words words = {.most = 2, .names = "[A [B]]"};

	if (args_parse(args, ctl, options, &words) != DONE)
		return USAGE;
	question.ctl = ctl;
	question.args = args;
	where_here(&question.where, ctl);
	question.opened = ledger_open(&question.store, &question.where, &question.reason);
	enum outcome outcome = compare(&diff, &question, &words, exit_code);
	store_close(question.store);
	pc_document_free(diff.a.document);
	pc_document_free(diff.b.document);
	return outcome;
}
