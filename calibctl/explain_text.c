/*
 * An explanation for people.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibctl/explain.h"
#include "calibctl/output.h"
#include "calibctl/rule.h"
#include "calibctl/words.h"
#include "calibrd/decide.h"
#include "pageclear/policy.h"

enum { INLINE_MOST = 256 }; /* as in pageclear/policy.h */

/* --- the rule ---------------------------------------------------------------------------------------------------- */

static void print_question(const struct evidence_query *query)
{
	char size[WORDS_SHORT];

	words_size(query->bytes, size);
	output_field("question", "%s, %s (%s)%s%s%s, %u thread%s", size, pc_intent_name(query->intent),
	             words_intent_meaning(query->intent), query->intent == PAGECLEAR_SCRUB ? "" : ", ",
	             query->intent == PAGECLEAR_SCRUB ? "" : pc_prior_name(query->prior),
	             query->intent == PAGECLEAR_SCRUB ? "" : " prior", query->threads, query->threads == 1 ? "" : "s");
}

static void print_answer(const struct explanation *explanation)
{
	const struct explain_answer *asked = &explanation->answers[explanation->query.prior];

	if (explanation->probes)
		output_field("answer", "%s if it is cached, %s if it is flushed: pageclear_zero times %u loads to tell",
		             explanation->answers[PC_CACHED].kernel->name,
		             explanation->answers[PC_FLUSHED].kernel->name, explanation->subject.document->probe.lines);
	else
		output_field("answer", "%s: %s", asked->kernel->name, asked->kernel->about);
	if (explanation->query.bytes <= INLINE_MOST)
		output_field("", "(up to %d bytes pageclear_zero is memset in the caller, whatever the policy says)",
		             INLINE_MOST);
}

static void rule_words(const struct explanation *explanation, const struct explain_answer *answer, char *out,
                       size_t size)
{
	const struct pc_rule *rule = &answer->table->rules[answer->rule];
	char range[RULE_RANGE], gain[WORDS_SHORT], notes[RULE_NOTES];

	rule_range(answer->table, answer->rule, range);
	words_gain(rule->gain, gain);
	rule_notes(rule, explanation->subject.foreign ? NULL : rule_obstacle(rule), notes);
	snprintf(out, size, "%s for %s%s%s%s%s (rule %zu of %zu, table for %u thread%s)", rule->kernel, range,
	         rule->gain > 0 ? ", " : "", rule->gain > 0 ? gain : "", notes[0] != '\0' ? ", " : "", notes,
	         answer->rule + 1, answer->table->rule_count, answer->table->threads,
	         answer->table->threads == 1 ? "" : "s");
}

static void print_rule(const struct explanation *explanation, enum pc_prior prior)
{
	const struct explain_answer *answer = &explanation->answers[prior];
	const char *name = explanation->query.intent == PAGECLEAR_SCRUB ? "" : pc_prior_name(prior);
	const char *colon = name[0] == '\0' ? "" : ": ";
	char words[512];

	if (answer->table == NULL) {
		output_field("rule", "%s%sthe policy has no table for this: libc", name, colon);
		return;
	}
	rule_words(explanation, answer, words, sizeof(words));
	output_field("rule", "%s%s%s", name, colon, words);
	uint64_t chunk = answer->table->rules[answer->rule].chunk;
	if (chunk > 0 && chunk < PC_CHUNK_LEAST)
		output_field("", "(the library counts a chunk below %d bytes as that much)", PC_CHUNK_LEAST);
}

/* Which measured number of threads answers, where it isn't the one asked for. */
static void print_threads(const struct explanation *explanation)
{
	const struct evidence_query *query = &explanation->query;
	const struct pc_table *table = explanation->answers[query->prior].table;

	if (table == NULL || table->threads == query->threads)
		return;
	output_field("threads", "%u asked for: measured with %u thread%s, %s", query->threads, table->threads,
	             table->threads == 1 ? "" : "s",
	             table->threads < query->threads ? "the most there is" : "the next number from there up");
}

static void print_rules(const struct explanation *explanation)
{
	if (explanation->probes) {
		print_rule(explanation, PC_CACHED);
		print_rule(explanation, PC_FLUSHED);
	}
	print_rule(explanation, explanation->query.prior);
	print_threads(explanation);
}

