/* Chunks, direction and pages, from spot checks made by hand. */
#include "calibrd/spot.h"

#include "pageclear/policy.h"
#include "tests/unit/decisions.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

static const uint64_t spot_bytes[] = {2 * MIB, 8 * MIB, 32 * MIB};

enum { SPOTS = 3, SPOT_ROUNDS = 4 };

/* One way under both phases: a read takes a tenth of what clearing whole does. */
static void put_way_rounds(struct dataset *data, enum pc_prior prior, uint64_t bytes, struct cost_way way,
                           unsigned epoch, unsigned rounds, double ns)
{
	struct series_key key = {
		.bytes = bytes,
		.chunk = way.chunk,
		.threads = 1,
		.kernel = (uint8_t)way.kernel,
		.prior = (uint8_t)prior,
		.phase = PHASE_CLEAR,
		.page = way.base_pages ? PAGE_BASE : PAGE_HUGE,
		.backward = way.backward,
	};

	put_key_rounds(data, &key, epoch, rounds, ns);
	key.phase = PHASE_READ;
	put_key_rounds(data, &key, epoch, rounds, 100);
}

static void put_way(struct dataset *data, enum pc_prior prior, uint64_t bytes, struct cost_way way, unsigned epoch,
                    double ns)
{
	put_way_rounds(data, prior, bytes, way, epoch, SPOT_ROUNDS, ns);
}

static void put_whole(struct dataset *data, enum pc_prior prior)
{
	for (size_t i = 0; i < SPOTS; i++)
		for (unsigned e = 0; e < EPOCHS; e++)
			put_way(data, prior, spot_bytes[i], (struct cost_way){1, spot_bytes[i], false, false}, e, 1000);
}

/* Row 1 in chunks takes exp(l[size]) of what it takes whole. */
static void put_chunks(struct dataset *data, enum pc_prior prior, uint64_t chunk, const double *l)
{
	for (size_t i = 0; i < SPOTS; i++)
		for (unsigned e = 0; e < EPOCHS && chunk < spot_bytes[i]; e++)
			put_way(data, prior, spot_bytes[i], (struct cost_way){1, chunk, false, false}, e,
			        1000 * exp(l[i]));
}

static uint64_t chunk_of(const struct dataset *data, unsigned intent, enum pc_prior prior, uint64_t from, uint64_t to,
                         uint64_t old)
{
	uint64_t chunk = 12345;

	CU_ASSERT_EQUAL_FATAL(spot_chunk(&chunk, data, &(struct spot_range){intent, prior, 1, from, to}, 1, old), 0);
	return chunk;
}

/* --- chunks ------------------------------------------------------------------------------------------------------ */

static void test_no_checks_no_chunk(void)
{
	struct dataset data = {0};

	CU_ASSERT_EQUAL(chunk_of(&data, PAGECLEAR_COLD, PC_FLUSHED, 0, UINT64_MAX, 0), 0);
	CU_ASSERT_EQUAL(chunk_of(&data, PAGECLEAR_COLD, PC_FLUSHED, 0, UINT64_MAX, 65536),
	                65536); /* nothing speaks against */
}

static uint64_t chunk_under(const double *l, uint64_t from, uint64_t to, uint64_t old)
{
	struct dataset data = {0};
	uint64_t chunk;

	put_whole(&data, PC_FLUSHED);
	put_chunks(&data, PC_FLUSHED, 64 * KIB, l);
	chunk = chunk_of(&data, PAGECLEAR_COLD, PC_FLUSHED, from, to, old);
	dataset_clear(&data);
	return chunk;
}

