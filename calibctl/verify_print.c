/*
 * A verification for people and for programs.
 */
#include <inttypes.h>
#include <pageclear/policy.h>
#include <stdio.h>

#include "calibctl/output.h"
#include "calibctl/verify.h"
#include "calibctl/words.h"
#include "kernels/kernels.h"

enum { NAME = 24, WAY = 64 };

/* Share; scrub: VERIFY_SCRUB_TIMES as much. A quiet guest was seen at 1 % (scrub 8 %). */
static const double noisy_floor = 0.05;

/* "cold, flushed"; "scrub". */
static void name_series(const struct verified *told, char out[NAME])
{
	if (told->intent == PAGECLEAR_SCRUB)
		snprintf(out, NAME, "%s", pc_intent_name(told->intent));
	else
		snprintf(out, NAME, "%s, %s", pc_intent_name(told->intent), pc_prior_name(told->prior));
}

static void name_way(const struct verify_way *way, char out[WAY])
{
	char chunk[WORDS_SHORT];

	if (way->chunk == 0) {
		snprintf(out, WAY, "%s", pc_kernels[way->kernel].name);
		return;
	}
	words_size(way->chunk, chunk);
	snprintf(out, WAY, "%s in chunks of %s", pc_kernels[way->kernel].name, chunk);
}

/* --- for people -------------------------------------------------------------------------------------------------- */

static void cell_percent(struct columns *columns, double share)
{
	/* One digit: differences of a per cent decide. */
	columns_cell(columns, "%.1f %%", share * 100);
}

static void cell_gain(struct columns *columns, double gain)
{
	char text[WORDS_SHORT];

	words_gain(gain, text);
	columns_cell(columns, "%s", text);
}

static void add_series(struct columns *columns, const struct verify_series *series, bool against)
{
	const struct verified *told = &series->told;
	char name[NAME], worst[WORDS_SHORT];

	name_series(told, name);
	words_size(told->worst_bytes, worst);
	columns_row(columns, told->passed ? STYLE_PLAIN : STYLE_WARNING);
	columns_cell(columns, "%s", name);
	columns_cell(columns, "%u", told->sizes);
	cell_percent(columns, told->mean);
	cell_percent(columns, told->p95);
	cell_percent(columns, told->worst);
	columns_cell(columns, "%s", worst);
	cell_percent(columns, told->floor);
	cell_percent(columns, told->floor_p95);
	cell_gain(columns, told->gain);
	cell_gain(columns, told->best_gain);
	cell_gain(columns, told->unhinted);
	if (against)
		cell_gain(columns, told->against);
	else
		columns_cell(columns, "%s", "");
}

static int print_table(const struct verification_request *request, const struct verify_report *report)
{
	const char *const titles[] = {"",      "sizes", "regret",   "p95",
	                              "worst", "at",    "floor",    "p95",
	                              "gain",  "best",  "unhinted", request->against ? "against" : ""};
	struct columns *columns;
	int r = columns_new(&columns, "lrrrrrrrrrrr");

	if (r < 0)
		return r;
	columns_row(columns, STYLE_HEADING);
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		columns_cell(columns, "%s", titles[i]);
	for (size_t i = 0; i < report->count; i++)
		add_series(columns, &report->series[i], request->against != NULL);
	r = columns_print(columns);
	columns_free(columns);
	return r;
}

static bool is_same_way(const struct verify_way *a, const struct verify_way *b)
{
	return a->kernel == b->kernel && a->chunk == b->chunk;
}

/* "cold, flushed: mean regret 25.0 %, allowed 3.1 %; worst at 3.1 MiB (3250000 bytes), where the choice, libc, costs
 * 71.2 % more than clzero". The best over all rounds may be the choice itself, though it was not on either half. */
static void print_failure(const struct verify_series *series, double tolerance, bool by_calibrd)
{
	const struct verified *told = &series->told;
	double limit = verify_mean_limit(told, tolerance);
	bool mean = told->mean > limit;
	char name[NAME], size[WORDS_SHORT], chosen[WAY], better[WAY];
	struct pc_why text;

	name_series(told, name);
	words_size(told->worst_bytes, size);
	name_way(&series->chosen, chosen);
	name_way(&series->better, better);
	pc_why_say(&text,
	           "%s: %s regret %.1f %%, allowed %.1f %%; worst at %s (%" PRIu64
	           " bytes), where the choice, %s, costs %.1f %% more than %s",
	           name, mean ? "mean" : "95th percentile of", 100 * (mean ? told->mean : told->p95),
	           100 * (mean ? limit : verify_p95_limit(told)), size, told->worst_bytes, chosen, 100 * told->worst,
	           by_calibrd                                      ? "the best"
	           : is_same_way(&series->chosen, &series->better) ? "the best of either half of the rounds"
	                                                           : better);
	output_warning(text.text);
}

