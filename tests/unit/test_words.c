/* The table of words that clears look at, which must agree with the rules it was made from; and the probe's
 * settings. */
#include <stdint.h>

#include "libpolicy/rate.h"
#include "libpolicy/words.h"
#include "tests/unit/harness.h"
#include "tests/unit/policy_files.h"

static void assert_word(const struct pageclear_policy *policy, unsigned intent, size_t len)
{
	struct pageclear_choice choice = choose(policy, len, intent, 1);
	struct pc_pick pick = pc_word_pick(pc_words_at(&policy->words, pc_row(intent), len), len);
	size_t power = choice.chunk;

	while ((power & (power - 1)) != 0)
		power &= power - 1;
	CU_ASSERT_STRING_EQUAL(pick.kernel->name, choice.kernel);
	CU_ASSERT_EQUAL(pick.chunk, power);
	/* What zero() goes by where there are no chunks, which is the shorter way. */
	uint64_t word = pc_words_at(&policy->words, pc_row(intent), len);

	if (pc_word_is_unchunked(word)) {
		CU_ASSERT_EQUAL(pick.chunk, 0);
		CU_ASSERT_PTR_EQUAL(pc_word_kernel(word, len), pick.kernel);
	}
}

static void assert_words_around(const struct pageclear_policy *policy, unsigned intent, size_t len)
{
	for (size_t at = len - 2; at != len + 3; at++)
		if (at != 0)
			assert_word(policy, intent, at);
}

/* At every half octave's ends, and at splits that lie anywhere in one. */
static void test_words_agree_with_rules(void)
{
	char clear[8192];
	size_t froms[40];
	int used = snprintf(clear, sizeof(clear),
	                    "clear:\n  - intent: cold\n    when: {threads: 1, prior: flushed}\n"
	                    "    rules:\n      - {from: 0, kernel: libc}\n");
	uint64_t random = 20261130;

	for (unsigned i = 0; i < 40; i++) {
		size_t octave = (size_t)1 << (i < 37 ? i + 1 : i + 23);

		random = random * 6364136223846793005u + 1442695040888963407u;
		/* Beyond 128 GiB a split is as fine as the word's 36 bits, so there only the half octave's own start.
		 */
		froms[i] = octave + (i < 37 ? (random >> 32) % (octave / 2) : 0);
		used += snprintf(clear + used, sizeof(clear) - (size_t)used,
		                 "      - {from: %zu, kernel: %s, chunk: %u}\n", froms[i],
		                 i % 3 == 0   ? "libc"
		                 : i % 3 == 1 ? "stosb"
		                              : "sse2nt",
		                 i % 4 == 0 ? 0 : i * 3000);
	}
	const struct pageclear_policy *policy = open_text(policy_text(1, here(), pc_arch, clear));
	for (unsigned i = 0; i < 40; i++)
		assert_words_around(policy, PAGECLEAR_COLD | PAGECLEAR_FLUSHED, froms[i]);
	for (unsigned h = 0; h < PC_HALF_OCTAVES; h++)
		for (unsigned i = 0; i < INTENTS; i++)
			assert_words_around(policy, all_intents[i], (size_t)pc_half_octave_least(h));
	assert_word(policy, PAGECLEAR_COLD | PAGECLEAR_FLUSHED, SIZE_MAX);
	pageclear_policy_close(policy);
}

static void test_half_octaves(void)
{
	CU_ASSERT_EQUAL(pc_half_octave(0), 0);
	CU_ASSERT_EQUAL(pc_half_octave(1), 0);
	CU_ASSERT_EQUAL(pc_half_octave(2), 2);
	CU_ASSERT_EQUAL(pc_half_octave(3), 3);
	CU_ASSERT_EQUAL(pc_half_octave(4096), 24);
	CU_ASSERT_EQUAL(pc_half_octave(6143), 24);
	CU_ASSERT_EQUAL(pc_half_octave(6144), 25);
	CU_ASSERT_EQUAL(pc_half_octave(UINT64_MAX), 127);
	for (unsigned h = 0; h < PC_HALF_OCTAVES; h++) {
		if (h == 1)
			continue;
		CU_ASSERT_EQUAL(pc_half_octave(pc_half_octave_least(h)), h);
		CU_ASSERT_EQUAL(pc_half_octave_fraction(pc_half_octave_least(h)), 0);
		if (h > 2)
			CU_ASSERT_EQUAL(pc_half_octave(pc_half_octave_least(h) - 1), h - 1);
	}
}

