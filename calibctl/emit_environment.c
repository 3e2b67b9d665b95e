/* environment.d: a file for environment.d(5), which gives users' services and sessions the same variable. */
#include "calibctl/emit_tuning.h"
#include "calibctl/words.h"

static void comment_effect(FILE *out, const struct effect *effect)
{
	if (effect->count > 0)
		fputs("# measured with it and without it, in turns:\n", out);
	for (size_t i = 0; i < effect->count; i++) {
		const struct effect_point *point = &effect->points[i];
		char size[WORDS_SHORT];

		words_size(point->bytes, size);
		fprintf(out, "#   %-8s %9s  %6.1f -> %6.1f GB/s  %.2fx\n", pc_prior_name(point->prior), size,
		        point->before, point->after, point->gain);
	}
}

enum outcome emit_environment_d(struct emit *emit)
{
	struct tuning tuning;
	enum outcome outcome = tuning_find(emit, &tuning);

	if (outcome == UNREADABLE)
		return outcome;
	if (tuning.value[0] == '\0') {
		tuning_note_effect(emit, &tuning.effect);
		emit_note(emit, "%s", tuning.why);
		return outcome;
	}
	fprintf(emit->out,
	        "# Written by `calibctl emit environment.d` for this host alone, from %s.\n"
	        "# %s.\n",
	        tuning.source, tuning.why);
	comment_effect(emit->out, &tuning.effect);
	fprintf(emit->out,
	        "# Programs that use libpolicy need nothing here: they find the policy themselves.\n"
	        "GLIBC_TUNABLES=${GLIBC_TUNABLES:+$GLIBC_TUNABLES:}%s\n",
	        tuning.value);
	return outcome;
}
