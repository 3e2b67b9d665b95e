/* glibc-tunables: the value of GLIBC_TUNABLES, fit for $(...); words go to stderr. */
#include "calibctl/emit_tuning.h"

enum outcome emit_glibc_tunables(struct emit *emit)
{
	struct tuning tuning;
	enum outcome outcome = tuning_find(emit, &tuning);

	if (outcome == UNREADABLE)
		return outcome;
	tuning_note_effect(emit, &tuning.effect);
	emit_note(emit, "%s", tuning.why);
	if (tuning.value[0] != '\0')
		fprintf(emit->out, "%s\n", tuning.value);
	return outcome;
}
