/*
 * What a choice costs at one size, against numbers that were worked out by hand.
 */
#include "tests/unit/verify_points.h"

/* --- picked and valued -------------------------------------------------------------------------------------------- */

static void test_the_best_is_picked_on_one_half_and_valued_on_the_other(void)
{
	const struct pageclear_policy *libc = policy_for(LIBC);
	struct verify_point point = point_of(VERIFY_CACHED, 5000);
	struct verify_outcome out;

	/* Even epochs would pick the first kernel, odd ones the second. */
	for (unsigned i = 0; i < 6; i++) {
		add_round(&point, 0, 100, 50, 60);
		add_round(&point, 1, 100, 80, 70);
	}
	out = outcome_of(&point, PAGECLEAR_COLD, libc, true);
	/* The first valued on odd epochs: 100/80; the second on even ones: 100/60. */
	CU_ASSERT_DOUBLE_EQUAL(out.regret, (log(100.0 / 80) + log(100.0 / 60)) / 2, near);
	CU_ASSERT_DOUBLE_EQUAL(out.best, (log(0.8) + log(0.6)) / 2, near);
	CU_ASSERT_DOUBLE_EQUAL(out.own, 0, near);
	CU_ASSERT_DOUBLE_EQUAL(out.floor, 0, near);
	CU_ASSERT(isnan(out.unhinted) && isnan(out.against));
	CU_ASSERT_EQUAL(out.chosen.kernel, row(LIBC));
	/* Over all rounds both have a median pair of ln 0.65; ties go to the earlier one. */
	CU_ASSERT_EQUAL(out.better.kernel, row(FIRST));
	free(point.costs);
	pageclear_policy_close(libc);
}

static void test_no_regret_where_the_choice_is_the_best(void)
{
	const struct pageclear_policy *first = policy_for(FIRST);
	struct verify_point point = point_of(VERIFY_FLUSHED, 5000);

	for (unsigned i = 0; i < 40; i++) /* noisy, and never in favour of another */
		add_round(&point, i % 4, 90 + i, 40 + i * 7 % 11, 80 + i * 3 % 7);
	for (unsigned intent = PAGECLEAR_HOT; intent <= PAGECLEAR_COLD; intent++)
		CU_ASSERT_EQUAL(outcome_of(&point, intent, first, true).regret, 0);
	free(point.costs);
	pageclear_policy_close(first);
}

/* A kernel that loses to the choice on the rounds it was not picked on makes negative regret: else noise would always
 * look like a loss. */
static void test_regret_may_be_negative(void)
{
	const struct pageclear_policy *libc = policy_for(LIBC);
	struct verify_point point = point_of(VERIFY_CACHED, 5000);

	for (unsigned i = 0; i < 6; i++) {
		add_round(&point, 0, 100, 90, 130);
		add_round(&point, 1, 100, 120, 130);
	}
	CU_ASSERT_DOUBLE_EQUAL(outcome_of(&point, PAGECLEAR_COLD, libc, true).regret, log(100.0 / 120) / 2, near);
	free(point.costs);
	pageclear_policy_close(libc);
}

static void test_hot_counts_the_first_read(void)
{
	const struct pageclear_policy *first = policy_for(FIRST);
	struct verify_point point = point_of(VERIFY_FLUSHED, 5000);
	struct verify_outcome hot, cold;

	for (unsigned i = 0; i < 8; i++) {
		struct verify_cost costs[ENTRANTS] = {[LIBC] = {100, 50, NAN, 100},
		                                      [FIRST] = {40, 160, NAN, 40},
		                                      [SECOND] = {90, 50, NAN, 90},
		                                      [AGAIN] = {100, 50, NAN, 100}};

		CU_ASSERT_EQUAL_FATAL(verify_point_add(&point, i % 2, costs), 0);
	}
	cold = outcome_of(&point, PAGECLEAR_COLD, first, true);
	hot = outcome_of(&point, PAGECLEAR_HOT, first, true);
	CU_ASSERT_EQUAL(cold.regret, 0);
	CU_ASSERT_DOUBLE_EQUAL(cold.own, log(0.4), near);
	CU_ASSERT_DOUBLE_EQUAL(hot.regret, log(200.0 / 140), near);
	CU_ASSERT_DOUBLE_EQUAL(hot.own, log(200.0 / 150), near);
	CU_ASSERT_EQUAL(hot.better.kernel, row(SECOND));
	free(point.costs);
	pageclear_policy_close(first);
}

