/* Values for glibc's tunables; see emit_tuning.h. */
#include "calibctl/emit_tuning.h"

#include <errno.h>
#include <gnu/libc-version.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibctl/emit_loader.h"
#include "calibctl/ledger.h"
#include "calibctl/output.h"
#include "calibctl/tried.h"
#include "calibctl/words.h"
#include "kernels/cpu.h"

/*
 * All whose meaning for memset was measured (calibctl bench table with values far from the default, glibc 2.36
 * and 2.41, Zen 3): the first moves the border between vector stores and REP STOSB, the second (from 2.40 on), above
 * the first, that to non-temporal stores. glibc.cpu.x86_non_temporal_threshold is memcpy's: memset does not heed it in
 * either.
 */
static const char stosb_name[] = "glibc.cpu.x86_rep_stosb_threshold";
static const char nontemporal_name[] = "glibc.cpu.x86_memset_non_temporal_threshold";

/* What it takes to choose. */
struct facts {
	struct thresholds present;
	struct thresholds_range range;
	struct thresholds_costs costs;
};

static enum outcome nothing(struct tuning *out, enum outcome outcome, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static enum outcome nothing(struct tuning *out, enum outcome outcome, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(out->why, sizeof(out->why), format, arguments);
	va_end(arguments);
	return outcome;
}

/* --- the loader --------------------------------------------------------------------------------------------------- */

static void note_missing(struct emit *emit, const char *name)
{
	emit_note(emit, "%s is left out: %s does not list it", name,
	          emit->loader != NULL ? emit->loader : "this system's loader");
}

static int ask_loader(struct emit *emit, struct facts *facts, struct pc_why *why)
{
	struct loader_tunable stosb, nontemporal;
	char *list;
	int r = loader_list(emit->loader, &list, why);

	if (r < 0)
		return r;
	facts->range.stosb = loader_find(list, stosb_name, &stosb);
	facts->range.nontemporal = loader_find(list, nontemporal_name, &nontemporal);
	free(list);
	if (!facts->range.stosb)
		note_missing(emit, stosb_name);
	if (!facts->range.nontemporal)
		note_missing(emit, nontemporal_name);
	facts->present =
		(struct thresholds){stosb.present, facts->range.nontemporal ? nontemporal.present : UINT64_MAX};
	facts->range.least = (struct thresholds){stosb.least, nontemporal.least};
	facts->range.most = (struct thresholds){stosb.most, nontemporal.most};
	return 0;
}

/* --- the measurements --------------------------------------------------------------------------------------------- */

/* "glibc 2.36" behind "libc=" in the soft facts; false if they don't say. */
static bool measured_libc(const char *soft, char *out, size_t size)
{
	const char *at = soft == NULL ? NULL : strstr(soft, "libc=");

	while (at != NULL && at != soft && at[-1] != '\n')
		at = strstr(at + 1, "libc=");
	if (at == NULL)
		return false;
	at += strlen("libc=");
	snprintf(out, size, "%.*s", (int)strcspn(at, "\n"), at);
	return true;
}

/* Whether libc's own figures are those of the libc that the tunables are for. */
static bool is_own_libc(const struct emit *emit, const struct calibration *calibration, char *measured, size_t size)
{
	char here[32];

	snprintf(here, sizeof(here), "glibc %s", gnu_get_libc_version());
	return measured_libc(calibration->soft, measured, size) && emit->loader == NULL && strcmp(measured, here) == 0;
}

static int read_costs(struct emit *emit, struct facts *facts, struct tuning *out, bool *own, struct pc_why *why)
{
	struct calibration calibration;
	struct dataset data = {0};
	char measured[48] = "a libc not stated";
	int r = ledger_latest(&emit->subject.where, emit->subject.document->topology, &calibration, &data, why);

	if (r == 0) {
		*own = is_own_libc(emit, &calibration, measured, sizeof(measured));
		snprintf(out->source, sizeof(out->source), "calibration %lld (%s) of topology %s, with %s",
		         (long long)calibration.id, calibration.quality, calibration.topology, measured);
		store_calibration_free(&calibration);
		r = thresholds_costs(&facts->costs, &data);
		if (r == 1)
			pc_why_say(why, "%s: it lacks sizes that were measured hot and cold, cached and flushed",
			           emit->subject.where.database);
		else if (r < 0)
			pc_why_say(why, "out of memory");
	}
	dataset_clear(&data);
	return r;
}

/* --- the value ---------------------------------------------------------------------------------------------------- */

/* What memset does from one border to the next, in words. */
static void describe(struct tuning *out)
{
	const struct thresholds_choice *choice = &out->choice;
	char from[WORDS_SHORT], to[WORDS_SHORT], gain[WORDS_SHORT];

	words_size(choice->from, from);
	words_size(choice->to, to);
	words_gain(choice->gain, gain);
	snprintf(out->why, sizeof(out->why),
	         "memset from %s to %s: %s on average (hot %.2fx cached, %.2fx flushed; cold %.2fx cached, %.2fx "
	         "flushed)",
	         from, to, gain, choice->gains[0], choice->gains[1], choice->gains[2], choice->gains[3]);
}

static void write_value(struct tuning *out)
{
	const struct thresholds_choice *choice = &out->choice;

	if (choice->set_stosb)
		words_append(out->value, sizeof(out->value), "%s=%" PRIu64, stosb_name, choice->value.stosb);
	if (choice->set_nontemporal)
		words_append(out->value, sizeof(out->value), "%s%s=%" PRIu64, choice->set_stosb ? ":" : "",
		             nontemporal_name, choice->value.nontemporal);
}

static json_t *json_tunable(const char *name, uint64_t value, bool set, bool listed, uint64_t present, uint64_t least,
                            uint64_t most)
{
	return json_pack("{s:s, s:b, s:o, s:o, s:o, s:o}", "name", name, "listed", (int)listed, "value",
	                 set ? output_json_bytes(value) : json_null(), "present",
	                 listed ? output_json_bytes(present) : json_null(), "min",
	                 listed ? output_json_bytes(least) : json_null(), "max",
	                 listed ? output_json_bytes(most) : json_null());
}

static json_t *json_tuning(const struct facts *facts, const struct thresholds_choice *choice)
{
	const struct thresholds_range *range = &facts->range;
	bool set = choice->set_stosb || choice->set_nontemporal;

	return json_pack("{s:[o, o], s:o, s:o, s:o}", "tunables",
	                 json_tunable(stosb_name, choice->value.stosb, choice->set_stosb, range->stosb,
	                              facts->present.stosb, range->least.stosb, range->most.stosb),
	                 json_tunable(nontemporal_name, choice->value.nontemporal, choice->set_nontemporal,
	                              range->nontemporal, facts->present.nontemporal, range->least.nontemporal,
	                              range->most.nontemporal),
	                 "gain", set ? output_json_number(choice->gain) : json_null(), "from",
	                 set ? output_json_bytes(choice->from) : json_null(), "to",
	                 set ? output_json_bytes(choice->to) : json_null());
}

/* --- the effect --------------------------------------------------------------------------------------------------- */

static const double shown_from = 1.02; /* nearer to 1 is noise */

/* Both ends of what changes, three sizes between them, and one on each side. */
static size_t list_sizes(uint64_t sizes[EFFECT_SIZES], const struct thresholds_choice *choice)
{
	double octaves = log2((double)choice->to / (double)choice->from);
	size_t count = 0;

	sizes[count++] = choice->from / 2;
	for (unsigned i = 0; i <= 4; i++) {
		uint64_t bytes = (uint64_t)((double)choice->from * exp2(octaves * i / 4)) & ~UINT64_C(63);

		if (bytes > sizes[count - 1])
			sizes[count++] = bytes;
	}
	sizes[count++] = choice->to * 2;
	return count;
}

/* Of these, those for which bench takes memory; 0: none of them would show what the value changes. */
static size_t pick_sizes(struct emit *emit, uint64_t sizes[EFFECT_SIZES], const struct thresholds_choice *choice,
                         struct pc_why *why)
{
	const uint64_t most = tried_memory();
	size_t count = list_sizes(sizes, choice);
	char size[WORDS_SHORT];

	words_size(most, size);
	if (sizes[count - 1] > most)
		emit_note(emit, "sizes above %s are not measured: too little memory is available", size);
	while (count > 0 && sizes[count - 1] > most)
		count--;
	if (count > 0 && sizes[count - 1] >= choice->from / 64 * 64)
		return count;
	words_size(choice->from, size);
	pc_why_say(why, "too little memory is available to measure sizes from %s up", size);
	return 0;
}

/* Over the sizes whose path the thresholds change; NaN if none was measured. */
static double mean_gain(const struct effect *effect, const struct thresholds_choice *choice)
{
	double sum = 0;
	unsigned count = 0;

	for (size_t i = 0; i < effect->count; i++) {
		const struct effect_point *point = &effect->points[i];

		if (point->bytes < choice->from / 64 * 64 || point->bytes > choice->to || isnan(point->gain))
			continue;
		sum += log(point->gain);
		count++;
	}
	return count == 0 ? NAN : exp(sum / count);
}

static json_t *json_effect(const struct effect *effect)
{
	json_t *list = json_array();

	for (size_t i = 0; i < effect->count; i++) {
		const struct effect_point *point = &effect->points[i];

		json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:o, s:o}", "prior", pc_prior_name(point->prior),
		                                      "size_bytes", output_json_bytes(point->bytes), "gb_per_s",
		                                      output_json_number(point->before), "gb_per_s_tuned",
		                                      output_json_number(point->after), "gain",
		                                      output_json_number(point->gain)));
	}
	return list;
}

