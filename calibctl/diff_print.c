/*
 * Differences for people and for programs.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "calibctl/diff.h"
#include "calibctl/output.h"
#include "calibctl/words.h"
#include "pageclear/policy.h"

enum { LINE = 512 };

/* --- the policies themselves ------------------------------------------------------------------------------------- */

static void print_side(const char *label, const struct diff_side *side)
{
	char generation[48];

	snprintf(generation, sizeof(generation), "generation %" PRIu64, side->generation);
	output_field(label, "%s%s%s, measured %s", side->path != NULL ? side->path : generation,
	             side->path != NULL ? ": " : "", side->path != NULL ? generation : "",
	             words_stated(side->document->written));
}

static void print_header(const struct pc_document *a, const struct pc_document *b)
{
	char left[DIFF_CHANGE], right[DIFF_CHANGE];

	if (strcmp(a->topology, b->topology) != 0)
		output_field("topology", "%s -> %s: the rules of different hosts", a->topology, b->topology);
	if (strcmp(a->quality, b->quality) != 0)
		output_field("quality", "%s -> %s", words_stated(a->quality), words_stated(b->quality));
	diff_knee_words(a, left);
	diff_knee_words(b, right);
	if (!diff_same_knee(a, b))
		output_field("knee", "%s -> %s", left, right);
	diff_probe_words(a, left);
	diff_probe_words(b, right);
	if (!diff_same_probe(a, b))
		output_field("probe", "%s -> %s", left, right);
}

/* --- costs ------------------------------------------------------------------------------------------------------- */

/* Of what B saves where it costs less, of what it costs more where it costs more: the interval's signs follow. */
static void say_share(char out[LINE], const struct diff_cost *cost)
{
	bool less = cost->share < 0;
	double sign = less ? -100 : 100, low = less ? cost->most : cost->least, high = less ? cost->least : cost->most;

	words_append(out, LINE, "B costs %.1f %% %s", sign * cost->share, less ? "less" : "more");
	if (cost->epochs > 1)
		words_append(out, LINE, " (%.1f to %.1f %% over %u epochs)", sign * low, sign * high, cost->epochs);
	words_append(out, LINE, ", over %.2g octaves of sizes", cost->octaves);
	if (cost->verdict == DIFF_NOISE)
		words_append(out, LINE, ": within the noise");
	else if (cost->verdict == DIFF_UNKNOWN)
		words_append(out, LINE, "; noise not known: one epoch");
}

static void cost_words(const struct diff_cost *cost, char out[LINE])
{
	out[0] = '\0';
	if (cost->octaves > 0)
		say_share(out, cost);
	if (cost->unmeasured > 0.005)
		words_append(out, LINE, "%snot measured over %.2g octaves", out[0] != '\0' ? "; " : "",
		             cost->unmeasured);
	if (cost->beyond)
		words_append(out, LINE, "%snothing was measured %s", out[0] != '\0' ? "; " : "",
		             out[0] != '\0' ? "for the sizes beyond" : "for these sizes");
	if (out[0] == '\0')
		words_append(out, LINE, "the same: pins alone came or went");
}

/* Choices look best on the very measurements that they were made by. */
static void print_bias(const struct diff *diff)
{
	bool a = diff_decided_from(&diff->a, &diff->calibration), b = diff_decided_from(&diff->b, &diff->calibration);

	if (a != b)
		output_field("", "%s was decided from these measurements, which flatters it", a ? "A" : "B");
}

static void print_verdict(const struct diff *diff)
{
	size_t tables = 0, verdicts[DIFF_MORE + 1] = {0};
	char time[WORDS_SHORT];

	for (size_t i = 0; i < diff->count; i++)
		if (diff->tables[i].range_count > 0) {
			tables++;
			verdicts[diff->costs[i].verdict]++;
		}
	if (tables == 0)
		return;
	putchar('\n');
	if (diff->measured != 0) {
		output_field("cost", "not known: %s", diff->reason.text);
		return;
	}
	words_time(diff->calibration.finished, time);
	output_field("cost",
	             "on calibration %lld (%s, topology %s): of %zu table%s B costs less in %zu, more in %zu; "
	             "%zu within the noise, %zu not known",
	             (long long)diff->calibration.id, time, diff->calibration.topology, tables, tables == 1 ? "" : "s",
	             verdicts[DIFF_LESS], verdicts[DIFF_MORE], verdicts[DIFF_NOISE], verdicts[DIFF_UNKNOWN]);
	print_bias(diff);
}

/* --- tables ------------------------------------------------------------------------------------------------------ */

static void print_missing(const struct diff_table *table)
{
	char instead[DIFF_CHANGE];

	diff_instead(table, instead);
	output_field("  table", "%s %s%s", table->in_a ? "gone; instead holds" : "new; so far held", instead,
	             table->range_count == 0 ? ", which says the same" : "");
}