static void test_a_proven_chunk_is_taken(void)
{
	static const double wins[] = {-0.1, -0.1, -0.1}, ties[] = {-0.02, -0.02, -0.02}, loses[] = {-0.3, -0.3, 0.05},
			    late[] = {0.05, -0.3, -0.3};

	NEEDS_KERNELS(2);
	CU_ASSERT_EQUAL(chunk_under(wins, 0, UINT64_MAX, 0), 64 * KIB);
	CU_ASSERT_EQUAL(chunk_under(ties, 0, UINT64_MAX, 0), 0);  /* not beyond 3 % */
	CU_ASSERT_EQUAL(chunk_under(loses, 0, UINT64_MAX, 0), 0); /* surely worse at one size */
	CU_ASSERT_EQUAL(chunk_under(loses, 0, 32 * MIB, 0), 64 * KIB);
	CU_ASSERT_EQUAL(chunk_under(late, 0, UINT64_MAX, 0), 0);
	CU_ASSERT_EQUAL(chunk_under(late, 8 * MIB, UINT64_MAX, 0), 64 * KIB);
	CU_ASSERT_EQUAL(chunk_under(wins, 64 * MIB, UINT64_MAX, 0), 0); /* nothing was checked there */
}

/* Most rounds are for it in any case: 12 in each epoch that is, 4 in each other one. */
static void test_every_epoch_must_agree(void)
{
	NEEDS_KERNELS(2);
	for (unsigned agree = EPOCHS - 1; agree <= EPOCHS; agree++) {
		struct dataset data = {0};

		for (unsigned e = 0; e < EPOCHS; e++) {
			unsigned rounds = e < agree ? 12 : 4;

			put_way_rounds(&data, PC_FLUSHED, 8 * MIB, (struct cost_way){1, 8 * MIB, false, false}, e,
			               rounds, 1000);
			put_way_rounds(&data, PC_FLUSHED, 8 * MIB, (struct cost_way){1, 64 * KIB, false, false}, e,
			               rounds, e < agree ? 500 : 1020);
		}
		CU_ASSERT_EQUAL(chunk_of(&data, PAGECLEAR_COLD, PC_FLUSHED, 0, UINT64_MAX, 0),
		                agree == EPOCHS ? 64 * KIB : 0);
		dataset_clear(&data);
	}
}

static void test_an_old_chunk_stays_until_it_is_worse(void)
{
	static const double wins[] = {-0.1, -0.1, -0.1}, ties[] = {-0.02, 0.02, -0.02}, loses[] = {-0.1, -0.1, 0.05},
			    dear[] = {0.02, 0.02, 0.02};

	NEEDS_KERNELS(2);
	CU_ASSERT_EQUAL(chunk_under(ties, 0, UINT64_MAX, 64 * KIB), 64 * KIB);
	CU_ASSERT_EQUAL(chunk_under(dear, 0, UINT64_MAX, 64 * KIB), 0);  /* it gains nothing any more */
	CU_ASSERT_EQUAL(chunk_under(loses, 0, UINT64_MAX, 64 * KIB), 0); /* surely worse at one size */
	CU_ASSERT_EQUAL(chunk_under(loses, 0, 32 * MIB, 64 * KIB), 64 * KIB);
	CU_ASSERT_EQUAL(chunk_under(wins, 0, UINT64_MAX, 2 * MIB), 2 * MIB); /* of which nothing is known */
}

/* 64 KiB wins at all sizes, 2 MiB more at those where it is not the whole: 0.3 against 2 x 0.2. */
static void test_the_better_of_two_chunks(void)
{
	static const double small[] = {-0.1, -0.1, -0.1}, large[] = {0, -0.2, -0.2}, less[] = {0, -0.12, -0.12};

	NEEDS_KERNELS(2);
	for (int better = 0; better < 2; better++) {
		struct dataset data = {0};

		put_whole(&data, PC_FLUSHED);
		put_chunks(&data, PC_FLUSHED, 64 * KIB, small);
		put_chunks(&data, PC_FLUSHED, 2 * MIB, better ? large : less);
		CU_ASSERT_EQUAL(chunk_of(&data, PAGECLEAR_COLD, PC_FLUSHED, 0, UINT64_MAX, 0),
		                better ? 2 * MIB : 64 * KIB);
		CU_ASSERT_EQUAL(chunk_of(&data, PAGECLEAR_COLD, PC_FLUSHED, 0, 8 * MIB, 0), 64 * KIB);
		dataset_clear(&data);
	}
}