/* Where libc differs so much from itself, a policy that is worse by as much would pass as well. */
static void warn_of_noise(const struct verified *told, const char *name)
{
	double much = told->intent == PAGECLEAR_SCRUB ? VERIFY_SCRUB_TIMES * noisy_floor : noisy_floor;
	struct pc_why text;

	if (told->floor <= much)
		return;
	pc_why_say(&text, "%s: a noise floor of %.1f %% hides all losses below it: this host is busy", name,
	           100 * told->floor);
	output_warning(text.text);
}

static void print_remarks(const struct verify_series *series, double tolerance, bool by_calibrd)
{
	struct pc_why text;
	char name[NAME];

	name_series(&series->told, name);
	if (!series->told.passed)
		print_failure(series, tolerance, by_calibrd);
	if (series->told.sizes < series->measured) {
		pc_why_say(&text, "%s: %u of %u sizes could not be measured undisturbed", name,
		           series->measured - series->told.sizes, series->measured);
		output_warning(text.text);
	}
	warn_of_noise(&series->told, name);
}

static void print_verdict(const struct verification_request *request, const struct verify_report *report)
{
	for (size_t i = 0; i < report->count; i++)
		print_remarks(&report->series[i], request->tolerance, request->by_calibrd);
	output_field("verdict", "%s",
	             report->passed ? "the policy's choices cost no more than tolerated"
	                            : "the policy's choices cost more than tolerated");
}

int verification_print(const struct verification_request *request, const struct verify_report *report)
{
	int r;

	subject_print_path(&request->subject);
	if (request->by_calibrd)
		output_field("effort", "%s, by calibrd", effort_limits[request->effort].name);
	else
		output_field("effort", "%s, seed %" PRIu64, effort_limits[request->effort].name, request->seed);
	if (request->against != NULL)
		output_field("against", "memset of %s", request->against);
	putchar('\n');
	r = print_table(request, report);
	putchar('\n');
	if (r == 0)
		print_verdict(request, report);
	return r;
}

/* --- for programs ------------------------------------------------------------------------------------------------ */

static json_t *json_way(const struct verify_way *way)
{
	return json_pack("{s:s, s:o}", "kernel", pc_kernels[way->kernel].name, "chunk", output_json_bytes(way->chunk));
}

static json_t *json_series(const struct verify_series *series, double tolerance, bool by_calibrd)
{
	const struct verified *told = &series->told;

	return json_pack(
		"{s:s, s:o, s:i, s:o, s:{s:o, s:o, s:o}, s:{s:o, s:o}, s:{s:o, s:o}, s:{s:o, s:o, s:o}, s:o, s:o, "
		"s:o, s:o, s:b}",
		"intent", pc_intent_name(told->intent), "prior",
		told->intent == PAGECLEAR_SCRUB ? json_null() : json_string(pc_prior_name(told->prior)), "sizes",
		(int)told->sizes, "sizes_measured", by_calibrd ? json_null() : json_integer(series->measured), "regret",
		"mean", output_json_number(told->mean), "p95", output_json_number(told->p95), "worst",
		output_json_number(told->worst), "allowed", "mean",
		output_json_number(verify_mean_limit(told, tolerance)), "p95",
		output_json_number(verify_p95_limit(told)), "floor", "mean", output_json_number(told->floor), "p95",
		output_json_number(told->floor_p95), "worst", "bytes", output_json_bytes(told->worst_bytes), "chosen",
		json_way(&series->chosen), "better", by_calibrd ? json_null() : json_way(&series->better), "gain",
		output_json_number(told->gain), "best_gain", output_json_number(told->best_gain), "unhinted_gain",
		output_json_number(told->unhinted), "against_gain", output_json_number(told->against), "passed",
		told->passed);
}

json_t *verification_json(const struct verification_request *request, const struct verify_report *report,
                          const struct verification_entry *entry)
{
	json_t *series = json_array();

	for (size_t i = 0; i < report->count; i++)
		json_array_append_new(series, json_series(&report->series[i], request->tolerance, request->by_calibrd));
	return json_pack(
		"{s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:b, s:o, s:o}", "policy", subject_json(&request->subject),
		"topology", request->topology->id, "effort", effort_limits[request->effort].name, "seed",
		request->by_calibrd ? json_null() : output_json_bytes(request->seed), "tolerance",
		output_json_number(request->tolerance), "against", output_json_text(request->against), "series", series,
		"passed", report->passed, "recorded", entry->id > 0 ? json_integer(entry->id) : json_null(),
		"not_recorded_because", entry->id > 0 ? json_null() : output_json_text(entry->reason.text));
}