/* The median of pairs, so one wild round moves nothing; disturbed ones do not count. */
static void test_disturbed_rounds(void)
{
	const struct pageclear_policy *first = policy_for(FIRST);
	struct verify_point point = point_of(VERIFY_CACHED, 5000);
	struct verify_outcome out;

	for (unsigned i = 0; i < 20; i++)
		add_round(&point, i % 2, 100, i == 4 ? 9000 : 50, i % 3 == 0 ? NAN : 25);
	out = outcome_of(&point, PAGECLEAR_COLD, first, true);
	CU_ASSERT_DOUBLE_EQUAL(out.regret, log(2), near);
	CU_ASSERT_DOUBLE_EQUAL(out.own, log(0.5), near);
	free(point.costs);

	/* One undisturbed round in a half is too few. */
	point = point_of(VERIFY_CACHED, 5000);
	for (unsigned i = 0; i < 20; i++)
		add_round(&point, i % 2, 100, i == 1 || i % 2 == 0 ? 50 : NAN, 100);
	out = outcome_of(&point, PAGECLEAR_COLD, first, false);
	CU_ASSERT(isnan(out.regret));
	free(point.costs);
	pageclear_policy_close(first);
}

static void test_floor_is_libc_against_itself(void)
{
	const struct pageclear_policy *libc = policy_for(LIBC);
	struct verify_point point = point_of(VERIFY_CACHED, 5000);

	for (unsigned i = 0; i < 12; i++) {
		struct verify_cost costs[ENTRANTS] = {[LIBC] = {.clear = 100},
		                                      [FIRST] = {.clear = 200},
		                                      [SECOND] = {.clear = 200},
		                                      [AGAIN] = {.clear = i % 2 == 0 ? 90 : 104}};

		CU_ASSERT_EQUAL_FATAL(verify_point_add(&point, i % 2, costs), 0);
	}
	/* Its sign says nothing: |ln 0.9 + ln 1.04| / 2. */
	CU_ASSERT_DOUBLE_EQUAL(outcome_of(&point, PAGECLEAR_COLD, libc, true).floor, -(log(0.9) + log(1.04)) / 2, near);
	free(point.costs);
	pageclear_policy_close(libc);
}

static void test_a_choice_in_chunks_has_samples_of_its_own(void)
{
	const struct pageclear_policy *chunked = policy_of("{from: 0, kernel: stosb, chunk: 65536}");
	struct verify_point point = point_of(VERIFY_FLUSHED, 65537);
	struct verify_outcome out;

	/* Nobody measured it so. */
	add_rounds(&point, 100, 50, 100);
	outcome_of(&point, PAGECLEAR_COLD, chunked, false);
	free(point.costs);
	point.costs = NULL;
	point.rounds = 0;

	point.entrants[EXTRA] =
		(struct verify_entrant){.kind = VERIFY_KERNEL, .way = {.kernel = row(FIRST), .chunk = 65536}};
	point.entrant_count = ENTRANTS;
	for (unsigned i = 0; i < 8; i++) {
		struct verify_cost costs[ENTRANTS] = {[LIBC] = {.clear = 100},
		                                      [FIRST] = {.clear = 50},
		                                      [SECOND] = {.clear = 100},
		                                      [AGAIN] = {.clear = 100},
		                                      [EXTRA] = {.clear = 40}};

		CU_ASSERT_EQUAL_FATAL(verify_point_add(&point, i % 2, costs), 0);
	}
	out = outcome_of(&point, PAGECLEAR_COLD, chunked, true);
	CU_ASSERT_EQUAL(out.regret, 0);
	CU_ASSERT_DOUBLE_EQUAL(out.own, log(0.4), near);
	CU_ASSERT(out.chosen.kernel == row(FIRST) && out.chosen.chunk == 65536);
	CU_ASSERT_EQUAL(out.better.chunk, 65536);

	/* A chunk that holds the extent is no chunk. */
	point.bytes = 65536;
	out = outcome_of(&point, PAGECLEAR_COLD, chunked, true);
	CU_ASSERT_EQUAL(out.chosen.chunk, 0);
	CU_ASSERT_DOUBLE_EQUAL(out.own, log(0.5), near);
	CU_ASSERT_DOUBLE_EQUAL(out.regret, log(50.0 / 40), near);
	free(point.costs);
	pageclear_policy_close(chunked);
}

