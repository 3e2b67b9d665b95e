/*
 * kernels: the table of ways of clearing, with what this host and its policy make of them.
 */
#include "kernels/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibctl/args.h"
#include "calibctl/ledger.h"
#include "calibctl/output.h"
#include "calibctl/story.h"
#include "calibctl/subject.h"
#include "calibctl/words.h"
#include "kernels/cpu.h"
#include "pageclear/policy.h"

enum { CHOSEN = 192 };

/* What else there is to know besides the table itself. */
struct surroundings {
	struct subject subject;
	int recorded; /* 0 faulted is known; 1 no calibration; -errno: reason */
	struct pc_why reason;
	struct calibration calibration;
};

/* --- facts ------------------------------------------------------------------------------------------------------- */

static bool is_listed(const char *names, const char *name)
{
	size_t length = strlen(name);

	for (; names != NULL && *names != '\0'; names += strspn(names, " ")) {
		size_t word = strcspn(names, " ");

		if (word == length && strncmp(names, name, length) == 0)
			return true;
		names += word;
	}
	return false;
}

static bool is_faulted(const struct surroundings *around, const struct pc_kernel *kernel)
{
	return around->recorded == 0 && is_listed(around->calibration.faulted, kernel->name);
}

static bool has_rule(const struct pc_table *table, const char *kernel)
{
	for (size_t i = 0; i < table->rule_count; i++)
		if (strcmp(table->rules[i].kernel, kernel) == 0)
			return true;
	return false;
}

/* Priors under which the policy chooses a kernel for some size and some number of threads. */
static unsigned chosen_priors(const struct pc_document *document, unsigned intent, const char *kernel)
{
	unsigned priors = 0;

	for (size_t i = 0; document != NULL && i < document->table_count; i++)
		if (document->tables[i].intent == intent && has_rule(&document->tables[i], kernel))
			priors |= 1u << document->tables[i].prior;
	return priors;
}

/* What this CPU lacks of what the kernel needs; "" if it runs. */
static void lacking(const struct pc_kernel *kernel, char *out, size_t size)
{
	pc_cpu_feature_names(kernel->needs & ~pc_cpu_features(), out, size);
}

/* --- for people -------------------------------------------------------------------------------------------------- */

/* "hot, cold (cached, unknown), scrub"; an intent alone: whatever the prior. */
static void chosen_words(const struct pc_document *document, const char *kernel, char out[CHOSEN])
{
	static const char *const priors[1 << PC_PRIORS] = {
		"",           " (unknown)",          " (cached)",          " (cached, unknown)",
		" (flushed)", " (flushed, unknown)", " (cached, flushed)", ""};
	size_t used = 0;

	out[0] = '\0';
	for (unsigned intent = PAGECLEAR_HOT; intent <= PAGECLEAR_SCRUB; intent++) {
		unsigned chosen = chosen_priors(document, intent, kernel);

		if (chosen != 0)
			used += (size_t)snprintf(out + used, CHOSEN - used, "%s%s%s", used > 0 ? ", " : "",
			                         pc_intent_name(intent),
			                         intent == PAGECLEAR_SCRUB ? "" : priors[chosen]);
	}
}

static void add_kernel(struct columns *columns, const struct surroundings *around, const struct pc_kernel *kernel)
{
	char lacks[64], chosen[CHOSEN];
	bool faulted = is_faulted(around, kernel);

	lacking(kernel, lacks, sizeof(lacks));
	chosen_words(around->subject.document, kernel->name, chosen);
	columns_row(columns, faulted ? STYLE_WARNING : chosen[0] != '\0' ? STYLE_CHOSEN : STYLE_PLAIN);
	columns_cell(columns, "%s", kernel->name);
	columns_cell(columns, "%s", words_family(kernel->family));
	columns_cell(columns, "%u", kernel->revision);
	if (faulted)
		columns_cell(columns, "faulted");
	else
		columns_cell(columns, "%s%s", lacks[0] == '\0' ? "yes" : "no: needs ", lacks);
	columns_cell(columns, "%s", kernel->about);
	if (chosen[0] != '\0') /* in a column of its own it would be the widest */
		columns_line(columns, STYLE_CHOSEN, "      chosen for %s", chosen);
}

