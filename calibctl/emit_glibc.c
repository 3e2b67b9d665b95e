/* glibc-tunables: the value of GLIBC_TUNABLES, fit for $(...); words go to stderr. */
#include "calibctl/emit_tuning.h"
#include "calibctl/words.h"

/* What was measured with the value and without it. */
static void note_effect(struct emit *emit, const struct effect *effect)
{
	for (size_t i = 0; i < effect->count; i++) {
		const struct effect_point *point = &effect->points[i];
		char size[WORDS_SHORT];

		words_size(point->bytes, size);
		emit_note(emit, "%-8s %9s  %6.1f -> %6.1f GB/s  %.2fx", pc_prior_name(point->prior), size,
		          point->before, point->after, point->gain);
	}
}

enum outcome emit_glibc_tunables(struct emit *emit)
{
	struct tuning tuning;
	enum outcome outcome = tuning_find(emit, &tuning);

	if (outcome == UNREADABLE)
		return outcome;
	note_effect(emit, &tuning.effect);
	emit_note(emit, "%s", tuning.why);
	if (tuning.value[0] != '\0')
		fprintf(emit->out, "%s\n", tuning.value);
	return outcome;
}