/* A split that the 36 bits can't say exactly is rounded up: never a kernel below its size. */
static void test_far_splits_round_up(void)
{
	const size_t from = ((size_t)1 << 50) + 12345;
	char clear[400];

	snprintf(clear, sizeof(clear),
	         "clear:\n  - intent: cold\n    when: {threads: 1, prior: flushed}\n    rules:\n"
	         "      - {from: 0, kernel: libc}\n      - {from: %zu, kernel: sse2}\n"
	         "      - {from: %zu, kernel: stosb}\n",
	         from, ((size_t)1 << 52) - 1);
	const struct pageclear_policy *policy = open_text(policy_text(1, here(), pc_arch, clear));

	assert_word(policy, PAGECLEAR_COLD | PAGECLEAR_FLUSHED, from - 1);
	assert_word(policy, PAGECLEAR_COLD | PAGECLEAR_FLUSHED, from + ((size_t)1 << 14));
	assert_word(policy, PAGECLEAR_COLD | PAGECLEAR_FLUSHED, ((size_t)1 << 52) - 2);
	pageclear_policy_close(policy);
}

static void assert_kept(const char *pinned_at, const size_t lens[6], const char *const kernels[6])
{
	char clear[600];

	/* 65536-98303 is one half octave: four spans begin in it or before. */
	snprintf(clear, sizeof(clear),
	         "clear:\n  - intent: cold\n    when: {threads: 1, prior: flushed}\n    rules:\n"
	         "      - {from: 0, kernel: libc}\n      - {from: 70000, kernel: stosb%s}\n"
	         "      - {from: 80000, kernel: sse2%s}\n      - {from: 90000, kernel: stosq%s}\n",
	         pinned_at[0] == '1' ? ", pinned: true" : "", pinned_at[1] == '1' ? ", pinned: true" : "",
	         pinned_at[2] == '1' ? ", pinned: true" : "");
	const struct pageclear_policy *policy = open_text(policy_text(1, here(), pc_arch, clear));
	for (size_t i = 0; i < 6; i++) {
		struct pc_pick pick =
			pc_word_pick(pc_words_at(&policy->words, PC_ROW_COLD + PC_FLUSHED, lens[i]), lens[i]);
		const struct pc_kernel *kernel = pc_kernel_find(kernels[i]);

		CU_ASSERT_STRING_EQUAL(pick.kernel->name, kernel == NULL ? "libc" : kernels[i]);
	}
	pageclear_policy_close(policy);
}

/* A half octave keeps its first and last span, but a pinned one in between beats the last. */
static void test_pins_win_a_place(void)
{
	static const size_t lens[] = {65536, 70000, 80000, 90000, 98303, 98304};

	assert_kept("000", lens, (const char *const[]){"libc", "libc", "libc", "stosq", "stosq", "stosq"});
	assert_kept("100", lens, (const char *const[]){"libc", "stosb", "stosb", "stosb", "stosb", "stosq"});
	assert_kept("010", lens, (const char *const[]){"libc", "libc", "sse2", "sse2", "sse2", "stosq"});
	assert_kept("001", lens, (const char *const[]){"libc", "libc", "libc", "stosq", "stosq", "stosq"});
	assert_kept("011", lens, (const char *const[]){"libc", "libc", "sse2", "sse2", "sse2", "stosq"});
}

/* To the byte, where one rule of libc's ends: what stands before it in the same half octave pays for no look-up. */
static void test_plain_ends_where_libc_does(void)
{
	static const size_t froms[] = {257, 2049, 2064, 3071, 3072, 1000001};
	char clear[400];

	for (size_t i = 0; i < sizeof(froms) / sizeof(froms[0]); i++) {
		snprintf(clear, sizeof(clear),
		         "clear:\n  - intent: cold\n    when: {threads: 1, prior: cached}\n"
		         "    rules: [{from: 0, kernel: libc}, {from: %zu, kernel: stosb}]\n",
		         froms[i]);
		const struct pageclear_policy *policy = open_text(policy_text(1, here(), pc_arch, clear));

		CU_ASSERT(pc_words_plain(&policy->words, PAGECLEAR_COLD | PAGECLEAR_CACHED, froms[i] - 1));
		CU_ASSERT_FALSE(pc_words_plain(&policy->words, PAGECLEAR_COLD | PAGECLEAR_CACHED, froms[i]));
		pageclear_policy_close(policy);
	}
}