static void test_unknown_prior_needs_both(void)
{
	static const double wins[] = {-0.1, -0.1, -0.1}, ties[] = {0, 0, 0};

	NEEDS_KERNELS(2);
	for (int both = 0; both < 2; both++) {
		struct dataset data = {0};

		put_whole(&data, PC_FLUSHED);
		put_chunks(&data, PC_FLUSHED, 64 * KIB, wins);
		CU_ASSERT_EQUAL(chunk_of(&data, PAGECLEAR_COLD, PC_UNKNOWN, 0, UINT64_MAX, 0), 0);
		put_whole(&data, PC_CACHED);
		put_chunks(&data, PC_CACHED, 64 * KIB, both ? wins : ties);
		CU_ASSERT_EQUAL(chunk_of(&data, PAGECLEAR_COLD, PC_UNKNOWN, 0, UINT64_MAX, 0), both ? 64 * KIB : 0);
		CU_ASSERT_EQUAL(chunk_of(&data, PAGECLEAR_COLD, PC_FLUSHED, 0, UINT64_MAX, 0), 64 * KIB);
		dataset_clear(&data);
	}
}

/* 3.2 % of the clear are 2.9 % of clear and read: less than what counts. */
static void test_hot_counts_the_read(void)
{
	static const double wins[] = {-0.032, -0.032, -0.032};
	struct dataset data = {0};

	NEEDS_KERNELS(2);
	put_whole(&data, PC_FLUSHED);
	put_chunks(&data, PC_FLUSHED, 64 * KIB, wins);
	CU_ASSERT_EQUAL(chunk_of(&data, PAGECLEAR_COLD, PC_FLUSHED, 0, UINT64_MAX, 0), 64 * KIB);
	CU_ASSERT_EQUAL(chunk_of(&data, PAGECLEAR_HOT, PC_FLUSHED, 0, UINT64_MAX, 0), 0);
	CU_ASSERT_EQUAL(chunk_of(&data, PAGECLEAR_SCRUB, PC_UNKNOWN, 0, UINT64_MAX, 0), 0); /* no victims were asked */
	dataset_clear(&data);
}

/* --- direction --------------------------------------------------------------------------------------------------- */

static void test_direction(void)
{
	static const double none[] = {0, 0, 0}, more[] = {0.02, 0.04, 0.06};
	struct spot_range range = {PAGECLEAR_COLD, PC_FLUSHED, 1, 0, UINT64_MAX};
	struct dataset data = {0};
	struct spot_ratio ratio;

	NEEDS_KERNELS(2);
	put_whole(&data, PC_FLUSHED);
	put_chunks(&data, PC_FLUSHED, 64 * KIB, none);
	CU_ASSERT_EQUAL(spot_direction(&ratio, &data, &range, 1, 0), 1); /* nobody went backward */
	for (size_t i = 0; i < SPOTS; i++)
		for (unsigned e = 0; e < EPOCHS; e++)
			put_way(&data, PC_FLUSHED, spot_bytes[i], (struct cost_way){1, 64 * KIB, true, false}, e,
			        1000 * exp(more[i]));
	CU_ASSERT_EQUAL_FATAL(spot_direction(&ratio, &data, &range, 1, 0), 0);
	CU_ASSERT_DOUBLE_EQUAL(ratio.ratio, exp(0.04), 1e-5);
	CU_ASSERT_EQUAL(ratio.pairs, SPOTS * EPOCHS * SPOT_ROUNDS);
	/* 20 pairs of each size: ranks 23 and 38 of 60. */
	CU_ASSERT_DOUBLE_EQUAL(ratio.interval.low, exp(0.04), 1e-5);
	CU_ASSERT_DOUBLE_EQUAL(ratio.interval.high, exp(0.04), 1e-5);
	range.from = 8 * MIB;
	CU_ASSERT_EQUAL_FATAL(spot_direction(&ratio, &data, &range, 1, 64 * KIB), 0);
	CU_ASSERT_DOUBLE_EQUAL(ratio.ratio, exp(0.05), 1e-5);
	CU_ASSERT_DOUBLE_EQUAL(ratio.interval.low, exp(0.04), 1e-5);
	CU_ASSERT_DOUBLE_EQUAL(ratio.interval.high, exp(0.06), 1e-5);
	CU_ASSERT_EQUAL(spot_direction(&ratio, &data, &range, 1, 2 * MIB), 1);
	dataset_clear(&data);
}