static int print_table(const struct surroundings *around)
{
	static const char *const titles[] = {"kernel", "family", "rev", "runs here", "what it is"};
	struct columns *columns;
	int r = columns_new(&columns, "llrll");

	if (r < 0)
		return r;
	columns_row(columns, STYLE_HEADING);
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		columns_cell(columns, "%s", titles[i]);
	for (unsigned k = 0; k < pc_kernel_count; k++)
		add_kernel(columns, around, &pc_kernels[k]);
	r = columns_print(columns);
	columns_free(columns);
	return r;
}

static enum outcome print(const struct surroundings *around)
{
	if (around->subject.document != NULL)
		subject_print_path(&around->subject);
	else
		output_field("policy", "%s", around->subject.verdict.text);
	if (around->recorded == 0)
		output_field("faults", "as found by calibration %lld in %s", (long long)around->calibration.id,
		             around->subject.where.database);
	else
		output_field("faults", "not known: %s", around->reason.text);
	enum outcome outcome = around->subject.document != NULL ? subject_judge(&around->subject) : DONE;
	putchar('\n');
	if (print_table(around) < 0)
		return output_failed(&(struct pc_why){"out of memory"});
	return outcome;
}

/* --- for programs ------------------------------------------------------------------------------------------------ */

static json_t *json_chosen(const struct pc_document *document, const char *kernel)
{
	json_t *list = json_array();

	for (size_t i = 0; document != NULL && i < document->table_count; i++) {
		const struct pc_table *table = &document->tables[i];
		bool scrub = table->intent == PAGECLEAR_SCRUB;

		if (has_rule(table, kernel))
			json_array_append_new(
				list, json_pack("{s:s, s:o, s:i}", "intent", pc_intent_name(table->intent), "prior",
			                        scrub ? json_null() : json_string(pc_prior_name(table->prior)),
			                        "threads", (int)table->threads));
	}
	return list;
}

static json_t *json_kernel(const struct surroundings *around, const struct pc_kernel *kernel)
{
	char lacks[64];

	lacking(kernel, lacks, sizeof(lacks));
	return json_pack("{s:s, s:s, s:i, s:b, s:o, s:o, s:o, s:s}", "name", kernel->name, "family",
	                 words_family(kernel->family), "revision", (int)kernel->revision, "runs_here", lacks[0] == '\0',
	                 "lacks", lacks[0] == '\0' ? json_null() : json_string(lacks), "faulted",
	                 around->recorded == 0 ? json_boolean(is_faulted(around, kernel)) : json_null(), "chosen",
	                 json_chosen(around->subject.document, kernel->name), "about", kernel->about);
}

static json_t *json_all(const struct surroundings *around)
{
	json_t *kernels = json_array();

	for (unsigned k = 0; k < pc_kernel_count; k++)
		json_array_append_new(kernels, json_kernel(around, &pc_kernels[k]));
	return json_pack("{s:o, s:o, s:o}", "policy", subject_json(&around->subject), "kernels", kernels,
	                 "faults_unknown_because",
	                 around->recorded == 0 ? json_null() : output_json_text(around->reason.text));
}

/* ----------------------------------------------------------------------------------------------------------------- */

static enum outcome tell(struct surroundings *around, const struct calibctl *ctl)
{
	const struct pc_document *document = around->subject.document;
	enum outcome outcome = around->subject.foreign ? PROBLEM : DONE;

	around->recorded = ledger_latest(&around->subject.where, document != NULL ? document->topology : NULL,
	                                 &around->calibration, NULL, &around->reason);
	if (around->recorded < 0)
		outcome = output_failed(&around->reason);
	enum outcome printed = ctl->json ? output_json(json_all(around), outcome) : print(around);
	if (around->recorded == 0)
		store_calibration_free(&around->calibration);
	return printed > outcome ? printed : outcome;
}

enum outcome verb_kernels(struct calibctl *ctl, struct args *args)
{
	struct arg_words none = {0};
	struct surroundings around = {0};

	if (args_parse(args, ctl, NULL, &none) != DONE)
		return USAGE;
	enum outcome tried = subject_try(&around.subject, ctl), outcome = tell(&around, ctl);
	subject_close(&around.subject);
	return tried > outcome ? tried : outcome;
}
