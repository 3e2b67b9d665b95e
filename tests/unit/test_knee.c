/* Latency curves of known shape, disturbed in known ways. */
#include "calibrd/knee.h"

#include <stdbool.h>

#include "calibrd/random.h"
#include "tests/unit/harness.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

enum { MOST = 32 };

/* Two sizes an octave from 256 KiB to `top`: l2_ns up to l2, l3_ns up to knee, memory_ns beyond. */
static size_t curve(struct knee_point *points, uint64_t l2, uint64_t knee, uint64_t top, const double *ns)
{
	size_t count = 0;

	for (uint64_t octave = 256 * KIB; octave <= top; octave *= 2)
		for (uint64_t bytes = octave; bytes <= octave / 2 * 3 && bytes <= top; bytes += octave / 2)
			points[count++] = (struct knee_point){bytes, bytes <= l2     ? ns[0]
			                                             : bytes <= knee ? ns[1]
			                                                             : ns[2]};
	return count;
}

static void test_steps(void)
{
	static const double zen[] = {4, 11, 130}, server[] = {4.5, 25, 90};
	struct knee_point points[MOST];

	for (uint64_t knee = 2 * MIB; knee <= 32 * MIB; knee *= 2) {
		size_t count = curve(points, 512 * KIB, knee, 64 * MIB, zen);

		CU_ASSERT_EQUAL(knee_find(points, count, 512 * KIB), knee);
		CU_ASSERT_EQUAL(knee_find(points, count, 0), knee);
		count = curve(points, MIB, knee, 64 * MIB, server);
		CU_ASSERT_EQUAL(knee_find(points, count, MIB), knee);
		/* Not told of the private cache, it must not take its end for the knee. */
		CU_ASSERT_EQUAL(knee_find(points, count, 0), knee);
	}
}

static void test_slopes(void)
{
	/* Neighbours take their part: a slow rise. sqrt(10 * 120) = 34.6 lies between 6 and 8 MiB. */
	const struct knee_point points[] = {
		{1 * MIB, 10}, {2 * MIB, 10},   {4 * MIB, 13},   {6 * MIB, 30},
		{8 * MIB, 50}, {16 * MIB, 100}, {32 * MIB, 120},
	};

	CU_ASSERT_EQUAL(knee_find(points, 7, 512 * KIB), 6 * MIB);
}

static void test_flat_curves_have_none(void)
{
	static const double flat[] = {10, 10, 10}, nearly[] = {10, 10, 14};
	struct knee_point points[MOST];

	CU_ASSERT_EQUAL(knee_find(points, curve(points, 512 * KIB, 8 * MIB, 64 * MIB, flat), 512 * KIB), 0);
	CU_ASSERT_EQUAL(knee_find(points, curve(points, 512 * KIB, 8 * MIB, 64 * MIB, nearly), 512 * KIB), 0);
	CU_ASSERT_EQUAL(knee_find(points, curve(points, 512 * KIB, 8 * MIB, 64 * MIB, nearly), 0), 0);
}

static void test_too_little_to_see(void)
{
	static const double zen[] = {4, 11, 130};
	struct knee_point points[MOST] = {{0}};

	CU_ASSERT_EQUAL(knee_find(points, 0, 0), 0);
	curve(points, 512 * KIB, 8 * MIB, 64 * MIB, zen);
	CU_ASSERT_EQUAL(knee_find(points, 2, 0), 0);
	/* The curve ends before the cache does, or the private cache is said to be larger than all of it. */
	CU_ASSERT_EQUAL(knee_find(points, curve(points, 512 * KIB, 8 * MIB, 4 * MIB, zen), 512 * KIB), 0);
	CU_ASSERT_EQUAL(knee_find(points, curve(points, 512 * KIB, 8 * MIB, 64 * MIB, zen), 1024 * MIB), 0);
}

static void test_one_disturbed_point_does_not_count(void)
{
	static const double zen[] = {4, 11, 130};

	for (size_t spike = 1;; spike++) {
		struct knee_point points[MOST];
		size_t count = curve(points, 512 * KIB, 8 * MIB, 64 * MIB, zen);
		bool last = points[spike + 1].bytes == 8 * MIB;

		/* Right before the knee a spike cannot be told from an earlier knee, a step of half an octave. */
		points[spike].ns *= 20;
		CU_ASSERT_EQUAL(knee_find(points, count, 512 * KIB), last ? 6 * MIB : 8 * MIB);
		CU_ASSERT_EQUAL(knee_find(points, count, 0), last ? 6 * MIB : 8 * MIB);
		if (last)
			break;
	}
}

static void test_noise_moves_it_little(void)
{
	static const double zen[] = {4, 11, 130};
	struct random random = {7};

	for (int n = 0; n < 500; n++) {
		struct knee_point points[MOST];
		size_t count = curve(points, 512 * KIB, 8 * MIB, 64 * MIB, zen);

		for (size_t i = 0; i < count; i++)
			points[i].ns *= 0.75 + 0.5 * random_unit(&random);
		CU_ASSERT_EQUAL(knee_find(points, count, 512 * KIB), 8 * MIB);
	}
}

static const struct unit_test tests[] = {
	{"steps", test_steps},
	{"slopes", test_slopes},
	{"flat curves have none", test_flat_curves_have_none},
	{"too little to see", test_too_little_to_see},
	{"one disturbed point does not count", test_one_disturbed_point_does_not_count},
	{"noise moves it little", test_noise_moves_it_little},
};

UNIT_MAIN("knee", tests)