static void test_scrub_is_compared_by_differences(void)
{
	const struct pageclear_policy *first = policy_for(FIRST);
	struct verify_point point = point_of(VERIFY_SCRUB, 65536);
	struct verify_outcome out;

	for (unsigned i = 0; i < 8; i++) {
		struct verify_cost costs[ENTRANTS] = {[LIBC] = {1000, NAN, 300, NAN},
		                                      [FIRST] = {2000, NAN, 0, NAN},
		                                      [SECOND] = {2000, NAN, -40, NAN},
		                                      [AGAIN] = {1000, NAN, 310, NAN}};

		CU_ASSERT_EQUAL_FATAL(verify_point_add(&point, i % 2, costs), 0);
	}
	/* w C + max(0, D) of libc: 0.1 x 1000 + 300 = 400. Its S is 400, theirs 200 and 160. */
	out = outcome_of(&point, PAGECLEAR_SCRUB, first, true);
	CU_ASSERT_DOUBLE_EQUAL(out.own, -0.5, near);
	CU_ASSERT_DOUBLE_EQUAL(out.best, -0.6, near);
	CU_ASSERT_DOUBLE_EQUAL(out.regret, 0.1, near);
	CU_ASSERT_DOUBLE_EQUAL(out.floor, 0.025, near);
	free(point.costs);

	/* A displacement below nothing counts as nothing in the denominator alone. */
	point = point_of(VERIFY_SCRUB, 65536);
	for (unsigned i = 0; i < 8; i++) {
		struct verify_cost costs[ENTRANTS] = {[LIBC] = {1000, NAN, -50, NAN},
		                                      [FIRST] = {2000, NAN, -100, NAN},
		                                      [SECOND] = {2000, NAN, 0, NAN},
		                                      [AGAIN] = {1000, NAN, -50, NAN}};

		CU_ASSERT_EQUAL_FATAL(verify_point_add(&point, i % 2, costs), 0);
	}
	out = outcome_of(&point, PAGECLEAR_SCRUB, first, true);
	CU_ASSERT_DOUBLE_EQUAL(out.own, (100.0 - 50) / 100, near);
	free(point.costs);
	pageclear_policy_close(first);
}

/* --- asked for in two ways --------------------------------------------------------------------------------------- */

/* What each entrant costs in a batch and alone. */
static struct verify_point asked(uint64_t bytes, const double both[AGAIN + 1][2])
{
	struct verify_point point = point_of(VERIFY_FLUSHED, bytes);
	struct verify_cost costs[ENTRANTS] = {{0}};

	for (unsigned e = LIBC; e <= AGAIN; e++)
		costs[e] = (struct verify_cost){(float)both[e][0], 500, NAN, (float)both[e][1]};
	for (unsigned i = 0; i < 8; i++)
		CU_ASSERT_EQUAL_FATAL(verify_point_add(&point, i % 4, costs), 0);
	return point;
}

/* Figures of a guest at 2 KiB: what gains in a batch loses alone, so the decision keeps libc there. */
static void test_what_the_decision_keeps_has_no_regret(void)
{
	static const double both[][2] = {{290, 390}, {197, 418}, {600, 300}, {290, 390}};
	const struct pageclear_policy *libc = policy_for(LIBC), *first = policy_for(FIRST),
				      *second = policy_for(SECOND);
	struct verify_point point = asked(2512, both);
	struct verify_outcome out = outcome_of(&point, PAGECLEAR_COLD, libc, true);

	CU_ASSERT(out.regret == 0 && out.own == 0 && out.best == 0 && out.floor == 0);
	CU_ASSERT_EQUAL(out.better.kernel, row(LIBC));
	/* And the other choices cost what they lose where they lose. */
	out = outcome_of(&point, PAGECLEAR_COLD, first, true);
	CU_ASSERT_DOUBLE_EQUAL(out.regret, log(418.0 / 390), near);
	CU_ASSERT_DOUBLE_EQUAL(out.own, log(418.0 / 390), near);
	out = outcome_of(&point, PAGECLEAR_COLD, second, true);
	CU_ASSERT_DOUBLE_EQUAL(out.regret, log(600.0 / 290), near);
	/* For hot, and beyond 16 KiB, nobody asks for a clear alone. */
	out = outcome_of(&point, PAGECLEAR_HOT, libc, true);
	CU_ASSERT_DOUBLE_EQUAL(out.regret, log(790.0 / 697), near);
	point.bytes = 16400;
	out = outcome_of(&point, PAGECLEAR_COLD, libc, true);
	CU_ASSERT_DOUBLE_EQUAL(out.regret, log(290.0 / 197), near);
	CU_ASSERT_EQUAL(out.better.kernel, row(FIRST));
	point.bytes = 16384;
	CU_ASSERT_EQUAL(outcome_of(&point, PAGECLEAR_COLD, libc, true).regret, 0);
	/* Nor of cached memory. */
	point.bytes = 2512;
	point.shape = VERIFY_CACHED;
	CU_ASSERT_EQUAL(outcome_of(&point, PAGECLEAR_COLD, first, true).regret, 0);
	free(point.costs);
	pageclear_policy_close(libc);
	pageclear_policy_close(first);
	pageclear_policy_close(second);
}

