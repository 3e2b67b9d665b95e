/*
 * What the x86-64 kernels share: the ragged ends of an extent, and the loop over its aligned middle.
 * Internal to kernels/. Nothing here calls libc, so that every body is async-signal-safe.
 */
#ifndef PC_X86_H
#define PC_X86_H

#include <stddef.h>
#include <stdint.h>

/* The part of an extent that is left to a kernel's own instruction; empty if at == end. */
struct pc_span {
	unsigned char *at, *end;
};

typedef uint16_t pc_any16 __attribute__((may_alias, aligned(1)));
typedef uint32_t pc_any32 __attribute__((may_alias, aligned(1)));
typedef uint64_t pc_any64 __attribute__((may_alias, aligned(1)));
typedef long long pc_any128 __attribute__((vector_size(16), may_alias, aligned(1)));

/* volatile: the compiler may neither join these stores into a call of memset nor drop them. */
#define PC_STORE(type, at) (*(volatile type *)(at) = (type){0})

static inline void pc_store64(unsigned char *at)
{
	PC_STORE(pc_any128, at);
	PC_STORE(pc_any128, at + 16);
	PC_STORE(pc_any128, at + 32);
	PC_STORE(pc_any128, at + 48);
}

/* Fewer than 16 bytes: two stores that overlap, so that two compares find the size. */
static inline void pc_few(unsigned char *at, size_t len)
{
	if (len >= 8) {
		PC_STORE(pc_any64, at);
		PC_STORE(pc_any64, at + len - 8);
	} else if (len >= 4) {
		PC_STORE(pc_any32, at);
		PC_STORE(pc_any32, at + len - 4);
	} else if (len >= 2) {
		PC_STORE(pc_any16, at);
		PC_STORE(pc_any16, at + len - 2);
	} else if (len == 1) {
		PC_STORE(unsigned char, at);
	}
}

/* Any length by ordinary stores, meant for up to 128 bytes: heads, tails and small extents. */
static inline void pc_edge(unsigned char *at, size_t len)
{
	for (; len > 128; at += 64, len -= 64)
		pc_store64(at);
	if (len < 16) {
		pc_few(at, len);
		return;
	}
	if (len > 64) {
		pc_store64(at);
		pc_store64(at + len - 64);
		return;
	}
	PC_STORE(pc_any128, at);
	PC_STORE(pc_any128, at + len - 16);
	if (len > 32) {
		PC_STORE(pc_any128, at + 16);
		PC_STORE(pc_any128, at + len - 32);
	}
}

/*
 * For ordinary stores: clears the start, overlapping the aligned middle that it returns, a multiple of 64 bytes. The
 * end is left to pc_overlap_end(): storing it first costs 7-9 % at 2 KiB flushed on Zen 3, presumably since stores
 * leave in order and a tail that misses holds up the middle. Up to 128 bytes all is done here, nothing is left of the
 * middle.
 */
static inline struct pc_span pc_overlap_start(void *dst, size_t len)
{
	unsigned char *at = dst, *end = at + len;

	if (len <= 128) {
		pc_edge(at, len);
		return (struct pc_span){end, end};
	}
	pc_store64(at);
	return (struct pc_span){at + 64 - ((uintptr_t)at & 63), end - ((uintptr_t)end & 63)};
}

static inline void pc_overlap_end(void *dst, size_t len)
{
	if (len > 128)
		pc_store64((unsigned char *)dst + len - 64);
}

/*
 * For stores that go round the caches: clears the lines that the extent shares with others by ordinary stores, and
 * returns the whole lines. Both ends first: to prefetch them and store them last was twice as slow at 2 KiB flushed. A
 * partly filled write-combining buffer would be flushed as several partial bus writes (Intel SDM vol. 1, 10.4.6.2; AMD
 * APM vol. 2, 7.5), and a line written both ways would leave the cache again.
 */
static inline struct pc_span pc_whole_lines(void *dst, size_t len, size_t line)
{
	unsigned char *at = dst, *end = at + len;
	size_t head = -(uintptr_t)at & (line - 1), tail = (uintptr_t)end & (line - 1);

	if (len < head + line) {
		pc_edge(at, len);
		return (struct pc_span){end, end};
	}
	pc_edge(at, head);
	pc_edge(end - tail, tail);
	return (struct pc_span){at + head, end - tail};
}

/*
 * The loop over a span of 64-byte lines: `zero` sets up the register, `stores` clears `step` bytes at %[at], `line` 64,
 * `tidy` ends. rax and xmm0 (with what lies above it) are free for use. One statement, so that every compiler at every
 * level makes the same loop, sees no memset in it, and no sanitizer adds to it.
 */
#define PC_RUN(span, zero, step_bytes, stores, line, tidy)                                                             \
	do {                                                                                                           \
		const struct pc_span span_ = (span);                                                                   \
		unsigned char *at_ = span_.at;                                                                         \
		unsigned char *turn_ = at_ + (size_t)(span_.end - at_) / (step_bytes) * (step_bytes);                  \
		if (at_ == span_.end)                                                                                  \
			break;                                                                                         \
		__asm__ volatile(zero "\n\t"                                                                           \
		                      "cmp %[turn], %[at]\n\t"                                                         \
		                      "je 2f\n\t"                                                                      \
		                      ".p2align 5\n"                                                                   \
		                      "1:\n\t" stores "\n\t"                                                           \
		                      "add %[step], %[at]\n\t"                                                         \
		                      "cmp %[turn], %[at]\n\t"                                                         \
		                      "jne 1b\n"                                                                       \
		                      "2:\n\t"                                                                         \
		                      "cmp %[end], %[at]\n\t"                                                          \
		                      "je 4f\n"                                                                        \
		                      "3:\n\t" line "\n\t"                                                             \
		                      "add $64, %[at]\n\t"                                                             \
		                      "cmp %[end], %[at]\n\t"                                                          \
		                      "jne 3b\n"                                                                       \
		                      "4:\n\t" tidy                                                                    \
		                 : [at] "+r"(at_)                                                                      \
		                 : [turn] "r"(turn_), [end] "r"(span_.end), [step] "i"(step_bytes)                     \
		                 : "rax", "xmm0", "cc", "memory");                                                     \
	} while (0)

/* `instruction` once for each of the offsets, a list like "0,16,32,48". */
#define PC_EACH(offsets, instruction) ".irp off," offsets "\n\t" instruction ", \\off(%[at])\n\t.endr"

#endif
