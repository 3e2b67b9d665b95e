/*
 * Points of a verification with figures that can be worked out by hand: shared by the tests that judge them.
 */
#ifndef TESTS_VERIFY_POINTS_H
#define TESTS_VERIFY_POINTS_H

#include <math.h>

#include "calibrd/verify.h"
#include "tests/unit/policy_files.h"

enum { LIBC, FIRST, SECOND, AGAIN, EXTRA, ENTRANTS };

static const double near = 1e-6; /* costs are kept as floats */

static const char *const names[] = {"libc", "stosb", "sse2"};

static inline unsigned row(unsigned entrant)
{
	return pc_kernel_index(pc_kernel_find(names[entrant]));
}

/* --- policies ---------------------------------------------------------------------------------------------------- */

static inline const struct pageclear_policy *policy_of(const char *rules)
{
	char clear[4096] = "clear:\n";
	static const char *const when[][2] = {{"hot", ", prior: cached"},
	                                      {"hot", ", prior: flushed"},
	                                      {"cold", ", prior: cached"},
	                                      {"cold", ", prior: flushed"},
	                                      {"scrub", ""}};

	for (size_t i = 0; i < 5; i++)
		snprintf(clear + strlen(clear), sizeof(clear) - strlen(clear),
		         "  - intent: %s\n    when: {threads: 1%s}\n    rules: [%s]\n", when[i][0], when[i][1], rules);
	return open_text(policy_text(1, here(), pc_arch, clear));
}

static inline const struct pageclear_policy *policy_for(unsigned entrant)
{
	char rules[64];

	snprintf(rules, sizeof(rules), "{from: 0, kernel: %s}", names[entrant]);
	return policy_of(rules);
}

/* --- measurements ------------------------------------------------------------------------------------------------ */

static inline struct verify_point point_of(enum verify_shape shape, uint64_t bytes)
{
	struct verify_point point = {.shape = shape, .bytes = bytes, .entrant_count = AGAIN + 1};

	for (unsigned e = LIBC; e <= SECOND; e++)
		point.entrants[e] = (struct verify_entrant){.kind = VERIFY_KERNEL, .way = {.kernel = row(e)}};
	point.entrants[AGAIN].kind = VERIFY_AGAIN;
	return point;
}

/* A clear without a read; libc's second time as its first, and all the same in a batch and alone. */
static inline void add_round(struct verify_point *point, unsigned epoch, double libc, double first, double second)
{
	const double clear[AGAIN + 1] = {[LIBC] = libc, [FIRST] = first, [SECOND] = second, [AGAIN] = libc};
	struct verify_cost costs[ENTRANTS] = {{0}};

	for (unsigned e = LIBC; e <= AGAIN; e++)
		costs[e] = (struct verify_cost){.clear = (float)clear[e], .alone = (float)clear[e]};
	CU_ASSERT_EQUAL_FATAL(verify_point_add(point, epoch, costs), 0);
}

/* The same in every round: three of each of four epochs. */
static inline void add_rounds(struct verify_point *point, double libc, double first, double second)
{
	for (unsigned i = 0; i < 12; i++)
		add_round(point, i / 3, libc, first, second);
}

static inline struct verify_outcome outcome_of(const struct verify_point *point, unsigned intent,
                                               const struct pageclear_policy *policy, bool can_be_told)
{
	struct verify_outcome out;

	CU_ASSERT_EQUAL(verify_point_judge(point, intent, policy, &out), can_be_told);
	return out;
}

#endif
