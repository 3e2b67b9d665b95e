/*
 * Events of the time line for programs.
 */
#include "calibctl/history_line.h"
#include "calibctl/output.h"
#include "calibctl/words.h"

static json_t *text_or_null(const char *text)
{
	return text != NULL && text[0] != '\0' ? output_json_text(text) : json_null();
}

static json_t *json_calibration(const struct calibration *calibration)
{
	bool ended = calibration->finished > 0;

	return json_pack("{s:s, s:I, s:s, s:o, s:o, s:o, s:I, s:o, s:o, s:o}", "event", "calibration", "id",
	                 (json_int_t)calibration->id, "state", words_calibration(calibration->state), "effort",
	                 output_json_text(calibration->effort), "quality", text_or_null(calibration->quality),
	                 "reasons", text_or_null(calibration->reasons), "started", (json_int_t)calibration->started,
	                 "seconds", ended ? json_integer(calibration->finished - calibration->started) : json_null(),
	                 "knee_bytes",
	                 calibration->knee_bytes > 0 ? output_json_bytes(calibration->knee_bytes) : json_null(),
	                 "faulted", text_or_null(calibration->faulted));
}

static json_t *json_published(const struct history *history, const struct published *published)
{
	bool stands = history_standing(history, published) != NULL;

	return json_pack("{s:s, s:o, s:o, s:o, s:b, s:b}", "event", "publication", "generation",
	                 output_json_bytes(published->generation), "source", output_json_text(published->source),
	                 "calibration", published->calibration > 0 ? json_integer(published->calibration) : json_null(),
	                 "in_force", (int)stands, "edited", (int)(stands && history->now.state == NOW_EDITED));
}

static json_t *json_verification(const struct history_verification *verified)
{
	const struct verification *verification = &verified->verification;

	return json_pack("{s:s, s:I, s:o, s:o, s:b, s:I, s:o, s:o}", "event", "verification", "id",
	                 (json_int_t)verification->id, "generation",
	                 verification->generation > 0 ? output_json_bytes(verification->generation) : json_null(),
	                 "effort", output_json_text(verification->effort), "passed", (int)verification->passed,
	                 "series", (json_int_t)verified->series, "mean_regret", output_json_number(verified->mean),
	                 "against", text_or_null(verification->against));
}

json_t *history_json(const struct history *history, const struct history_event *event)
{
	json_t *json = event->calibration != NULL ? json_calibration(event->calibration)
	               : event->published != NULL ? json_published(history, event->published)
	                                          : json_verification(event->verification);

	/* Out of memory is told by whoever prints: a NULL in an object makes the object NULL. */
	if (json != NULL && (json_object_set_new(json, "at", json_integer(event->at)) < 0 ||
	                     json_object_set_new(json, "topology", output_json_text(history_topology(event))) < 0)) {
		json_decref(json);
		return NULL;
	}
	return json;
}