/* The first gains 4 at most and 1.25 at least, the second 2 and 1.5. */
static void test_the_least_gain_counts(void)
{
	static const double both[][2] = {{400, 500}, {100, 400}, {200, 500 / 1.5}, {400, 500}};
	const struct pageclear_policy *libc = policy_for(LIBC), *first = policy_for(FIRST),
				      *second = policy_for(SECOND);
	struct verify_point point = asked(2512, both);
	struct verify_outcome out = outcome_of(&point, PAGECLEAR_COLD, libc, true);
	struct interval apart;

	CU_ASSERT_DOUBLE_EQUAL(out.regret, log(1.5), near);
	CU_ASSERT_DOUBLE_EQUAL(out.best, -log(1.5), near);
	CU_ASSERT_EQUAL(out.better.kernel, row(SECOND));
	out = outcome_of(&point, PAGECLEAR_COLD, first, true);
	CU_ASSERT_DOUBLE_EQUAL(out.regret, log(1.5 / 1.25), near);
	CU_ASSERT_DOUBLE_EQUAL(out.own, -log(1.25), near);
	CU_ASSERT_EQUAL(outcome_of(&point, PAGECLEAR_COLD, second, true).regret, 0);
	free(point.costs);

	/* Asked for in different ways: the first costs most in a batch, the second alone. */
	point = asked(2512, (const double[][2]){{400, 500}, {320, 250}, {200, 250}, {400, 500}});
	for (size_t r = 0; r < point.rounds; r++)
		point.costs[r * point.entrant_count + SECOND].alone = 300;
	out = outcome_of(&point, PAGECLEAR_COLD, first, true);
	CU_ASSERT_DOUBLE_EQUAL(out.regret, log(0.8 / 0.6), near);
	apart = verify_point_between(&point, PAGECLEAR_COLD, &point.entrants[FIRST].way, &point.entrants[SECOND].way);
	CU_ASSERT_DOUBLE_EQUAL(apart.low, log(0.8 / 0.6), near);
	CU_ASSERT_DOUBLE_EQUAL(apart.high, log(0.8 / 0.6), near);
	free(point.costs);
	pageclear_policy_close(libc);
	pageclear_policy_close(first);
	pageclear_policy_close(second);
}

/* Else noise alone would look like regret: libc again is treated like any other. */
static void test_the_floor_is_asked_for_in_two_ways(void)
{
	static const double both[][2] = {{100, 200}, {300, 300}, {300, 300}, {97, 210}};
	const struct pageclear_policy *libc = policy_for(LIBC);
	struct verify_point point = asked(2512, both);

	CU_ASSERT_DOUBLE_EQUAL(outcome_of(&point, PAGECLEAR_COLD, libc, true).floor, log(1.05), near);
	CU_ASSERT_DOUBLE_EQUAL(outcome_of(&point, PAGECLEAR_HOT, libc, true).floor, log(600.0 / 597), near);
	free(point.costs);
	pageclear_policy_close(libc);
}

static void test_one_way_alone_tells_nothing(void)
{
	static const double both[][2] = {{400, 500}, {100, NAN}, {300, 450}, {400, 500}},
			    nobody[][2] = {{400, NAN}, {100, NAN}, {300, NAN}, {400, NAN}};
	const struct pageclear_policy *libc = policy_for(LIBC), *first = policy_for(FIRST);
	struct verify_point point = asked(2512, both);
	struct verify_outcome out = outcome_of(&point, PAGECLEAR_COLD, libc, true);

	CU_ASSERT_EQUAL(out.better.kernel, row(SECOND));
	CU_ASSERT_DOUBLE_EQUAL(out.regret, log(500.0 / 450), near);
	outcome_of(&point, PAGECLEAR_COLD, first, false);
	free(point.costs);
	point = asked(2512, nobody);
	outcome_of(&point, PAGECLEAR_COLD, libc, false);
	outcome_of(&point, PAGECLEAR_HOT, libc, true);
	free(point.costs);
	pageclear_policy_close(libc);
	pageclear_policy_close(first);
}

static const struct unit_test tests[] = {
	{"the best is picked on one half and valued on the other",
         test_the_best_is_picked_on_one_half_and_valued_on_the_other},
	{"no regret where the choice is the best", test_no_regret_where_the_choice_is_the_best},
	{"regret may be negative", test_regret_may_be_negative},
	{"hot counts the first read", test_hot_counts_the_first_read},
	{"disturbed rounds", test_disturbed_rounds},
	{"floor is libc against itself", test_floor_is_libc_against_itself},
	{"a choice in chunks has samples of its own", test_a_choice_in_chunks_has_samples_of_its_own},
	{"scrub is compared by differences", test_scrub_is_compared_by_differences},
	{"what the decision keeps has no regret", test_what_the_decision_keeps_has_no_regret},
	{"the least gain counts", test_the_least_gain_counts},
	{"the floor is asked for in two ways", test_the_floor_is_asked_for_in_two_ways},
	{"one way alone tells nothing", test_one_way_alone_tells_nothing},
};

UNIT_MAIN("verify_point", tests)
