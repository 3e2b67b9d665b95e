/* Who leaves the race, who stays, and who is sent to the finals. */
#include "calibrd/race.h"

#include "tests/unit/by_hand.h"

#define MIB ((uint64_t)1 << 20)

enum { ROUNDS = 12 };

/* One kernel at one size in all five conditions: times of 1000 ns, times so much. */
struct factors {
	double clear_cached, read_cached, clear_flushed, read_flushed, single;
};

static void put_kernel(struct dataset *data, uint64_t bytes, unsigned kernel, unsigned rounds, struct factors by)
{
	put_rounds(data, (struct where){PHASE_CLEAR, PC_CACHED, bytes}, kernel, 0, rounds, 1000 * by.clear_cached);
	put_rounds(data, (struct where){PHASE_READ, PC_CACHED, bytes}, kernel, 0, rounds, 1000 * by.read_cached);
	put_rounds(data, (struct where){PHASE_CLEAR, PC_FLUSHED, bytes}, kernel, 0, rounds, 1000 * by.clear_flushed);
	put_rounds(data, (struct where){PHASE_READ, PC_FLUSHED, bytes}, kernel, 0, rounds, 1000 * by.read_flushed);
	if (by.single > 0)
		put_rounds(data, (struct where){PHASE_SINGLE, PC_FLUSHED, bytes}, kernel, 0, rounds, 1000 * by.single);
}

static const struct factors as_libc = {1, 1, 1, 1, 1}, slower = {1.2, 1, 1.2, 1, 1.2}, faster = {0.8, 1, 0.8, 1, 0.8};

static void test_the_dominated_leave(void)
{
	struct dataset data = {0};

	NEEDS_KERNELS(5);
	put_kernel(&data, 4096, 0, ROUNDS, as_libc);
	put_kernel(&data, 4096, 1, ROUNDS, slower);
	put_kernel(&data, 4096, 2, ROUNDS, faster);
	/* A win in a single condition is enough to stay: alone, hot when flushed. */
	put_kernel(&data, 4096, 3, ROUNDS, (struct factors){2, 1, 2, 1, 0.7});
	put_kernel(&data, 4096, 4, ROUNDS, (struct factors){2, 2, 1.1, 0.5, 2});
	CU_ASSERT_EQUAL(race_survivors(&data, 4096, 0x1f, 32), 0x1d);
	/* Who is not in the race neither stays nor drives anybody out. */
	CU_ASSERT_EQUAL(race_survivors(&data, 4096, 0x03, 32), 0x01);
	CU_ASSERT_EQUAL(race_survivors(&data, 4096, 0x05, 32), 0x05);
	dataset_clear(&data);
}

static void test_libc_never_leaves(void)
{
	struct dataset data = {0};

	NEEDS_KERNELS(3);
	put_kernel(&data, 4096, 0, ROUNDS, slower);
	put_kernel(&data, 4096, 1, ROUNDS, faster);
	put_kernel(&data, 4096, 2, ROUNDS, faster);
	CU_ASSERT_EQUAL(race_survivors(&data, 4096, 7, 32), 3);
	CU_ASSERT_EQUAL(race_survivors(&data, 4096, 7, 0), 1);
	dataset_clear(&data);
}

/* Within the margin of 3 % nobody wins anything: the simpler kernel stays, even if it is the slower one. */
static void test_ties_keep_the_simpler(void)
{
	struct dataset data = {0};

	NEEDS_KERNELS(4);
	put_kernel(&data, 4096, 0, ROUNDS, slower);
	put_kernel(&data, 4096, 1, ROUNDS, faster);
	put_kernel(&data, 4096, 2, ROUNDS, faster);
	put_kernel(&data, 4096, 3, ROUNDS, (struct factors){0.79, 1, 0.79, 1, 0.79});
	CU_ASSERT_EQUAL(race_survivors(&data, 4096, 0xf, 32), 0x3);
	dataset_clear(&data);
}

