/*
 * explain: which rule holds for a size, and what was measured there. Here: the question and the facts.
 */
#include "calibctl/explain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "calibctl/args.h"
#include "calibctl/ledger.h"
#include "calibctl/output.h"
#include "calibctl/words.h"
#include "calibrd/sizes.h"
#include "pageclear/policy.h"

enum { THREADS_MAX = 65535 };

/* --- the question ------------------------------------------------------------------------------------------------ */

static enum outcome parse_size(struct args *args, const char *text, uint64_t *bytes)
{
	int r = size_parse(text, bytes);

	if (r == -ERANGE)
		return args_misused(args, "SIZE '%s' is more than 64 bits hold", text);
	return r < 0 ? args_misused(args, "SIZE '%s' is no size: 4096, 4K and 1.5MiB are", text) : DONE;
}

static enum outcome parse_threads(struct args *args, const char *text, unsigned *threads)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (text[strspn(text, "0123456789")] != '\0' || errno != 0 || value < 1 || value > THREADS_MAX)
		return args_misused(args, "--threads '%s' is no number from 1 to %d", text, THREADS_MAX);
	*threads = (unsigned)value;
	return DONE;
}

static enum outcome parse_words(struct args *args, const char *intent_word, const char *prior_word,
                                struct evidence_query *query)
{
	int intent = intent_word == NULL ? (int)PAGECLEAR_HOT : words_intent(intent_word);
	int prior = prior_word == NULL ? (int)PC_UNKNOWN : words_prior(prior_word);

	if (intent < 0)
		return args_misused(args, "INTENT '%s' is none of hot, cold, scrub", intent_word);
	if (prior < 0)
		return args_misused(args, "--prior '%s' is none of cached, flushed, unknown", prior_word);
	if (intent == PAGECLEAR_SCRUB && prior != PC_UNKNOWN)
		return args_misused(args, "--prior: scrub takes no hint");
	query->intent = (unsigned)intent;
	query->prior = (enum pc_prior)prior;
	return DONE;
}

static enum outcome parse(struct args *args, struct calibctl *ctl, struct evidence_query *query)
{
	const char *prior = NULL, *threads = "1";
	const struct arg_option options[] = {{"--prior", &prior, NULL}, {"--threads", &threads, NULL}, {0}};
	struct arg_words words = {.least = 1, .most = 2, .names = "SIZE [INTENT]"};
	enum outcome outcome = args_parse(args, ctl, options, &words);

	if (outcome == DONE)
		outcome = parse_size(args, words.word[0], &query->bytes);
	if (outcome == DONE)
		outcome = parse_threads(args, threads, &query->threads);
	if (outcome == DONE)
		outcome = parse_words(args, words.word[1], prior, query);
	return outcome;
}

/* --- the rule ---------------------------------------------------------------------------------------------------- */

/* On another host nothing can be said of what runs there: the rule's own kernel then, if this version knows it. */
static const struct pc_kernel *kernel_of(const struct subject *subject, const struct pc_rule *rule)
{
	const struct pc_kernel *kernel = pc_kernel_find(rule->kernel);

	return kernel != NULL && (subject->foreign || pc_kernel_runs(kernel)) ? kernel : &pc_kernels[0];
}

static struct explain_answer answer(const struct explanation *explanation, enum pc_prior prior)
{
	const struct evidence_query *query = &explanation->query;
	struct explain_answer answer = {.kernel = &pc_kernels[0]};

	answer.table = pc_document_table(explanation->subject.document, query->intent, prior, query->threads);
	if (answer.table == NULL)
		return answer;
	const struct pc_rule *rule = pc_table_rule(answer.table, query->bytes);
	answer.rule = (size_t)(rule - answer.table->rules);
	answer.kernel = kernel_of(&explanation->subject, rule);
	return answer;
}

static void consult(struct explanation *explanation)
{
	const struct evidence_query *query = &explanation->query;
	uint64_t from = explanation->subject.document->probe.from;
	bool scrub = query->intent == PAGECLEAR_SCRUB;

	for (unsigned prior = 0; prior < (scrub ? 1 : PC_PRIORS); prior++)
		explanation->answers[prior] = answer(explanation, (enum pc_prior)prior);
	explanation->probes = !scrub && query->prior == PC_UNKNOWN && from > 0 && query->bytes >= from &&
	                      explanation->answers[PC_CACHED].kernel != explanation->answers[PC_FLUSHED].kernel;
}

/* --- the measurements -------------------------------------------------------------------------------------------- */

static int weigh_hints(struct explanation *explanation, const struct dataset *data, struct evidence_query query)
{
	unsigned cached = pc_kernel_index(explanation->answers[PC_CACHED].kernel);
	unsigned flushed = pc_kernel_index(explanation->answers[PC_FLUSHED].kernel);

	query.prior = PC_FLUSHED;
	int r = evidence_if_wrong(&explanation->wrong[PC_FLUSHED], data, &query, flushed, cached);
	query.prior = PC_CACHED;
	return r == 0 ? evidence_if_wrong(&explanation->wrong[PC_CACHED], data, &query, cached, flushed) : r;
}

/* Asked for the threads that the answer's table was measured with. */
static int weigh(struct explanation *explanation, const struct dataset *data)
{
	const struct explain_answer *asked = &explanation->answers[explanation->query.prior];
	struct evidence_query query = explanation->query;

	if (asked->table != NULL)
		query.threads = asked->table->threads;
	int r = evidence_collect(&explanation->evidence, data, &query);
	if (r == 0 && query.intent != PAGECLEAR_SCRUB)
		r = weigh_hints(explanation, data, query);
	if (r == 0 && asked->table != NULL)
		r = explain_spot(&explanation->spot, data, asked->table, asked->rule, pc_kernel_index(asked->kernel));
	return r == 0 ? 0 : pc_why(&explanation->reason, r, "out of memory");
}

static void look_up(struct explanation *explanation)
{
	struct dataset data = {0};

	explanation->recorded = ledger_latest(&explanation->subject.where, explanation->subject.document->topology,
	                                      &explanation->calibration, &data, &explanation->reason);
	if (explanation->recorded == 0) {
		explanation->recorded = weigh(explanation, &data);
		if (explanation->recorded < 0)
			store_calibration_free(&explanation->calibration);
	}
	dataset_clear(&data);
}

/* ----------------------------------------------------------------------------------------------------------------- */

static enum outcome tell(const struct explanation *explanation, const struct calibctl *ctl)
{
	enum outcome outcome = explanation->subject.foreign ? PROBLEM : DONE;

	if (explanation->recorded < 0)
		outcome = output_failed(&explanation->reason);
	if (ctl->json)
		return output_json(explain_json(explanation), outcome);
	explain_print(explanation);
	return outcome;
}

enum outcome verb_explain(struct calibctl *ctl, struct args *args)
{
	static struct explanation explanation;
	struct pc_why why;

	if (parse(args, ctl, &explanation.query) != DONE)
		return USAGE;
	int r = subject_open(&explanation.subject, ctl, &why);
	enum outcome outcome = UNREADABLE;
	if (r != 0) {
		subject_missing(&explanation.subject, r, &why);
	} else {
		consult(&explanation);
		look_up(&explanation);
		outcome = tell(&explanation, ctl);
		if (explanation.recorded == 0)
			store_calibration_free(&explanation.calibration);
	}
	subject_close(&explanation.subject);
	return outcome;
}