/* --- pages ------------------------------------------------------------------------------------------------------- */

/* Octaves from 1 to 64 MiB under one prior: row 1 takes exp(usual[i]) of libc's time; on base pages, at the spot sizes,
 * exp(base[spot]). */
static void put_pages(struct dataset *data, enum pc_prior prior, const double *usual, const double *base)
{
	for (unsigned e = 0; e < EPOCHS; e++) {
		for (size_t i = 0; i < 7; i++)
			for (unsigned k = 0; k < 2; k++)
				put_rounds(data, (struct where){PHASE_CLEAR, prior, MIB << i}, k, e, ROUNDS,
				           k == 0 ? 1000 : 1000 * exp(usual[i]));
		for (size_t i = 0; i < SPOTS && base != NULL; i++)
			for (unsigned k = 0; k < 2; k++)
				put_way(data, prior, spot_bytes[i], (struct cost_way){k, spot_bytes[i], false, true}, e,
				        k == 0 ? 1000 : 1000 * exp(base[i]));
	}
}

static void expect_forbidden(const struct dataset *data, enum pc_prior prior, const char *expected)
{
	struct grid grid;

	CU_ASSERT_EQUAL_FATAL(grid_build(&grid, data, PAGECLEAR_COLD, prior, 1, 3, 0.1), 0);
	CU_ASSERT_EQUAL_FATAL(grid.sizes, 7);
	spot_forbid(&grid, data);
	for (size_t i = 0; i < 7; i++)
		CU_ASSERT_EQUAL(grid_cell(&grid, i, 1)->forbidden, expected[i] == 'x');
	grid_free(&grid);
}

static void pages_case(const double *usual, const double *base, const char *expected)
{
	struct dataset data = {0};

	put_pages(&data, PC_FLUSHED, usual, base);
	expect_forbidden(&data, PC_FLUSHED, expected);
	dataset_clear(&data);
}

/* Sizes 1, 2, 4, 8, 16, 32, 64 MiB; spot checks at 2, 8 and 32. */
static void test_what_loses_on_base_pages_is_forbidden(void)
{
	static const double wins[7] = {-0.2, -0.2, -0.2, -0.2, -0.2, -0.2, -0.2};
	static const double later[7] = {0.2, 0.2, 0.2, 0.2, -0.2, -0.2, -0.2};
	static const double steep[7] = {-0.2, -0.2, -0.2, -0.2, -0.6, -0.2, -0.2};

	NEEDS_KERNELS(2);
	pages_case(wins, (double[]){-0.1, -0.1, -0.1}, ".......");
	pages_case(wins, (double[]){0.1, -0.1, -0.1}, ".xx....");
	pages_case(wins, (double[]){-0.1, 0.1, -0.1}, "...xx..");
	pages_case(wins, (double[]){-0.1, 0.1, 0.1}, "...xxxx");
	pages_case(wins, (double[]){0.02, 0.02, 0.02}, "......."); /* what counts is more than 3 % */
	/* It loses at 8 MiB whatever it lies on: that is no matter of pages, and says nothing of 16 MiB. */
	pages_case(later, (double[]){0.2, 0.2, -0.2}, "xxxx...");
	/* 0.3 dearer on base pages from 8 MiB: still cheaper than libc at 16. */
	pages_case(steep, (double[]){-0.2, 0.1, -0.2}, "...x...");
}

/* At 8 MiB it takes as long as libc or 12 % longer on huge pages, 10 % longer on base pages: who knows whether pages
 * matter? They are not held against 16 MiB, where it costs as much as libc. */
