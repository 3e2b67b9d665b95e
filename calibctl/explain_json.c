/*
 * An explanation for programs. Times are nanoseconds, sizes bytes, null where something wasn't measured.
 */
#include <math.h>

#include "calibctl/explain.h"
#include "calibctl/output.h"
#include "calibctl/rule.h"
#include "pageclear/policy.h"

static json_t *json_query(const struct evidence_query *query)
{
	return json_pack("{s:o, s:s, s:o, s:i}", "bytes", output_json_bytes(query->bytes), "intent",
	                 pc_intent_name(query->intent), "prior",
	                 query->intent == PAGECLEAR_SCRUB ? json_null() : json_string(pc_prior_name(query->prior)),
	                 "threads", (int)query->threads);
}

static json_t *json_answer(const struct explanation *explanation, enum pc_prior prior)
{
	const struct explain_answer *answer = &explanation->answers[prior];

	if (answer->kernel == NULL) /* scrub knows no priors */
		return json_null();
	if (answer->table == NULL)
		return json_pack("{s:s, s:n, s:n}", "kernel", answer->kernel->name, "threads", "rule");
	return json_pack("{s:s, s:i, s:o}", "kernel", answer->kernel->name, "threads", (int)answer->table->threads,
	                 "rule", rule_json(answer->table, answer->rule, !explanation->subject.foreign));
}

static json_t *json_answers(const struct explanation *explanation)
{
	if (explanation->query.intent == PAGECLEAR_SCRUB)
		return json_null();
	return json_pack("{s:o, s:o, s:o}", "cached", json_answer(explanation, PC_CACHED), "flushed",
	                 json_answer(explanation, PC_FLUSHED), "unknown", json_answer(explanation, PC_UNKNOWN));
}

static json_t *json_kernel(const struct evidence_kernel *kernel)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i}", "kernel", pc_kernels[kernel->kernel].name,
	                 "cached_ns", output_json_number(kernel->cached_ns), "flushed_ns",
	                 output_json_number(kernel->flushed_ns), "alone_ns", output_json_number(kernel->alone_ns),
	                 "displaced_ns", output_json_number(kernel->displaced_ns), "gain",
	                 output_json_number(kernel->gain), "gain_least", output_json_number(kernel->least), "gain_most",
	                 output_json_number(kernel->most), "epochs", (int)kernel->epochs);
}

static json_t *json_size(const struct evidence_size *size)
{
	json_t *kernels = json_array();

	for (size_t i = 0; i < size->count; i++)
		json_array_append_new(kernels, json_kernel(&size->kernels[i]));
	return json_pack("{s:o, s:o, s:o}", "bytes", output_json_bytes(size->bytes), "noise_floor",
	                 output_json_number(size->noise), "kernels", kernels);
}

static json_t *json_wrong(const struct explanation *explanation, enum pc_prior said, enum pc_prior true_prior)
{
	const struct evidence_wrong *wrong = &explanation->wrong[true_prior];

	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "said", pc_prior_name(said), "true",
	                 pc_prior_name(true_prior), "taken", explanation->answers[said].kernel->name, "right",
	                 explanation->answers[true_prior].kernel->name, "cost",
	                 wrong->bytes > 0 ? output_json_number(wrong->cost) : json_null(), "bytes",
	                 wrong->bytes > 0 ? output_json_bytes(wrong->bytes) : json_null());
}

static json_t *json_if_wrong(const struct explanation *explanation)
{
	if (explanation->query.intent == PAGECLEAR_SCRUB)
		return json_null();
	return json_pack("[o, o]", json_wrong(explanation, PC_CACHED, PC_FLUSHED),
	                 json_wrong(explanation, PC_FLUSHED, PC_CACHED));
}

static json_t *json_measured(const struct explanation *explanation)
{
	const struct calibration *calibration = &explanation->calibration;
	json_t *sizes = json_array();

	for (size_t i = 0; i < explanation->evidence.count; i++)
		json_array_append_new(sizes, json_size(&explanation->evidence.sizes[i]));
	return json_pack("{s:I, s:o, s:o, s:I, s:o, s:o, s:o}", "calibration", (json_int_t)calibration->id, "effort",
	                 output_json_text(calibration->effort), "quality", output_json_text(calibration->quality),
	                 "finished", (json_int_t)calibration->finished, "sizes", sizes, "if_wrong",
	                 json_if_wrong(explanation), "spot_checks", explain_spot_json(&explanation->spot));
}

json_t *explain_json(const struct explanation *explanation)
{
	bool recorded = explanation->recorded == 0;

	return json_pack("{s:o, s:o, s:o, s:b, s:o, s:o, s:o}", "policy", subject_json(&explanation->subject),
	                 "question", json_query(&explanation->query), "answer",
	                 json_answer(explanation, explanation->query.prior), "probes", (int)explanation->probes,
	                 "by_prior", json_answers(explanation), "measured",
	                 recorded ? json_measured(explanation) : json_null(), "not_measured_because",
	                 recorded ? json_null() : output_json_text(explanation->reason.text));
}