/* Nine rounds make the first interval at 99.5 % that is not infinite. */
static void test_few_rounds_drop_nobody(void)
{
	for (unsigned rounds = 8; rounds <= 9; rounds++) {
		struct dataset data = {0};

		NEEDS_KERNELS(2);
		put_kernel(&data, 4096, 0, rounds, as_libc);
		put_kernel(&data, 4096, 1, rounds, slower);
		CU_ASSERT_EQUAL(race_survivors(&data, 4096, 3, 32), rounds < 9 ? 3 : 1);
		dataset_clear(&data);
	}
}

static void test_a_plausible_win_stays(void)
{
	struct dataset data = {0};

	NEEDS_KERNELS(2);
	put_kernel(&data, 4096, 0, ROUNDS, as_libc);
	/* Slower in the median, but three of twelve rounds say otherwise: the interval's end is the second from below.
	 */
	for (unsigned round = 0; round < ROUNDS; round++)
		put(&data, (struct where){PHASE_CLEAR, PC_FLUSHED, 4096}, 1, 0, round,
		    1000 * (1 + 0.1 * (round % 4)) * (round < 3 ? 0.9 : 1.1));
	CU_ASSERT_EQUAL(race_survivors(&data, 4096, 3, 32), 3);
	dataset_clear(&data);
}

static void test_nobody_leaves_unheard(void)
{
	struct dataset data = {0};

	NEEDS_KERNELS(4);
	CU_ASSERT_EQUAL(race_survivors(&data, 4096, 0xf, 1), 0xf);
	put_kernel(&data, 4096, 0, 3, as_libc);
	put_kernel(&data, 4096, 1, 3, faster);
	put_kernel(&data, 4096, 2, 3, slower);
	CU_ASSERT_EQUAL(race_survivors(&data, 4096, 0xf, 1), 0x9);
	dataset_clear(&data);
}

/* The best of each condition stays before the second of any: row 4 is far from the others' gains, yet the best when
 * hot. */
static void test_the_cheapest_of_each_condition_stay(void)
{
	struct dataset data = {0};

	NEEDS_KERNELS(6);
	put_kernel(&data, 16 * MIB, 0, 3, (struct factors){1, 1, 1, 1, 0});
	put_kernel(&data, 16 * MIB, 1, 3, (struct factors){0.5, 3, 0.40, 3, 0});
	put_kernel(&data, 16 * MIB, 2, 3, (struct factors){0.6, 3, 0.45, 3, 0});
	put_kernel(&data, 16 * MIB, 3, 3, (struct factors){0.6, 3, 0.43, 3, 0});
	put_kernel(&data, 16 * MIB, 4, 3, (struct factors){0.95, 0.95, 0.95, 0.95, 0});
	put_kernel(&data, 16 * MIB, 5, 3, (struct factors){0.97, 0.97, 0.97, 0.97, 0});
	CU_ASSERT_EQUAL(race_survivors(&data, 16 * MIB, 0x3f, 2), 0x13);
	CU_ASSERT_EQUAL(race_survivors(&data, 16 * MIB, 0x3f, 3), 0x33); /* 2 % behind, before 7 % behind */
	CU_ASSERT_EQUAL(race_survivors(&data, 16 * MIB, 0x3f, 4), 0x3b);
	CU_ASSERT_EQUAL(race_survivors(&data, 16 * MIB, 0x3f, 5), 0x3f);
	dataset_clear(&data);
}

/* Two rounds are no hearing: row 1 was unlucky in its two, row 3 is known to be the worse one. */
static void test_two_rounds_are_no_hearing(void)
{
	struct dataset data = {0};

	NEEDS_KERNELS(4);
	put_kernel(&data, 16 * MIB, 0, 3, (struct factors){1, 1, 1, 1, 0});
	put_kernel(&data, 16 * MIB, 1, 2, (struct factors){2, 2, 2, 2, 0});
	put_kernel(&data, 16 * MIB, 2, 3, (struct factors){0.5, 0.5, 0.5, 0.5, 0});
	put_kernel(&data, 16 * MIB, 3, 3, (struct factors){0.9, 0.9, 0.9, 0.9, 0});
	CU_ASSERT_EQUAL(race_survivors(&data, 16 * MIB, 0xf, 2), 0x7);
	CU_ASSERT_EQUAL(race_survivors(&data, 16 * MIB, 0xb, 1), 0x3);
	dataset_clear(&data);
}

