/* What `calibctl emit` makes of a loader's list and of measured costs. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calibctl/emit_child.h"
#include "calibctl/emit_loader.h"
#include "calibctl/emit_thresholds.h"
#include "tests/unit/harness.h"

/* --- the loader's list -------------------------------------------------------------------------------------------- */

static const char list[] = "glibc.rtld.nns: 0x4 (min: 0x1, max: 0x10)\n"
			   "glibc.cpu.x86_shstk:\n"
			   "glibc.cpu.x86_rep_stosb_threshold_2: 0x9 (min: 0x1, max: 0x10)\n"
			   "glibc.cpu.x86_rep_stosb_threshold: 0x800 (min: 0x1, max: 0xffffffffffffffff)\n"
			   "glibc.pthread.rseq: 1 (min: 0, max: 1)\n"
			   "broken.one: 0x800 (min: 0x1\n"
			   "broken.two: zero (min: 0x1, max: 0x2)\n"
			   "broken.three: 1 (min: 5, max: 2)\n"
			   "broken.four: 0x10000000000000000 (min: 0x1, max: 0x2)\n"
			   "broken.five: -1 (min: 0, max: 2)\n"
			   "last.one: 7 (min: 6, max: 8)";

static void assert_found(const char *name, uint64_t present, uint64_t least, uint64_t most)
{
	struct loader_tunable found;

	CU_ASSERT_TRUE(loader_find(list, name, &found));
	CU_ASSERT_TRUE(found.listed);
	CU_ASSERT_EQUAL(found.present, present);
	CU_ASSERT_EQUAL(found.least, least);
	CU_ASSERT_EQUAL(found.most, most);
}

static void test_lists_are_read(void)
{
	static const char *const missing[] = {"glibc.cpu.x86_shstk",
	                                      "glibc.cpu.x86_rep_stosb",
	                                      "glibc.cpu",
	                                      "",
	                                      "x86_rep_stosb_threshold",
	                                      "broken.one",
	                                      "broken.two",
	                                      "broken.three",
	                                      "broken.four",
	                                      "broken.five"};
	struct loader_tunable found;

	assert_found("glibc.rtld.nns", 4, 1, 16);
	assert_found("glibc.cpu.x86_rep_stosb_threshold", 2048, 1, UINT64_MAX);
	assert_found("glibc.pthread.rseq", 1, 0, 1);
	assert_found("last.one", 7, 6, 8);
	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
		CU_ASSERT_FALSE(loader_find(list, missing[i], &found));
		CU_ASSERT_FALSE(found.listed);
	}
	CU_ASSERT_FALSE(loader_find("", "last.one", &found));
}

static int ask_shell(const char *script, size_t most, int deadline_ms, char **text)
{
	char *arguments[] = {"sh", "-c", (char *)script, NULL};
	struct pc_why why = {""};

	*text = NULL;
	int r = child_ask(&(struct child_ask){"/bin/sh", arguments, "some=1", most, deadline_ms, NULL}, text, &why);
	CU_ASSERT_EQUAL(r < 0, why.text[0] != '\0');
	return r;
}

static void test_children_are_asked(void)
{
	struct pc_why why;
	char *text;

	setenv("GLIBC_TUNABLES", "other=2", 1);
	CU_ASSERT_EQUAL(ask_shell("printf %s \"$GLIBC_TUNABLES\"; echo unheard >&2", 6, 10000, &text), 0);
	CU_ASSERT_STRING_EQUAL(text, "some=1");
	free(text);
	unsetenv("GLIBC_TUNABLES");
	CU_ASSERT_EQUAL(ask_shell("echo half; exit 3", 100, 10000, &text), -EIO);
	CU_ASSERT_EQUAL(ask_shell("kill -9 $$", 100, 10000, &text), -EIO);
	CU_ASSERT_EQUAL(ask_shell("printf 1234567", 6, 10000, &text), -EFBIG);
	CU_ASSERT_EQUAL(ask_shell("while :; do echo more; done", 1000, 10000, &text), -EFBIG);
	CU_ASSERT_EQUAL(ask_shell("exec sleep 1000", 100, 50, &text), -ETIMEDOUT);
	CU_ASSERT_PTR_NULL(text);
	CU_ASSERT_EQUAL(
		child_ask(&(struct child_ask){"/nonexistent", (char *[]){"x", NULL}, NULL, 10, 100, NULL}, &text, &why),
		-ENOENT);
}

