/*
 * show: the policy as a report that an engineer could paste somewhere. Reads policy.yaml alone.
 */
#include <stdio.h>
#include <string.h>

#include "calibctl/args.h"
#include "calibctl/output.h"
#include "calibctl/rule.h"
#include "calibctl/story.h"
#include "calibctl/subject.h"
#include "calibctl/words.h"
#include "pageclear/policy.h"

/* --- for people -------------------------------------------------------------------------------------------------- */

static void print_cpus(const struct pc_document *document)
{
	char cpus[PC_CPUS_MAX * sizeof(document->cpus[0]) + 2 * PC_CPUS_MAX] = "";

	for (size_t i = 0, used = 0; i < document->cpu_count; i++)
		used += (size_t)snprintf(cpus + used, sizeof(cpus) - used, "%s%s", i > 0 ? ", " : "",
		                         document->cpus[i]);
	output_field("host", "%s; %s; %s", words_stated(document->name), cpus, document->arch);
}

static void print_topology(const struct pc_document *document)
{
	char knee[WORDS_SHORT];

	words_size(document->knee_bytes, knee);
	output_field("topology", "%s; the last cache stops helping at %s", document->topology,
	             document->knee_bytes > 0 ? knee : "a size not known");
}

static void print_measured(const struct subject *subject)
{
	const struct pc_document *document = subject->document;
	char time[WORDS_SHORT], age_text[WORDS_SHORT];
	int64_t age;

	if (subject_age(subject, &age)) {
		words_time(output_now() - age, time);
		words_age(age, age_text);
		output_field("measured", "%s, %s", time, age_text);
	} else {
		output_field("measured", "%s", words_stated(document->written));
	}
	output_field("quality", "%s; generation %llu; by pageclear %s", words_stated(document->quality),
	             (unsigned long long)document->generation, words_stated(document->version));
}

static void print_probe(const struct pc_document *document)
{
	char from[WORDS_SHORT];

	if (document->probe.from == 0) {
		output_field("probe", "none: where nobody knows the prior, the rules for an unknown one hold");
		return;
	}
	words_size(document->probe.from, from);
	output_field("probe", "from %s on, %u loads; slower than %g ns means flushed", from, document->probe.lines,
	             document->probe.slow_ns);
}

static void add_rule(struct columns *columns, const struct pc_table *table, size_t i, bool here)
{
	const struct pc_rule *rule = &table->rules[i];
	char range[RULE_RANGE], gain[WORDS_SHORT], notes[RULE_NOTES];
	char *separator;

	rule_range(table, i, range);
	words_gain(rule->gain, gain);
	rule_notes(rule, here ? rule_obstacle(rule) : NULL, notes);
	separator = strstr(range, " - ");
	columns_row(columns, STYLE_PLAIN);
	columns_cell(columns, "%.*s", separator != NULL ? (int)(separator - range) : -1, range);
	columns_cell(columns, "%s", separator != NULL ? separator + 1 : "");
	columns_cell(columns, "%s", rule->kernel);
	columns_cell(columns, "%s", rule->gain > 0 && strcmp(rule->kernel, "libc") != 0 ? gain : "");
	columns_cell(columns, "%s", notes);
}

/* In lines of their own: in a column they would be the widest. */
static void add_threads(struct columns *columns, const struct chapter *chapter)
{
	static char text[STORY_THREADS];
	char *rest = NULL;

	story_threads(chapter, text);
	for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
		columns_line(columns, STYLE_PLAIN, "  %s", line);
}

static void add_chapter(struct columns *columns, const struct chapter *chapter, bool here)
{
	const struct pc_table *table = chapter->table;
	bool one_prior = (chapter->priors & (chapter->priors - 1)) == 0 && table->intent != PAGECLEAR_SCRUB;
	char heading[STORY_HEADING];

	story_heading(chapter, heading);
	columns_line(columns, STYLE_PLAIN, "%s", "");
	columns_line(columns, STYLE_HEADING, "%s   (%s%s%s)", heading, words_intent_meaning(table->intent),
	             one_prior ? "; " : "", one_prior ? words_prior_meaning(table->prior) : "");
	for (size_t i = 0; i < table->rule_count; i++)
		add_rule(columns, table, i, here);
	add_threads(columns, chapter);
}

static int print_rules(const struct subject *subject)
{
	static struct story story;
	struct columns *columns;
	int r = columns_new(&columns, "lllrl");

	if (r < 0)
		return r;
	story_tell(&story, subject->document);
	for (size_t i = 0; i < story.count; i++)
		add_chapter(columns, &story.chapters[i], !subject->foreign);
	if (story.count == 0)
		columns_line(columns, STYLE_PLAIN, "\nno table that this version knows: libc everywhere");
	r = columns_print(columns);
	columns_free(columns);
	return r;
}

static enum outcome print(const struct subject *subject)
{
	subject_print_path(subject);
	print_cpus(subject->document);
	print_topology(subject->document);
	print_measured(subject);
	print_probe(subject->document);
	enum outcome outcome = subject_judge(subject);
	if (print_rules(subject) < 0)
		return output_failed(&(struct pc_why){"out of memory"});
	return outcome;
}

/* --- for programs ------------------------------------------------------------------------------------------------ */

static json_t *json_host(const struct pc_document *document)
{
	json_t *cpus = json_array();

	for (size_t i = 0; i < document->cpu_count; i++)
		json_array_append_new(cpus, output_json_text(document->cpus[i]));
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "name", output_json_text(document->name), "cpus", cpus, "arch",
	                 output_json_text(document->arch), "topology", output_json_text(document->topology),
	                 "knee_bytes",
	                 document->knee_bytes > 0 ? output_json_bytes(document->knee_bytes) : json_null());
}

static json_t *json_probe(const struct pc_document *document)
{
	if (document->probe.from == 0)
		return json_null();
	return json_pack("{s:o, s:i, s:o}", "from", output_json_bytes(document->probe.from), "lines",
	                 (int)document->probe.lines, "slow_ns", output_json_number(document->probe.slow_ns));
}

static json_t *json_table(const struct pc_table *table, bool here)
{
	json_t *rules = json_array();

	for (size_t i = 0; i < table->rule_count; i++)
		json_array_append_new(rules, rule_json(table, i, here));
	return json_pack("{s:s, s:o, s:i, s:o}", "intent", pc_intent_name(table->intent), "prior",
	                 table->intent == PAGECLEAR_SCRUB ? json_null() : json_string(pc_prior_name(table->prior)),
	                 "threads", (int)table->threads, "rules", rules);
}

static json_t *json_tables(const struct subject *subject)
{
	json_t *tables = json_array();

	for (size_t i = 0; i < subject->document->table_count; i++)
		json_array_append_new(tables, json_table(&subject->document->tables[i], !subject->foreign));
	return tables;
}

static json_t *json_all(const struct subject *subject)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "policy", subject_json(subject), "host", json_host(subject->document),
	                 "probe", json_probe(subject->document), "clear", json_tables(subject));
}

/* ----------------------------------------------------------------------------------------------------------------- */

enum outcome verb_show(struct calibctl *ctl, struct args *args)
{
	struct arg_words none = {0};
	struct subject subject;
	struct pc_why why;
	enum outcome outcome;

	if (args_parse(args, ctl, NULL, &none) != DONE)
		return USAGE;
	int r = subject_open(&subject, ctl, &why);
	if (r != 0)
		outcome = subject_missing(&subject, r, &why);
	else if (ctl->json)
		outcome = output_json(json_all(&subject), subject.foreign ? PROBLEM : DONE);
	else
		outcome = print(&subject);
	subject_close(&subject);
	return outcome;
}
