/*
 * What pageclear_zero looks at: a fixed table of atomic words, one a row and half octave of sizes. Every word makes
 * sense beside every other, from whichever generation, so a reload overwrites them under the readers' feet and frees
 * nothing. All zero is a valid table: libc for everything, no probe.
 */
#ifndef PC_WORDS_H
#define PC_WORDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "libpolicy/document.h"

/* A row a pair of intent and prior: hot unknown, cached, flushed; cold likewise; scrub. */
enum { PC_ROW_HOT = 0, PC_ROW_COLD = 3, PC_ROW_SCRUB = 6, PC_ROWS = 7, PC_HALF_OCTAVES = 128 };

/* Intents as callers write them, hints included, that mean anything but hot without a hint. */
enum { PC_INTENTS = 64 };

/* Up to so many bytes every clear is libc's, inside the caller: below, even the look-up would cost more than it finds.
 */
enum { PC_SMALL = 256 };

struct pc_words {
	/* By intent: below so many bytes it is libc, whole, without a probe. What most calls need to know: a look-up in
	 * the rows is four times as many instructions, and in front of a string instruction none of them are hidden. */
	_Atomic uint64_t plain_below[PC_INTENTS];
	_Atomic uint64_t probe_from; /* bytes; 0: never */
	_Atomic uint64_t probe_slow; /* ticks of pc_ticks(); a longer load missed every cache */
	_Atomic uint32_t probe_lines;
	/* Bits 0-7 the kernel below the split, 8-15 from it on, 16-21 and 22-27 log2 of their chunks (0: whole),
	 * 28-63 the split, as pc_half_octave_fraction(). */
	_Atomic uint64_t word[PC_ROWS][PC_HALF_OCTAVES];
};

struct pc_pick {
	const struct pc_kernel *kernel;
	size_t chunk; /* bytes a call covers, 0: all */
};

/* The row for an intent as callers write it, with its hint. */
static inline unsigned pc_row(unsigned intent)
{
	/* Indexed by the intent's bits: columns HOT, COLD, SCRUB, unknown. What is no known combination stays hot. */
	static const uint8_t rows[PC_INTENTS] = {
		[0] = PC_ROW_HOT + PC_UNKNOWN,  [1] = PC_ROW_COLD + PC_UNKNOWN,  [2] = PC_ROW_SCRUB,  /* no hint */
		[16] = PC_ROW_HOT + PC_CACHED,  [17] = PC_ROW_COLD + PC_CACHED,  [18] = PC_ROW_SCRUB, /* CACHED */
		[32] = PC_ROW_HOT + PC_FLUSHED, [33] = PC_ROW_COLD + PC_FLUSHED, [34] = PC_ROW_SCRUB, /* FLUSHED */
		[48] = PC_ROW_HOT + PC_UNKNOWN, [49] = PC_ROW_COLD + PC_UNKNOWN, [50] = PC_ROW_SCRUB, /* both */
	};

	return intent < PC_INTENTS ? rows[intent] : PC_ROW_HOT;
}

/* len's top bit moved to bit 63; len is not 0. */
static inline uint64_t pc_normal(uint64_t len)
{
	return len << __builtin_clzll(len);
}

/* Twice the log2 of len, and 1 if it lies in the upper half of its octave; of 0 as of 1. Written as x86-64 does it in
 * the fewest steps: up to len 1 the shift brings the top bit, which is 0. */
static inline unsigned pc_half_octave(uint64_t len)
{
	unsigned log2 = 63 ^ (unsigned)__builtin_clzll(len | 1);

	return 2 * log2 + (unsigned)(len >> ((log2 - 1) & 63) & 1);
}

/* How far into its half octave len lies, as 36 bits: exact up to 128 GiB. */
static inline uint64_t pc_half_octave_fraction(uint64_t len)
{
	return pc_normal(len) << 2 >> 28;
}