/* Why it failed, in its own words, whatever else it has to say, and however much. */
static void test_children_are_blamed(void)
{
	static const char *const scripts[][2] = {
		{"echo 'bench: run 1 of 1' >&2; printf 'calibctl: no \\033 luck\\nTry more\\n' >&2; exit 3",
	         "/bin/sh: it failed: calibctl: no ? luck"},
		{"echo calibctl: at once >&2; kill -9 $$", "/bin/sh: it failed: calibctl: at once"},
		{"echo calibctl: at once >&2; yes | head -c 1000000 >&2; exit 1",
	         "/bin/sh: it failed: calibctl: at once"},
		{"echo no calibctl here >&2; exit 1", "/bin/sh: it failed"},
		{"exit 1", "/bin/sh: it failed"},
	};

	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		char *arguments[] = {"sh", "-c", (char *)scripts[i][0], NULL}, *text = NULL;
		const struct child_ask ask = {"/bin/sh", arguments, NULL, 100, 10000, "calibctl"};
		struct pc_why why;

		CU_ASSERT_EQUAL(child_ask(&ask, &text, &why), -EIO);
		CU_ASSERT_STRING_EQUAL(why.text, scripts[i][1]);
	}
}

/* --- thresholds --------------------------------------------------------------------------------------------------- */

static const struct thresholds glibc_2_36 = {2048, UINT64_MAX}, glibc_2_41 = {UINT64_MAX, 24 << 20};
static const struct thresholds_range everything = {true, true, {1, 0x4040}, {UINT64_MAX, UINT64_MAX}};

static struct thresholds_costs costs;

/* Octaves from 1 KiB to 64 MiB, all paths alike, each known to one per cent. */
static void level(void)
{
	costs = (struct thresholds_costs){0};
	for (uint64_t bytes = 1024; bytes <= 64 << 20; bytes *= 2) {
		for (unsigned c = 0; c < THRESHOLDS_CASES; c++)
			for (unsigned path = 0; path < THRESHOLDS_PATHS; path++) {
				costs.low[costs.count][c][path] = -0.01;
				costs.high[costs.count][c][path] = 0.01;
			}
		costs.bytes[costs.count++] = bytes;
	}
}

/* From one size to another a path costs so much more, in one case or, with THRESHOLDS_CASES, in all. */
static void shift(unsigned which, enum thresholds_path path, uint64_t from, uint64_t to, double l)
{
	for (size_t i = 0; i < costs.count; i++)
		for (unsigned c = 0; c < THRESHOLDS_CASES; c++)
			if (costs.bytes[i] >= from && costs.bytes[i] <= to &&
			    (c == which || which == THRESHOLDS_CASES)) {
				costs.l[i][c][path] += l;
				costs.low[i][c][path] += l;
				costs.high[i][c][path] += l;
			}
}

static struct thresholds_choice chosen(const struct thresholds *present, const struct thresholds_range *range, bool own)
{
	struct thresholds_choice choice;

	thresholds_choose(&choice, &costs, present, range, own);
	return choice;
}

static void assert_stosb(const struct thresholds_choice *choice, uint64_t value)
{
	CU_ASSERT_TRUE(choice->set_stosb);
	CU_ASSERT_FALSE(choice->set_nontemporal);
	CU_ASSERT_EQUAL(choice->value.stosb, value);
}

static void assert_nothing(const struct thresholds_choice *choice)
{
	CU_ASSERT_FALSE(choice->set_stosb);
	CU_ASSERT_FALSE(choice->set_nontemporal);
	CU_ASSERT_EQUAL(choice->gain, 1);
}

static void test_paths(void)
{
	const struct thresholds usual = {2048, 65536}, crossed = {65536, 2048};

	CU_ASSERT_EQUAL(thresholds_path(&usual, 2048), THRESHOLDS_STORES);
	CU_ASSERT_EQUAL(thresholds_path(&usual, 2049), THRESHOLDS_REP);
	CU_ASSERT_EQUAL(thresholds_path(&usual, 65535), THRESHOLDS_REP);
	CU_ASSERT_EQUAL(thresholds_path(&usual, 65536), THRESHOLDS_NONTEMPORAL);
	CU_ASSERT_EQUAL(thresholds_path(&crossed, 65536), THRESHOLDS_STORES);
	CU_ASSERT_EQUAL(thresholds_path(&crossed, 65537), THRESHOLDS_NONTEMPORAL);
	CU_ASSERT_EQUAL(thresholds_path(&glibc_2_41, UINT64_MAX), THRESHOLDS_STORES);
}