static enum outcome show_effect(struct emit *emit, struct tuning *out)
{
	uint64_t sizes[EFFECT_SIZES];
	struct pc_why why;
	size_t count = pick_sizes(emit, sizes, &out->choice, &why);

	if (count == 0 || effect_measure(&out->effect, out->value, sizes, count, &why) < 0) {
		out->effect.count = 0;
		return output_failed(&why);
	}
	double gain = mean_gain(&out->effect, &out->choice);
	json_object_set_new(emit->details, "effect", json_effect(&out->effect));
	json_object_set_new(emit->details, "effect_gain", output_json_number(gain));
	if (gain >= shown_from)
		return DONE;
	nothing(out, PROBLEM, "nothing is set: %s gains %.2fx where it was to gain %.2fx (%s)", out->value, gain,
	        out->choice.gain, "measured just now, with it and without it in turns");
	out->value[0] = '\0';
	return PROBLEM;
}

void tuning_note_effect(struct emit *emit, const struct effect *effect)
{
	for (size_t i = 0; i < effect->count; i++) {
		const struct effect_point *point = &effect->points[i];
		char size[WORDS_SHORT];

		words_size(point->bytes, size);
		emit_note(emit, "%-8s %9s  %6.1f -> %6.1f GB/s  %.2fx", pc_prior_name(point->prior), size,
		          point->before, point->after, point->gain);
	}
}