/* Below what is said to be plain nothing but libc is to be had, and no probe; from there on something is. */
static void test_plain(void)
{
	static const char *const probes[] = {"", "probe: {from: 1000, lines: 5, slow_ns: 60}\n",
	                                     "probe: {from: 700000, lines: 5, slow_ns: 60}\n"};

	for (size_t p = 0; p < 3; p++) {
		const struct pageclear_policy *policy = open_text(probing_text(probes[p]));
		const struct pc_words *words = &policy->words;

		for (unsigned intent = 0; intent < 80; intent++)
			for (unsigned h = pc_half_octave(PC_SMALL); h < PC_HALF_OCTAVES; h++) {
				uint64_t least = pc_half_octave_least(h);
				uint64_t most =
					h + 1 == PC_HALF_OCTAVES ? UINT64_MAX - 1 : pc_half_octave_least(h + 1) - 1;
				unsigned row = pc_row(intent);
				bool probed =
					pc_words_probes(words, row, most) && pc_words_probe_matters(words, row, most);

				bool open = pc_words_at(words, row, least) != 0 || probed;
				bool begins = intent < PC_INTENTS && h > pc_half_octave(PC_SMALL) &&
				              !pc_words_plain(words, intent, most) &&
				              pc_words_plain(words, intent, least - 1);

				CU_ASSERT(!pc_words_plain(words, intent, most) || !open);
				CU_ASSERT(!begins || open);
			}
		pageclear_policy_close(policy);
	}
	CU_ASSERT_FALSE(pc_words_plain(&(struct pc_words){0}, PAGECLEAR_HOT, 4096));
}

static void test_rate(void)
{
	struct pc_moment begin = pc_moment_now();
	double first = pc_rate_since(begin), second = pc_rate_since(begin);

	CU_ASSERT_TRUE(pc_ticks_allowed());
	CU_ASSERT_TRUE(first > 0 && second > 0);
	CU_ASSERT_TRUE(second / first > 0.8 && second / first < 1.25);
	CU_ASSERT_DOUBLE_EQUAL(pc_rate_since((struct pc_moment){0}), 0, 0);
	CU_ASSERT_DOUBLE_EQUAL(pc_rate_since((struct pc_moment){.ticks = UINT64_MAX, .ns = begin.ns}), 0, 0);
}

static void test_probe_settings(void)
{
	const struct pageclear_policy *policy = open_text(probing_text("probe: {from: 1000, lines: 5, slow_ns: 60}\n"));
	const struct pc_words *words = &policy->words;

	CU_ASSERT_EQUAL(words->probe_lines, 5);
	CU_ASSERT_TRUE(words->probe_slow > 0);
	CU_ASSERT_FALSE(pc_words_probes(words, PC_ROW_HOT, 999));
	CU_ASSERT_TRUE(pc_words_probes(words, PC_ROW_HOT, 1000));
	CU_ASSERT_TRUE(pc_words_probes(words, PC_ROW_COLD, SIZE_MAX));
	CU_ASSERT_FALSE(pc_words_probes(words, PC_ROW_HOT + PC_CACHED, 1000));
	CU_ASSERT_FALSE(pc_words_probes(words, PC_ROW_COLD + PC_FLUSHED, 1000));
	CU_ASSERT_FALSE(pc_words_probes(words, PC_ROW_SCRUB, 1000));
	pageclear_policy_close(policy);

	static const char *const none[] = {"", "probe: {from: 0, lines: 5, slow_ns: 60}\n",
	                                   "probe: {from: 1000, lines: 5, slow_ns: 0}\n"};
	for (size_t i = 0; i < 3; i++) {
		policy = open_text(probing_text(none[i]));
		CU_ASSERT_FALSE(pc_words_probes(&policy->words, PC_ROW_HOT, SIZE_MAX));
		pageclear_policy_close(policy);
	}
}

static const struct unit_test tests[] = {
	{"half_octaves", test_half_octaves},
	{"words_agree_with_rules", test_words_agree_with_rules},
	{"far_splits_round_up", test_far_splits_round_up},
	{"pins_win_a_place", test_pins_win_a_place},
	{"plain", test_plain},
	{"plain_ends_where_libc_does", test_plain_ends_where_libc_does},
	{"rate", test_rate},
	{"probe_settings", test_probe_settings},
};

UNIT_MAIN("words", tests)