static void test_a_difference_that_may_be_none_is_not_added(void)
{
	static const double usual[7] = {-0.2, -0.2, -0.2, 0.12, 0, -0.2, -0.2}, base[] = {-0.2, 0.1, -0.2};
	struct dataset data = {0};

	NEEDS_KERNELS(2);
	put_pages(&data, PC_FLUSHED, usual, base);
	for (unsigned k = 0; k < 2; k++)
		for (unsigned e = 0; e < EPOCHS; e++)
			put_rounds(&data, (struct where){PHASE_CLEAR, PC_FLUSHED, 8 * MIB}, k, EPOCHS + e, ROUNDS,
			           1000);
	expect_forbidden(&data, PC_FLUSHED, "...x...");
	dataset_clear(&data);
}

/* Cached it loses on base pages: 4 % are allowed where the prior is unknown, unless it loses them flushed as well. */
static void test_pages_under_an_unknown_prior(void)
{
	static const double wins[7] = {-0.2, -0.2, -0.2, -0.2, -0.2, -0.2, -0.2};
	static const struct {
		double cached, flushed;
		const char *expected;
	} cases[] = {
		{0.04, -0.2, "......."}, {0.06, -0.2, ".xxxxxx"}, {-0.2, 0.06, ".xxxxxx"}, {0.04, 0.04, ".xxxxxx"}};

	NEEDS_KERNELS(2);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const double cached[] = {cases[i].cached, cases[i].cached, cases[i].cached};
		const double flushed[] = {cases[i].flushed, cases[i].flushed, cases[i].flushed};
		struct dataset data = {0};

		put_pages(&data, PC_CACHED, wins, cached);
		put_pages(&data, PC_FLUSHED, wins, flushed);
		expect_forbidden(&data, PC_UNKNOWN, cases[i].expected);
		dataset_clear(&data);
	}
}

/* Three rounds are too few to be sure of a loss, or of its absence. */
static void test_few_rounds_say_nothing_of_pages(void)
{
	static const double wins[7] = {-0.2, -0.2, -0.2, -0.2, -0.2, -0.2, -0.2};
	struct dataset data = {0};

	NEEDS_KERNELS(2);
	put_pages(&data, PC_FLUSHED, wins, NULL);
	for (unsigned k = 0; k < 2; k++)
		for (unsigned e = 0; e < EPOCHS; e++) {
			put_way(&data, PC_FLUSHED, 2 * MIB, (struct cost_way){k, 2 * MIB, false, true}, e,
			        k == 0 ? 1000 : 1200);
			if (e == 0)
				put_way(&data, PC_FLUSHED, 8 * MIB, (struct cost_way){k, 8 * MIB, false, true}, e,
				        1000);
		}
	expect_forbidden(&data, PC_FLUSHED, ".xxxxxx");
	dataset_clear(&data);
}

/* --- in a policy ------------------------------------------------------------------------------------------------- */

