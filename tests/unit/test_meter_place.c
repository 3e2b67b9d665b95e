/*
 * Where the meter of this host has kernels clear: how long a piece, which arena and pages, how far from the next one.
 */
#include "calibrd/meter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"
#include "tests/unit/meter_spy.h"

/* --- lengths ----------------------------------------------------------------------------------------------------- */

/* Lengths of all rounds: those of one ask, least and most. */
static void find_lengths(struct meter_ask ask, size_t *least, size_t *most)
{
	struct meter_sample out;

	*least = SIZE_MAX;
	*most = 0;
	for (uint64_t seed = 0; seed < 100; seed++) {
		CU_ASSERT_EQUAL(meter->ops->round_begin(meter, seed), 0);
		seen.calls = seen.dirty = 0;
		CU_ASSERT_EQUAL(meter->ops->sample(meter, &ask, &out), 0);
		meter->ops->round_end(meter);
		*least = seen.len[0] < *least ? seen.len[0] : *least;
		*most = seen.len[0] > *most ? seen.len[0] : *most;
	}
}

/* Where powers of two are special they are not sat upon, unless that is what was asked for. */
static void test_lengths_vary(void)
{
	const uint64_t sizes[] = {128, 2048, 4096, 65536, 2 * MIB, 4 * MIB};
	size_t least, most;

	start();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct meter_ask ask = ask_clear(sizes[i], PC_CACHED);
		bool varies = sizes[i] == 2048 || sizes[i] == 4 * MIB;

		find_lengths(ask, &least, &most);
		CU_ASSERT(most <= sizes[i] && most > sizes[i] - sizes[i] / 64);
		CU_ASSERT(varies ? least < sizes[i] - sizes[i] / 20 && least >= sizes[i] - sizes[i] / 16
		                 : least == sizes[i]);
		ask.exact = true;
		find_lengths(ask, &least, &most);
		CU_ASSERT_EQUAL(most, sizes[i]);
		CU_ASSERT_EQUAL(least, sizes[i]);
	}
	stand_stop();
}

/* --- places ------------------------------------------------------------------------------------------------------ */

/* Over many places: everything that is cleared lies within one arena, and buffers of a batch do not touch. */
static void test_stays_inside(void)
{
	const uint64_t sizes[] = {1, 64, 128, 1000, 2048, 4095, 8192, 100000, 1536 << 10, 2 * MIB - 1, 3 * MIB, TARGET};

	start();
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		char *low = NULL, *high = NULL;

		for (uint64_t seed = 0; seed < (sizes[s] < MIB ? 300 : 20); seed++) {
			struct meter_ask ask = ask_clear(sizes[s], PC_FLUSHED);
			struct meter_sample out;

			ask.read = false;
			CU_ASSERT_EQUAL(meter->ops->round_begin(meter, seed), 0);
			CU_ASSERT_EQUAL(sample(ask, &out), 0);
			low = low == NULL || seen.low < low ? seen.low : low;
			high = seen.high > high ? seen.high : high;
		}
		CU_ASSERT(high - low <= (sizes[s] < 2 * MIB ? SMALL_ARENA : TARGET));
	}
	stand_stop();
}