/* --- the measurements -------------------------------------------------------------------------------------------- */

static void print_calibration(const struct calibration *calibration)
{
	char time[WORDS_SHORT], age[WORDS_SHORT];

	words_time(calibration->finished, time);
	words_age(output_now() - calibration->finished, age);
	output_field("measured", "calibration %lld, %s effort, %s, %s, quality %s", (long long)calibration->id,
	             calibration->effort, time, age, calibration->quality);
}

static void add_time(struct columns *columns, double ns)
{
	char text[WORDS_SHORT];

	words_ns(ns, text);
	columns_cell(columns, "%s", isnan(ns) ? "" : text);
}

static void add_rate(struct columns *columns, uint64_t bytes, double ns)
{
	char text[WORDS_SHORT];

	words_rate(bytes, ns, text);
	columns_cell(columns, "%s", isnan(ns) ? "" : text);
}

static void add_kernel(struct columns *columns, const struct evidence_size *size, const struct evidence_kernel *kernel,
                       bool chosen)
{
	char gain[WORDS_SHORT], least[WORDS_SHORT], most[WORDS_SHORT];

	words_gain(kernel->gain, gain);
	words_gain(kernel->least, least);
	words_gain(kernel->most, most);
	columns_row(columns, chosen ? STYLE_CHOSEN : STYLE_PLAIN);
	columns_cell(columns, "%s%s", pc_kernels[kernel->kernel].name, chosen ? " *" : "");
	add_time(columns, kernel->cached_ns);
	add_rate(columns, size->bytes, kernel->cached_ns);
	add_time(columns, kernel->flushed_ns);
	add_rate(columns, size->bytes, kernel->flushed_ns);
	add_time(columns, kernel->alone_ns);
	add_time(columns, kernel->displaced_ns);
	columns_cell(columns, "%s", gain);
	if (kernel->kernel != 0 && kernel->epochs > 1 && !isnan(kernel->least))
		columns_cell(columns, "%s - %s over %u epochs", least, most, kernel->epochs);
}

static void add_header(struct columns *columns, const struct evidence_size *size)
{
	const struct evidence_kernel *libc = &size->kernels[0];

	for (size_t i = 0; i < size->count; i++)
		if (size->kernels[i].kernel == 0)
			libc = &size->kernels[i];
	columns_row(columns, STYLE_PLAIN);
	columns_cell(columns, "kernel");
	columns_cell(columns, "%s", isnan(libc->cached_ns) ? "" : "cached");
	columns_cell(columns, "%s", isnan(libc->cached_ns) ? "" : "GB/s");
	columns_cell(columns, "%s", isnan(libc->flushed_ns) ? "" : "flushed");
	columns_cell(columns, "%s", isnan(libc->flushed_ns) ? "" : "GB/s");
	columns_cell(columns, "%s", isnan(libc->alone_ns) ? "" : "alone");
	columns_cell(columns, "%s", isnan(libc->displaced_ns) ? "" : "displaced");
	columns_cell(columns, "gain");
}

/* Where the library probes, either of two kernels may be what runs. */
static bool is_chosen(const struct explanation *explanation, unsigned kernel)
{
	const struct explain_answer *answers = explanation->answers;

	if (explanation->probes)
		return &pc_kernels[kernel] == answers[PC_CACHED].kernel ||
		       &pc_kernels[kernel] == answers[PC_FLUSHED].kernel;
	return &pc_kernels[kernel] == answers[explanation->query.prior].kernel;
}

static void add_size(struct columns *columns, const struct explanation *explanation, const struct evidence_size *size)
{
	char text[WORDS_SHORT], noise[WORDS_SHORT];

	words_size(size->bytes, text);
	words_percent(size->noise, noise);
	columns_line(columns, STYLE_PLAIN, "%s", "");
	if (isnan(size->noise))
		columns_line(columns, STYLE_HEADING, "%s   (noise not known: one epoch)", text);
	else
		columns_line(columns, STYLE_HEADING, "%s   (noise floor %s)", text, noise);
	add_header(columns, size);
	for (size_t i = 0; i < size->count; i++)
		add_kernel(columns, size, &size->kernels[i], is_chosen(explanation, size->kernels[i].kernel));
}