/* 0: libc, whole. */
static inline uint64_t pc_words_at(const struct pc_words *words, unsigned row, uint64_t len)
{
	return atomic_load_explicit(&words->word[row][pc_half_octave(len)], memory_order_relaxed);
}

/* True if len lies above a word's split. */
static inline bool pc_word_is_above(uint64_t word, uint64_t len)
{
	return pc_half_octave_fraction(len) >= word >> 28;
}

static inline const struct pc_kernel *pc_word_kernel(uint64_t word, uint64_t len)
{
	return &pc_kernels[word >> (pc_word_is_above(word, len) ? 8 : 0) & 255];
}

static inline struct pc_pick pc_word_pick(uint64_t word, uint64_t len)
{
	unsigned log2_chunk = (unsigned)(word >> (pc_word_is_above(word, len) ? 22 : 16)) & 63;

	return (struct pc_pick){.kernel = pc_word_kernel(word, len),
	                        .chunk = log2_chunk == 0 ? 0 : (size_t)1 << log2_chunk};
}

/* True if one kernel holds for the whole half octave, without chunks. */
static inline bool pc_word_is_whole(uint64_t word)
{
	return word >> 16 == 0;
}

static inline const struct pc_kernel *pc_word_whole(uint64_t word)
{
	return &pc_kernels[word >> 8];
}

/* True if one or two kernels hold for the half octave, without chunks. */
static inline bool pc_word_is_unchunked(uint64_t word)
{
	return (word & 0xfff0000) == 0;
}

/* True if nothing but libc, whole, without a probe, may be what the intent wants there. False says nothing. */
static inline bool pc_words_plain(const struct pc_words *words, unsigned intent, uint64_t len)
{
	if (__builtin_expect(intent >= PC_INTENTS, 0))
		return false;
	return __builtin_expect(len < atomic_load_explicit(&words->plain_below[intent], memory_order_relaxed), 1);
}

/* True if the row leaves the prior open and len is worth finding it out. */
static inline bool pc_words_probes(const struct pc_words *words, unsigned row, uint64_t len)
{
	uint64_t from = atomic_load_explicit(&words->probe_from, memory_order_relaxed);

	return from - 1 < len && (row == PC_ROW_HOT + PC_UNKNOWN || row == PC_ROW_COLD + PC_UNKNOWN);
}

/* True if the answer would change the choice. */
static inline bool pc_words_probe_matters(const struct pc_words *words, unsigned row, uint64_t len)
{
	return pc_words_at(words, row + PC_CACHED, len) != pc_words_at(words, row + PC_FLUSHED, len);
}

/* One rule, ready to run; in the order of struct pageclear_choice. */
struct pc_span {
	const char *name;
	void (*clear)(void *, size_t);
	size_t chunk;    /* bytes a call covers, 0: all */
	size_t from, to; /* bytes; to SIZE_MAX: no end */
	const struct pc_kernel *kernel;
	bool pinned; /* by an admin */
};

/* From a span that begins at or below len, the one that holds there. */
static inline const struct pc_span *pc_span_at(const struct pc_span *span, size_t len)
{
	while (len >= span->to && span->to != SIZE_MAX)
		span++;
	return span;
}

/* The smallest size of half octave h. h 1 has none: its place is that of h 0. */
static inline uint64_t pc_half_octave_least(unsigned h)
{
	uint64_t octave = (uint64_t)1 << h / 2;

	return octave + (h % 2 == 0 ? 0 : octave / 2);
}

/* Fills one row from spans that ascend, touch, and begin at 0. A half octave tells two spans apart: its first, and its
 * last, which is all that calibrd's grid has. Of more than two, as pins may make, the first pinned one takes the last
 * one's place, and so reaches up to the half octave's end. A chunk counts as the power of two below. */
void pc_words_fill(struct pc_words *words, unsigned row, const struct pc_span *spans);

/* Once rows and probe are filled. */
void pc_words_find_plain(struct pc_words *words);

/* Overwrites to word by word; readers of to may be at work. */
void pc_words_copy(struct pc_words *to, const struct pc_words *from);

#endif