/* libc in chunks of 64 KiB takes half its time: a rule of its own from where that was seen, whole below. */
static void test_libc_in_chunks_is_a_rule(void)
{
	struct dataset data = {0};
	struct decide_input input = input_of(&data);
	struct decision decision;
	struct pc_document old;
	const struct pc_table *table;

	NEEDS_KERNELS(2);
	input.kernels = 3;
	put_pages(&data, PC_FLUSHED, (double[7]){0}, NULL);
	for (size_t i = 0; i < SPOTS; i++)
		for (unsigned e = 0; e < EPOCHS; e++) {
			put_way(&data, PC_FLUSHED, spot_bytes[i], (struct cost_way){0, spot_bytes[i], false, false}, e,
			        1000);
			put_way(&data, PC_FLUSHED, spot_bytes[i], (struct cost_way){0, 64 * KIB, false, false}, e, 500);
		}
	CU_ASSERT_EQUAL_FATAL(decide(&input, &decision), 0);
	table = &decision.tables[0];
	CU_ASSERT_EQUAL_FATAL(table->rule_count, 2);
	CU_ASSERT_TRUE(holds(&table->rules[0], 0, 0) && table->rules[0].chunk == 0);
	CU_ASSERT_TRUE(holds(&table->rules[1], 2 * MIB, 0) && table->rules[1].chunk == 64 * KIB);
	CU_ASSERT_EQUAL(table->rules[1].high, 0);
	CU_ASSERT_FALSE(decision.kept[0]);
	dataset_clear(&data);

	/* What is not checked again stays; what turns out worse goes, and the two rules are one again. */
	old = (struct pc_document){.table_count = 1, .tables = decision.tables};
	input.old = &old;
	put_pages(&data, PC_FLUSHED, (double[7]){0}, NULL);
	for (int worse = 0; worse < 2; worse++) {
		struct decision again;

		for (unsigned e = 0; e < EPOCHS && worse; e++) {
			put_way(&data, PC_FLUSHED, 8 * MIB, (struct cost_way){0, 8 * MIB, false, false}, e, 1000);
			put_way(&data, PC_FLUSHED, 8 * MIB, (struct cost_way){0, 64 * KIB, false, false}, e, 1100);
		}
		CU_ASSERT_EQUAL_FATAL(decide(&input, &again), 0);
		CU_ASSERT_EQUAL(again.kept[0], !worse);
		CU_ASSERT_EQUAL(again.tables[0].rule_count, worse ? 1 : 2);
		CU_ASSERT_EQUAL(pc_table_rule(&again.tables[0], 8 * MIB)->chunk, worse ? 0 : 64 * KIB);
		decision_free(&again);
	}
	decision_free(&decision);
	dataset_clear(&data);
}

/* A new rule for the kernel that had a chunk takes it over. */
static void test_a_new_rule_takes_over_the_chunk(void)
{
	struct pc_rule old_rules[] = {{.from = 0, .kernel = "libc"}, {.from = 4 * MIB, .chunk = 64 * KIB}};
	struct pc_table old_table = {
		.intent = PAGECLEAR_COLD, .prior = PC_FLUSHED, .threads = 1, .rule_count = 2, .rules = old_rules};
	struct pc_document old = {.table_count = 1, .tables = &old_table};
	struct dataset data = {0};
	struct decide_input input = input_of(&data);
	struct decision decision;

	NEEDS_KERNELS(2);
	strcpy(old_rules[1].kernel, name(1));
	input.kernels = 3;
	input.old = &old;
	put_pages(&data, PC_FLUSHED, (double[]){0, -0.9, -0.9, -0.9, -0.9, -0.9, -0.9}, NULL); /* two octaves earlier */
	CU_ASSERT_EQUAL_FATAL(decide(&input, &decision), 0);
	CU_ASSERT_FALSE(decision.kept[0]);
	CU_ASSERT_EQUAL(pc_table_rule(&decision.tables[0], MIB)->chunk, 0);
	CU_ASSERT_STRING_EQUAL(pc_table_rule(&decision.tables[0], 2 * MIB)->kernel, name(1));
	CU_ASSERT_EQUAL(pc_table_rule(&decision.tables[0], 2 * MIB)->chunk, 64 * KIB);
	decision_free(&decision);
	dataset_clear(&data);
}

static const struct unit_test tests[] = {
	{"no checks, no chunk", test_no_checks_no_chunk},
	{"a proven chunk is taken", test_a_proven_chunk_is_taken},
	{"every epoch must agree", test_every_epoch_must_agree},
	{"an old chunk stays until it is worse", test_an_old_chunk_stays_until_it_is_worse},
	{"the better of two chunks", test_the_better_of_two_chunks},
	{"unknown prior needs both", test_unknown_prior_needs_both},
	{"hot counts the read", test_hot_counts_the_read},
	{"direction", test_direction},
	{"what loses on base pages is forbidden", test_what_loses_on_base_pages_is_forbidden},
	{"a difference that may be none is not added", test_a_difference_that_may_be_none_is_not_added},
	{"pages under an unknown prior", test_pages_under_an_unknown_prior},
	{"few rounds say nothing of pages", test_few_rounds_say_nothing_of_pages},
	{"libc in chunks is a rule", test_libc_in_chunks_is_a_rule},
	{"a new rule takes over the chunk", test_a_new_rule_takes_over_the_chunk},
};

UNIT_MAIN("spot", tests)