/* --- finals ------------------------------------------------------------------------------------------------------ */

static void test_finalists_come_from_the_largest_size(void)
{
	struct dataset data = {0};

	NEEDS_KERNELS(6);
	CU_ASSERT_EQUAL(race_finalists(&data, 0x3f), 1); /* nobody was heard */
	for (uint64_t bytes = MIB; bytes <= 64 * MIB; bytes *= 64) {
		bool last = bytes == 64 * MIB;

		put_kernel(&data, bytes, 0, 3, as_libc);
		put_kernel(&data, bytes, 1, 3, (struct factors){1, 1, last ? 0.5 : 3, 5, 0});
		put_kernel(&data, bytes, 2, 3, (struct factors){1, 1, last ? 0.6 : 3, 5, 0});
		put_kernel(&data, bytes, 3, 3, (struct factors){1, 1, last ? 0.9 : 0.2, 0.8, 0});
		put_kernel(&data, bytes, 4, 3, (struct factors){1, 1, last ? 0.9 : 0.1, 1, 0});
		put_kernel(&data, bytes, 5, 3, (struct factors){0.1, 1, 2, 1, 0}); /* the other prior does not count */
	}
	CU_ASSERT_EQUAL(race_finalists(&data, 0x3f), 0x0f);
	CU_ASSERT_EQUAL(race_finalists(&data, 0x3d), 0x0d);
	dataset_clear(&data);
}

static void test_a_champion_of_each_family(void)
{
	struct dataset data = {0};
	uint32_t best = 0, all = (uint32_t)(((uint64_t)1 << pc_kernel_count) - 1);

	CU_ASSERT_EQUAL(race_champions(&data, all), 1);
	/* Within a family the last row is the fastest, here. */
	for (unsigned k = 0; k < pc_kernel_count; k++) {
		unsigned ahead = 0;

		for (unsigned other = k + 1; other < pc_kernel_count; other++)
			ahead += pc_kernels[other].family == pc_kernels[k].family;
		best |= (uint32_t)(ahead < (pc_kernels[k].family == PC_NONTEMPORAL ? 2 : 1)) << k;
		put_kernel(&data, MIB, k, 3, (struct factors){1, 1, 1 - 0.01 * k, 1, 0});
	}
	CU_ASSERT_EQUAL(race_champions(&data, all), best | 1);
	CU_ASSERT_EQUAL(race_champions(&data, 1), 1);
	dataset_clear(&data);
}

/* Little memory, or 1 MiB all disturbed: the largest size below at which somebody met libc; never a larger one. */
static void test_champions_of_the_largest_size_there_is(void)
{
	struct dataset data = {0};
	struct series_key disturbed = {.bytes = MIB, .threads = 1, .kernel = 1, .prior = PC_FLUSHED};

	NEEDS_KERNELS(3);
	put_kernel(&data, MIB / 4, 0, 3, as_libc);
	put_kernel(&data, MIB / 4, 1, 3, slower);
	put_kernel(&data, MIB / 4, 2, 3, faster);
	put_kernel(&data, MIB / 2, 0, 3, as_libc);
	put_kernel(&data, MIB / 2, 1, 3, faster);
	put_kernel(&data, MIB / 2, 2, 3, slower);
	put_kernel(&data, MIB, 0, 3, as_libc);
	CU_ASSERT_EQUAL(dataset_add(&data, &disturbed, &(struct round_value){1, 0, 0}, true), 0);
	put_kernel(&data, 2 * MIB, 0, 3, as_libc);
	put_kernel(&data, 2 * MIB, 1, 3, slower);
	put_kernel(&data, 2 * MIB, 2, 3, faster);
	CU_ASSERT_EQUAL(race_champions(&data, 7), 3);
	dataset_clear(&data);
}

/* Each class at home: what is best for cached memory among those that fill the caches, for flushed among those that
 * don't. */