static int compare_places(const void *a, const void *b)
{
	char *const *x = a, *const *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Buffers of a batch share no line and begin in different sets of a cache; their offsets are mixed below 4 KiB. */
static void test_batch_is_staggered(void)
{
	struct meter_sample out;
	unsigned offsets = 0;

	start();
	CU_ASSERT_EQUAL(sample(ask_clear(256, PC_CACHED), &out), 0);
	CU_ASSERT_FATAL(seen.calls >= 8 && seen.calls <= CALLS);
	for (unsigned i = 0; i < seen.calls; i++) {
		CU_ASSERT_EQUAL((uintptr_t)seen.at[i] % 16, 0);
		offsets |= 1u << (uintptr_t)seen.at[i] % 64 / 16;
	}
	CU_ASSERT(__builtin_popcount(offsets) > 1);
	qsort(seen.at, seen.calls, sizeof(seen.at[0]), compare_places);
	for (unsigned i = 1; i < seen.calls; i++) {
		uintptr_t gap = (uintptr_t)seen.at[i] / 64 - (uintptr_t)seen.at[i - 1] / 64;

		CU_ASSERT(gap == 0 || (gap > 256 / 64 && gap % 64 != 0)); /* 0: the batch came again */
	}
	stand_stop();
}

static char *place(uint64_t seed, uint64_t bytes, enum pc_prior prior)
{
	struct meter_sample out;

	CU_ASSERT_EQUAL(meter->ops->round_begin(meter, seed), 0);
	CU_ASSERT_EQUAL(sample(ask_clear(bytes, prior), &out), 0);
	return seen.first;
}

static void test_place_of_a_round(void)
{
	const uint64_t sizes[] = {256, 65536, 1 * MIB, 2 * MIB};
	struct meter_sample out;

	start();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char *first = place(1, sizes[i], PC_FLUSHED);
		unsigned others = 0;

		CU_ASSERT_EQUAL(sample(ask_clear(sizes[i], PC_FLUSHED), &out), 0);
		CU_ASSERT_PTR_EQUAL(seen.first, first);
		CU_ASSERT_EQUAL(sample(ask_clear(sizes[i], PC_CACHED), &out), 0);
		CU_ASSERT_PTR_EQUAL(seen.first, first);
		for (uint64_t seed = 2; seed < 20; seed++)
			others += place(seed, sizes[i], PC_FLUSHED) != first;
		CU_ASSERT(others >= 9);
		CU_ASSERT_PTR_EQUAL(place(1, sizes[i], PC_FLUSHED), first);
	}
	stand_stop();
}

/* --- pages ------------------------------------------------------------------------------------------------------- */

/* Whether the mapping that holds an address has that flag in smaps: "hg" and "nh" are the two advices. */
static bool has_flag(const char *address, const char *flag)
{
	char line[512];
	bool inside = false, found = false;
	FILE *file = fopen("/proc/self/smaps", "r");

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			inside = from <= (uintptr_t)address && (uintptr_t)address < to;
		else if (inside && strncmp(line, "VmFlags:", 8) == 0)
			found = strstr(line, flag) != NULL;
	}
	fclose(file);
	return found;
}

static char *place_on(uint64_t bytes, bool base_pages)
{
	struct meter_ask ask = ask_clear(bytes, PC_FLUSHED);
	struct meter_sample out;

	ask.base_pages = base_pages;
	CU_ASSERT_EQUAL(sample(ask, &out), 0);
	check_calls(bytes);
	return seen.first;
}

static void test_base_pages(void)
{
	const uint64_t sizes[] = {2 * MIB, 3 * MIB + 1, 8 * MIB, 9 * MIB, BASE};

	start();
	if (!has_flag(place_on(2 * MIB, false), " hg")) {
		unit_skip("a kernel without transparent huge pages");
		stand_stop();
		return;
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (uint64_t seed = 0; seed < 5; seed++) {
			CU_ASSERT_EQUAL(meter->ops->round_begin(meter, seed), 0);
			CU_ASSERT(has_flag(place_on(sizes[i], true), " nh"));
			CU_ASSERT(has_flag(place_on(sizes[i], false), " hg"));
		}
	CU_ASSERT(has_flag(place_on(4096, true), " nh"));
	CU_ASSERT(has_flag(place_on(4096, false), " nh"));
	stand_stop();
}

static const struct unit_test tests[] = {
	{"lengths vary", test_lengths_vary},
	{"stays inside", test_stays_inside},
	{"batch is staggered", test_batch_is_staggered},
	{"place of a round", test_place_of_a_round},
	{"base pages", test_base_pages},
};

UNIT_MAIN("meter_place", tests)