static void print_table(const struct diff *diff, size_t i)
{
	const struct diff_table *table = &diff->tables[i];
	char text[LINE];

	diff_heading(table, text);
	output_line(STYLE_HEADING, "\n%s", text);
	if (table->in_a != table->in_b)
		print_missing(table);
	for (size_t change = 0; change < diff_change_count(table); change++) {
		diff_change(table, change, text);
		output_field(change == 0 ? "  rules" : "", "%s", text);
	}
	if (table->range_count > 0 && diff->measured == 0) {
		cost_words(&diff->costs[i], text);
		output_field("  cost", "%s", text);
	}
}

void diff_print(const struct diff *diff)
{
	print_side("A", &diff->a);
	print_side("B", &diff->b);
	print_header(diff->a.document, diff->b.document);
	if (diff_same(diff))
		output_field("rules", "the same choices everywhere");
	for (size_t i = 0; i < diff->count; i++)
		if (diff_table_differs(&diff->tables[i]))
			print_table(diff, i);
	print_verdict(diff);
}

/* --- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *json_side(const struct diff_side *side)
{
	const struct pc_document *document = side->document;
	json_t *probe = json_null();

	if (document->probe.from > 0)
		probe = json_pack("{s:o, s:i, s:o}", "from", output_json_bytes(document->probe.from), "lines",
		                  (int)document->probe.lines, "slow_ns", output_json_number(document->probe.slow_ns));
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "generation", output_json_bytes(side->generation), "path",
		output_json_text(side->path), "written", output_json_text(document->written), "quality",
		output_json_text(document->quality), "topology", output_json_text(document->topology), "knee_bytes",
		document->knee_bytes > 0 ? output_json_bytes(document->knee_bytes) : json_null(), "probe", probe);
}

static json_t *json_choice(const struct pc_rule *rule)
{
	return json_pack("{s:s, s:o, s:b}", "kernel", rule->kernel, "chunk", output_json_bytes(rule->chunk), "pinned",
	                 (int)rule->pinned);
}

static json_t *json_ranges(const struct diff_table *table)
{
	json_t *list = json_array();

	for (size_t i = 0; i < table->range_count; i++) {
		const struct diff_range *range = &table->ranges[i];

		json_array_append_new(list,
		                      json_pack("{s:o, s:o, s:o, s:o}", "from", output_json_bytes(range->from), "to",
		                                range->to == UINT64_MAX ? json_null() : output_json_bytes(range->to),
		                                "a", json_choice(range->a), "b", json_choice(range->b)));
	}
	return list;
}

static json_t *json_cost(const struct diff_cost *cost)
{
	static const char *const verdicts[] = {
		[DIFF_UNKNOWN] = "unknown", [DIFF_NOISE] = "noise", [DIFF_LESS] = "less", [DIFF_MORE] = "more"};

	return json_pack("{s:s, s:o, s:o, s:o, s:i, s:o, s:o, s:b}", "verdict", verdicts[cost->verdict], "share",
	                 output_json_number(cost->share), "least", output_json_number(cost->least), "most",
	                 output_json_number(cost->most), "epochs", (int)cost->epochs, "octaves",
	                 output_json_number(cost->octaves), "unmeasured_octaves", output_json_number(cost->unmeasured),
	                 "beyond", (int)cost->beyond);
}

static json_t *json_table(const struct diff *diff, size_t i)
{
	const struct diff_table *table = &diff->tables[i];
	bool costs = table->range_count > 0 && diff->measured == 0;

	return json_pack("{s:s, s:o, s:i, s:b, s:b, s:o, s:o}", "intent", pc_intent_name(table->intent), "prior",
	                 table->intent == PAGECLEAR_SCRUB ? json_null() : json_string(pc_prior_name(table->prior)),
	                 "threads", (int)table->threads, "in_a", (int)table->in_a, "in_b", (int)table->in_b, "ranges",
	                 json_ranges(table), "cost", costs ? json_cost(&diff->costs[i]) : json_null());
}

json_t *diff_json(const struct diff *diff)
{
	json_t *tables = json_array();
	bool measured = diff->measured == 0;

	for (size_t i = 0; i < diff->count; i++)
		if (diff_table_differs(&diff->tables[i]))
			json_array_append_new(tables, json_table(diff, i));
	json_t *decided = json_array();

	if (measured && diff_decided_from(&diff->a, &diff->calibration))
		json_array_append_new(decided, json_string("a"));
	if (measured && diff_decided_from(&diff->b, &diff->calibration))
		json_array_append_new(decided, json_string("b"));
	return json_pack("{s:o, s:o, s:b, s:o, s:o, s:o, s:o}", "a", json_side(&diff->a), "b", json_side(&diff->b),
	                 "same", (int)diff_same(diff), "tables", tables, "calibration",
	                 measured ? json_integer(diff->calibration.id) : json_null(), "decided_from_it", decided,
	                 "no_costs_because", measured ? json_null() : output_json_text(diff->reason.text));
}