/* ----------------------------------------------------------------------------------------------------------------- */

static enum outcome choose(struct emit *emit, struct facts *facts, struct tuning *out, bool own)
{
	thresholds_choose(&out->choice, &facts->costs, &facts->present, &facts->range, own);
	emit->details = json_tuning(facts, &out->choice);
	if (!out->choice.set_stosb && !out->choice.set_nontemporal)
		return nothing(out, DONE,
		               "nothing to set: no other threshold gains 3 %% without a loss, hot or cold, cached or "
		               "flushed (%s)",
		               out->source);
	write_value(out);
	describe(out);
	return emit->verify ? show_effect(emit, out) : DONE;
}

enum outcome tuning_find(struct emit *emit, struct tuning *out)
{
	static struct facts facts;
	struct pc_why why = {""};
	bool own = false;

	*out = (struct tuning){0};
	if (emit->subject.foreign)
		return nothing(out, PROBLEM, "nothing is set: the policy is not for this host: %s",
		               emit->subject.verdict.text);
	if ((pc_cpu_features() & PC_CPU_ERMS) == 0)
		return nothing(out, DONE, "nothing to set: without ERMS glibc's memset has no thresholds");
	if (ask_loader(emit, &facts, &why) < 0 || read_costs(emit, &facts, out, &own, &why) != 0)
		return output_failed(&why);
	if (!facts.range.stosb)
		return nothing(out, DONE, "nothing to set without %s", stosb_name);
	return choose(emit, &facts, out, own);
}
