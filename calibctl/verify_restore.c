/* What the database keeps of a verification, as it is told: pure but for the policy's choices; see verify.h. */
#include <errno.h>
#include <pageclear/policy.h>
#include <stdlib.h>

#include "calibctl/verify.h"

static enum verify_shape shape_of(const struct verified *told)
{
	if (told->intent == PAGECLEAR_SCRUB)
		return VERIFY_SCRUB;
	return told->prior == PC_CACHED ? VERIFY_CACHED : VERIFY_FLUSHED;
}

static int compare(const void *a, const void *b)
{
	const struct verify_series *one = a, *other = b;

	if (one->told.intent != other->told.intent)
		return one->told.intent < other->told.intent ? -1 : 1;
	return (one->told.prior > other->told.prior) - (one->told.prior < other->told.prior);
}

int verification_restore(struct verify_report *out, const struct pageclear_policy *policy,
                         const struct verified *series, size_t count, struct pc_why *why)
{
	if (count == 0 || count > VERIFY_SERIES)
		return pc_why(why, -EUCLEAN, "database: a verification of %zu series", count);
	*out = (struct verify_report){.count = count, .passed = true};
	for (size_t i = 0; i < count; i++) {
		const struct verified *told = &series[i];

		out->series[i] = (struct verify_series){
			.told = *told,
			.measured = told->sizes,
			.chosen = verify_choice(policy, shape_of(told), told->worst_bytes, told->intent)};
		out->passed &= told->passed;
	}
	qsort(out->series, count, sizeof(out->series[0]), compare);
	return 0;
}
