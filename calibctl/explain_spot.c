/* What spot checks found, in words; see explain_spot.h. */
#include "calibctl/explain_spot.h"

#include <stdio.h>

#include "calibctl/output.h"
#include "calibctl/rule.h"
#include "calibctl/words.h"
#include "kernels/kernels.h"
#include "pageclear/policy.h"

/* --- finding out ------------------------------------------------------------------------------------------------- */

/* 1, nothing was checked, leaves the ratio without pairs. */
static int keep(int r, struct spot_ratio *out, const struct spot_ratio *found)
{
	if (r == 0)
		*out = *found;
	return r < 0 ? r : 0;
}

static int compare(struct spot_ratio *out, const struct dataset *data, const struct spot_range *range,
                   const struct cost_way *way, const struct cost_way *other)
{
	struct spot_ratio found;

	return keep(spot_compare(&found, data, range, way, other), out, &found);
}

int explain_spot(struct explain_spot *out, const struct dataset *data, const struct pc_table *table, size_t rule,
                 unsigned kernel)
{
	const struct spot_range range = {.intent = table->intent,
	                                 .prior = table->prior,
	                                 .threads = table->threads,
	                                 .from = table->rules[rule].from,
	                                 .to = rule_to(table, rule)};
	const struct cost_way whole = {.kernel = kernel};
	struct spot_ratio found;
	int r = 0;

	*out = (struct explain_spot){.kernel = kernel};
	if (table->intent == PAGECLEAR_SCRUB)
		return 0;
	for (size_t i = 0; i < SPOT_CHUNKS && r == 0; i++)
		r = compare(&out->chunks[i], data, &range,
		            &(struct cost_way){.kernel = kernel, .chunk = spot_chunks[i]}, &whole);
	if (r == 0)
		r = keep(spot_direction(&found, data, &range, kernel, 0), &out->backward, &found);
	if (r == 0 && kernel != 0)
		r = compare(&out->base_pages, data, &range, &(struct cost_way){.kernel = kernel, .base_pages = true},
		            &(struct cost_way){.base_pages = true});
	return r;
}

/* --- telling ----------------------------------------------------------------------------------------------------- */

static void print_one(const char **label, const struct spot_ratio *ratio, const char *what, const char *than)
{
	if (ratio->pairs == 0)
		return;
	output_field(*label, "%s costs %.2fx of %s (%.2f - %.2f)", what, ratio->ratio, than, ratio->interval.low,
	             ratio->interval.high);
	*label = "";
}

void explain_spot_print(const struct explain_spot *spot)
{
	const char *label = "spot check", *name = pc_kernels[spot->kernel].name;
	char size[WORDS_SHORT], what[64];

	for (size_t i = 0; i < SPOT_CHUNKS; i++) {
		words_size(spot_chunks[i], size);
		snprintf(what, sizeof(what), "%s in pieces of %s", name, size);
		print_one(&label, &spot->chunks[i], what, "the whole extent at once");
	}
	print_one(&label, &spot->backward, "the last piece first", "the first one first");
	snprintf(what, sizeof(what), "%s on base pages", name);
	print_one(&label, &spot->base_pages, what, "libc on them");
}

static json_t *json_ratio(const struct spot_ratio *ratio)
{
	if (ratio->pairs == 0)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:I}", "ratio", output_json_number(ratio->ratio), "low",
	                 output_json_number(ratio->interval.low), "high", output_json_number(ratio->interval.high),
	                 "pairs", (json_int_t)ratio->pairs);
}

json_t *explain_spot_json(const struct explain_spot *spot)
{
	json_t *chunks = json_array();

	for (size_t i = 0; i < SPOT_CHUNKS; i++)
		json_array_append_new(chunks, json_pack("{s:o, s:o}", "bytes", output_json_bytes(spot_chunks[i]),
		                                        "over_whole", json_ratio(&spot->chunks[i])));
	return json_pack("{s:s, s:o, s:o, s:o}", "kernel", pc_kernels[spot->kernel].name, "chunks", chunks,
	                 "backward_over_forward", json_ratio(&spot->backward), "over_libc_on_base_pages",
	                 json_ratio(&spot->base_pages));
}