static void test_nothing_gains(void)
{
	struct thresholds_choice choice;

	level();
	choice = chosen(&glibc_2_36, &everything, true);
	assert_nothing(&choice);
	/* A tenth in one of four cases is 2.5 % in all: less than a change must earn. */
	shift(2, THRESHOLDS_STORES, 4096, 65536, -0.1);
	choice = chosen(&glibc_2_36, &everything, true);
	assert_nothing(&choice);
	costs.count = 0;
	choice = chosen(&glibc_2_36, &everything, true);
	assert_nothing(&choice);
}

static void test_stores_win_up_to_a_size(void)
{
	struct thresholds_choice choice;

	level();
	shift(2, THRESHOLDS_STORES, 4096, 131072, -0.4);
	shift(2, THRESHOLDS_STORES, 262144, UINT64_MAX, 0.4);
	choice = chosen(&glibc_2_36, &everything, true);
	assert_stosb(&choice, 131072);
	CU_ASSERT_EQUAL(choice.from, 4096);
	CU_ASSERT_EQUAL(choice.to, 131072);
	CU_ASSERT_DOUBLE_EQUAL(choice.gain, exp(0.1), 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(choice.gains[0], 1, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(choice.gains[2], exp(0.4), 1e-9);
}

/* What lies within its own interval of nothing earns nothing, however large it looks. */
static void test_noise_moves_nothing(void)
{
	struct thresholds_choice choice;

	level();
	shift(THRESHOLDS_CASES, THRESHOLDS_STORES, 4096, 131072, -0.2);
	for (size_t i = 0; i < costs.count; i++)
		for (unsigned c = 0; c < THRESHOLDS_CASES; c++)
			costs.high[i][c][THRESHOLDS_STORES] = 0.05;
	choice = chosen(&glibc_2_36, &everything, true);
	assert_nothing(&choice);
}

/* A loss that is sure in one case, or a size of which nobody knows, is not stepped over. */
static void test_losses_and_gaps_stop_it(void)
{
	struct thresholds_choice choice;

	level();
	shift(THRESHOLDS_CASES, THRESHOLDS_STORES, 4096, 1 << 20, -0.3);
	shift(1, THRESHOLDS_STORES, 65536, 65536, 0.4);
	choice = chosen(&glibc_2_36, &everything, true);
	assert_stosb(&choice, 32768);
	for (size_t i = 0; i < costs.count; i++)
		if (costs.bytes[i] == 16384)
			costs.l[i][3][THRESHOLDS_STORES] = costs.low[i][3][THRESHOLDS_STORES] = NAN;
	choice = chosen(&glibc_2_36, &everything, true);
	assert_stosb(&choice, 8192);
	/* On average too no case may lose: here a cached one by 2 %, without any one size that does for sure. */
	level();
	shift(2, THRESHOLDS_STORES, 4096, 1 << 20, -0.5);
	shift(0, THRESHOLDS_STORES, 4096, 1 << 20, 0.02);
	choice = chosen(&glibc_2_36, &everything, true);
	assert_nothing(&choice);
}

static void test_the_loaders_range_counts(void)
{
	struct thresholds_range range = everything;
	struct thresholds_choice choice;

	level();
	shift(THRESHOLDS_CASES, THRESHOLDS_STORES, 4096, 1 << 20, -0.3);
	range.most.stosb = 100000;
	choice = chosen(&glibc_2_36, &range, true);
	assert_stosb(&choice, 65536);
	range.least.stosb = 80000;
	choice = chosen(&glibc_2_36, &range, true);
	assert_nothing(&choice);
	range = everything;
	range.stosb = false;
	choice = chosen(&glibc_2_36, &range, true);
	assert_nothing(&choice);
}

/* Where REP STOSB is off, non-temporal stores are out of reach without the other threshold. */
static void test_nontemporal_takes_both(void)
{
	struct thresholds_range range = everything;
	struct thresholds_choice choice;

	level();
	shift(THRESHOLDS_CASES, THRESHOLDS_NONTEMPORAL, 1024, 8 << 20, 1);
	shift(THRESHOLDS_CASES, THRESHOLDS_NONTEMPORAL, 16 << 20, UINT64_MAX, -0.5);
	choice = chosen(&glibc_2_41, &everything, true);
	CU_ASSERT_TRUE(choice.set_stosb && choice.set_nontemporal);
	CU_ASSERT_EQUAL(choice.from, 16 << 20);
	for (uint64_t bytes = 1024; bytes <= 64 << 20; bytes *= 2)
		CU_ASSERT_EQUAL(thresholds_path(&choice.value, bytes),
		                bytes < 16 << 20 ? THRESHOLDS_STORES : THRESHOLDS_NONTEMPORAL);
	CU_ASSERT_EQUAL(thresholds_path(&choice.value, 12 << 20), THRESHOLDS_NONTEMPORAL); /* no third path between */
	range.nontemporal = false;
	choice = chosen(&(struct thresholds){UINT64_MAX, UINT64_MAX}, &range, true);
	assert_nothing(&choice);
}

static void assert_nontemporal(const struct thresholds_choice *choice, uint64_t value, uint64_t size)
{
	CU_ASSERT_FALSE(choice->set_stosb);
	CU_ASSERT_TRUE(choice->set_nontemporal);
	CU_ASSERT_EQUAL(choice->value.nontemporal, value);
	CU_ASSERT_EQUAL(choice->from, size);
	CU_ASSERT_EQUAL(choice->to, size);
}

/* One size where non-temporal stores win; from twice that on they are taken already. */
static struct thresholds_choice won_at(uint64_t bytes, uint64_t nontemporal)
{
	static const struct thresholds_range from_one = {true, true, {1, 1}, {UINT64_MAX, UINT64_MAX}};

	level();
	shift(THRESHOLDS_CASES, THRESHOLDS_NONTEMPORAL, bytes, bytes, -0.5);
	return chosen(&(struct thresholds){512, nontemporal}, &from_one, true);
}

/* Above 2 MiB and below 4 KiB a size speaks for lengths down to a sixteenth below it: a threshold at the size itself
 * leaves them where they were. */
static void test_sizes_speak_for_what_lies_below_them(void)
{
	struct thresholds_choice choice = won_at(32 << 20, 60 << 20);

	assert_nontemporal(&choice, 30 << 20, 32 << 20);
	choice = won_at(32 << 20, 32 << 20);
	assert_nontemporal(&choice, 30 << 20, 32 << 20);
	choice = won_at(32 << 20, 30 << 20);
	assert_nothing(&choice);
	choice = won_at(2 << 20, 3840 << 10);
	assert_nontemporal(&choice, 2 << 20, 2 << 20);
	choice = won_at(4096, 8192);
	assert_nontemporal(&choice, 4096, 4096);
	choice = won_at(2048, 2048);
	assert_nontemporal(&choice, 1920, 2048);
}

/* For another libc than the measured one the present path costs what its kernel costs. */
static void test_another_libc(void)
{
	struct thresholds_choice choice;

	level();
	shift(THRESHOLDS_CASES, THRESHOLDS_REP, 4096, 65536, 0.3);
	choice = chosen(&glibc_2_36, &everything, true);
	assert_nothing(&choice);
	choice = chosen(&glibc_2_36, &everything, false);
	assert_stosb(&choice, 65536);
	CU_ASSERT_DOUBLE_EQUAL(choice.gain, exp(0.3), 1e-9);
}

static const struct unit_test tests[] = {
	{"lists_are_read", test_lists_are_read},
	{"children_are_asked", test_children_are_asked},
	{"children_are_blamed", test_children_are_blamed},
	{"paths", test_paths},
	{"nothing_gains", test_nothing_gains},
	{"stores_win_up_to_a_size", test_stores_win_up_to_a_size},
	{"noise_moves_nothing", test_noise_moves_nothing},
	{"losses_and_gaps_stop_it", test_losses_and_gaps_stop_it},
	{"the_loaders_range_counts", test_the_loaders_range_counts},
	{"nontemporal_takes_both", test_nontemporal_takes_both},
	{"sizes_speak_for_what_lies_below_them", test_sizes_speak_for_what_lies_below_them},
	{"another_libc", test_another_libc},
};

UNIT_MAIN("calibctl_emit", tests)
