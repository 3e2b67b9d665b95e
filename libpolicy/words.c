#include "libpolicy/words.h"

static uint64_t log2_chunk(const struct pc_span *span)
{
	return span->chunk == 0 ? 0 : 63 - (uint64_t)__builtin_clzll(span->chunk);
}

/* Rounded up, so that no size below the split gets what is meant for those above; past 36 bits: no size is above. */
static uint64_t split_of(uint64_t from)
{
	uint64_t split = pc_half_octave_fraction(from);

	return split + ((pc_normal(from) << 2 & 0xfffffff) != 0);
}

/* The second of the two spans that are kept. */
static const struct pc_span *kept_above(const struct pc_span *below, size_t last)
{
	const struct pc_span *span = below, *end = pc_span_at(below, last);

	while (span != end) {
		span++;
		if (span->pinned)
			break;
	}
	return span;
}

/* The largest size of half octave h. */
static uint64_t most(unsigned h)
{
	return h + 1 == PC_HALF_OCTAVES ? UINT64_MAX : pc_half_octave_least(h + 1) - 1;
}

static uint64_t word_for(const struct pc_span *spans, size_t first, size_t last)
{
	const struct pc_span *below = pc_span_at(spans, first), *above = kept_above(below, last);
	uint64_t split = below == above ? 0 : split_of(above->from);

	if (split >> 36 != 0) {
		above = below;
		split = 0;
	}
	return pc_kernel_index(below->kernel) | (uint64_t)pc_kernel_index(above->kernel) << 8 |
	       log2_chunk(below) << 16 | log2_chunk(above) << 22 | split << 28;
}

void pc_words_fill(struct pc_words *words, unsigned row, const struct pc_span *spans)
{
	for (unsigned h = 0; h < PC_HALF_OCTAVES; h++) {
		uint64_t word = word_for(spans, (size_t)pc_half_octave_least(h), (size_t)most(h));

		atomic_store_explicit(&words->word[row][h], word, memory_order_relaxed);
	}
}

/* Whether anything but libc, whole, may be what a clear of half octave h takes, or a probe could tell. */
static bool is_open(const struct pc_words *words, unsigned row, unsigned h)
{
	return pc_words_at(words, row, most(h)) != 0 ||
	       (pc_words_probes(words, row, most(h)) && pc_words_probe_matters(words, row, most(h)));
}

/* The first size of half octave h at which a word's upper kernel holds. */
static uint64_t upper_from(uint64_t word, unsigned h)
{
	uint64_t low = pc_half_octave_least(h), high = most(h);

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (pc_word_is_above(word, middle))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static uint64_t plain_below(const struct pc_words *words, unsigned row)
{
	for (unsigned h = pc_half_octave(PC_SMALL); h < PC_HALF_OCTAVES; h++) {
		uint64_t least = pc_half_octave_least(h), word = pc_words_at(words, row, least);
		struct pc_pick first = pc_word_pick(word, least);

		if (!is_open(words, row, h))
			continue;
		if (pc_words_probes(words, row, most(h)) || first.kernel != &pc_kernels[0] || first.chunk != 0)
			return least;
		return upper_from(word, h);
	}
	return UINT64_MAX;
}

void pc_words_find_plain(struct pc_words *words)
{
	uint64_t below[PC_ROWS];

	for (unsigned row = 0; row < PC_ROWS; row++)
		below[row] = plain_below(words, row);
	for (unsigned intent = 0; intent < PC_INTENTS; intent++)
		atomic_store_explicit(&words->plain_below[intent], below[pc_row(intent)], memory_order_relaxed);
}

static void copy_word(_Atomic uint64_t *to, const _Atomic uint64_t *from)
{
	atomic_store_explicit(to, atomic_load_explicit(from, memory_order_relaxed), memory_order_relaxed);
}

void pc_words_copy(struct pc_words *to, const struct pc_words *from)
{
	atomic_store_explicit(&to->probe_lines, atomic_load_explicit(&from->probe_lines, memory_order_relaxed),
	                      memory_order_relaxed);
	copy_word(&to->probe_slow, &from->probe_slow);
	copy_word(&to->probe_from, &from->probe_from);
	for (unsigned intent = 0; intent < PC_INTENTS; intent++)
		copy_word(&to->plain_below[intent], &from->plain_below[intent]);
	for (unsigned row = 0; row < PC_ROWS; row++)
		for (unsigned h = 0; h < PC_HALF_OCTAVES; h++)
			copy_word(&to->word[row][h], &from->word[row][h]);
}