static bool has_alone(const struct evidence *evidence)
{
	for (size_t i = 0; i < evidence->count; i++)
		for (size_t j = 0; j < evidence->sizes[i].count; j++)
			if (!isnan(evidence->sizes[i].kernels[j].alone_ns))
				return true;
	return false;
}

static void print_legend(const struct explanation *explanation)
{
	const struct evidence_query *query = &explanation->query;

	putchar('\n');
	output_field("*", "what the policy chooses here");
	output_field("gain", "libc's cost over the kernel's, %s",
	             query->intent == PAGECLEAR_SCRUB
	                     ? "displaced below 0 counting from the lower of the two; noise floor: half the spread of "
	                       "their difference between epochs, as a share of libc's"
	                     : "from paired rounds; noise floor: half its spread between epochs");
	if (query->intent == PAGECLEAR_HOT)
		output_field("times", "the clear and the first read after it");
	if (query->intent == PAGECLEAR_SCRUB)
		output_field("displaced",
		             "how much longer other data takes to read again; the cost is that and %g times the clear",
		             DECIDE_SCRUB_WEIGHT);
	if (has_alone(&explanation->evidence))
		output_field("alone", "one clear with ordinary work behind it; the worse of the two ways counts");
	if (query->prior == PC_UNKNOWN && query->intent != PAGECLEAR_SCRUB)
		output_field("unknown", "the gain is the geometric mean of cached and flushed");
}

static int print_sizes(const struct explanation *explanation)
{
	struct columns *columns;
	int r = columns_new(&columns, "lrrrrrrrl");

	if (r < 0)
		return r;
	for (size_t i = 0; i < explanation->evidence.count; i++)
		add_size(columns, explanation, &explanation->evidence.sizes[i]);
	r = columns_print(columns);
	columns_free(columns);
	return r;
}

/* --- the wrong hint ---------------------------------------------------------------------------------------------- */

static void print_wrong(const struct explanation *explanation, enum pc_prior said, enum pc_prior true_prior)
{
	const struct evidence_wrong *wrong = &explanation->wrong[true_prior];
	const char *taken = explanation->answers[said].kernel->name,
		   *right = explanation->answers[true_prior].kernel->name;
	char size[WORDS_SHORT], cost[WORDS_SHORT];

	words_size(wrong->bytes, size);
	words_gain(wrong->cost, cost);
	if (strcmp(taken, right) == 0)
		output_field("if_wrong", "%s said, %s true: nothing, %s either way", pc_prior_name(said),
		             pc_prior_name(true_prior), taken);
	else if (isnan(wrong->cost))
		output_field("if_wrong", "%s said, %s true: %s instead of %s, not measured", pc_prior_name(said),
		             pc_prior_name(true_prior), taken, right);
	else
		output_field("if_wrong", "%s said, %s true: %s instead of %s costs %s at %s", pc_prior_name(said),
		             pc_prior_name(true_prior), taken, right, cost, size);
}

static void print_measurements(const struct explanation *explanation)
{
	print_calibration(&explanation->calibration);
	if (explanation->evidence.count == 0) {
		output_field("", "nothing kept of it for this intent, prior and number of threads");
		return;
	}
	if (print_sizes(explanation) < 0) {
		output_failed(&(struct pc_why){"out of memory"});
		exit(UNREADABLE);
	}
	print_legend(explanation);
	explain_spot_print(&explanation->spot);
	if (explanation->query.intent == PAGECLEAR_SCRUB)
		return;
	print_wrong(explanation, PC_CACHED, PC_FLUSHED);
	print_wrong(explanation, PC_FLUSHED, PC_CACHED);
}

void explain_print(const struct explanation *explanation)
{
	subject_print_path(&explanation->subject);
	subject_judge(&explanation->subject);
	print_question(&explanation->query);
	print_answer(explanation);
	print_rules(explanation);
	if (explanation->recorded == 0)
		print_measurements(explanation);
	else
		output_field("measured", "%s", explanation->reason.text);
}