static void test_a_kernel_of_each_class(void)
{
	struct dataset data = {0};
	uint32_t all = (uint32_t)(((uint64_t)1 << pc_kernel_count) - 1), wanted = 1;
	unsigned last[2] = {0, 0};

	CU_ASSERT_EQUAL(race_classes(&data, all), 1);
	for (unsigned k = 0; k < pc_kernel_count; k++) {
		bool round = pc_kernels[k].family == PC_NONTEMPORAL || pc_kernels[k].family == PC_LINE;
		double better = 1 - 0.01 * k;

		put_kernel(&data, MIB, k, 3, (struct factors){round ? 1 : better, 1, round ? better : 1, 1, 0});
		last[round] = k;
	}
	for (unsigned round = 0; round < 2; round++)
		wanted |= 1u << last[round];
	CU_ASSERT_EQUAL(race_classes(&data, all), wanted);
	CU_ASSERT_EQUAL(race_classes(&data, 1), 1);
	dataset_clear(&data);
}

static void test_winners_by_clear_and_by_first_use(void)
{
	struct dataset data = {0};

	NEEDS_KERNELS(4);
	CU_ASSERT_EQUAL(race_winners(&data, MIB, PC_FLUSHED, 0xf), 0);
	put_kernel(&data, MIB, 0, 3, as_libc);
	put_kernel(&data, MIB, 1, 3, (struct factors){0.9, 3, 0.5, 3, 0});   /* clears fastest, reads back slowest */
	put_kernel(&data, MIB, 2, 3, (struct factors){1.1, 1, 0.8, 0.5, 0}); /* together: 1.3 against 2 */
	put_kernel(&data, MIB, 3, 3, slower);
	CU_ASSERT_EQUAL(race_winners(&data, MIB, PC_FLUSHED, 0xf), 6);
	CU_ASSERT_EQUAL(race_winners(&data, MIB, PC_CACHED, 0xf), 3); /* libc is one too */
	CU_ASSERT_EQUAL(race_winners(&data, MIB, PC_FLUSHED, 0xd), 4);
	CU_ASSERT_EQUAL(race_winners(&data, MIB / 2, PC_FLUSHED, 0xf), 0);
	dataset_clear(&data);
}

/* Several threads and spot checks are other questions: the largest size of those is no final. */
static void test_other_series_do_not_race(void)
{
	struct dataset data = {0};
	struct series_key key = {.bytes = 64 * MIB, .threads = 8, .prior = PC_FLUSHED};

	NEEDS_KERNELS(3);
	put_kernel(&data, MIB, 0, 3, as_libc);
	put_kernel(&data, MIB, 1, 3, faster);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(dataset_add(&data, &key, &(struct round_value){1000, 0, 0}, false), 0);
		key.kernel = 2;
		CU_ASSERT_EQUAL(dataset_add(&data, &key, &(struct round_value){1, 0, 0}, false), 0);
		key = (struct series_key){.bytes = 32 * MIB, .chunk = 65536, .threads = 1, .prior = PC_FLUSHED};
	}
	CU_ASSERT_EQUAL(race_finalists(&data, 7), 3);
	CU_ASSERT_EQUAL(race_champions(&data, 7), 3);
	dataset_clear(&data);
}

static const struct unit_test tests[] = {
	{"the dominated leave", test_the_dominated_leave},
	{"libc never leaves", test_libc_never_leaves},
	{"ties keep the simpler", test_ties_keep_the_simpler},
	{"few rounds drop nobody", test_few_rounds_drop_nobody},
	{"a plausible win stays", test_a_plausible_win_stays},
	{"nobody leaves unheard", test_nobody_leaves_unheard},
	{"the cheapest of each condition stay", test_the_cheapest_of_each_condition_stay},
	{"finalists come from the largest size", test_finalists_come_from_the_largest_size},
	{"two rounds are no hearing", test_two_rounds_are_no_hearing},
	{"champions of the largest size there is", test_champions_of_the_largest_size_there_is},
	{"a kernel of each class", test_a_kernel_of_each_class},
	{"winners by clear and by first use", test_winners_by_clear_and_by_first_use},
	{"other series do not race", test_other_series_do_not_race},
	{"a champion of each family", test_a_champion_of_each_family},
};

UNIT_MAIN("race", tests)
