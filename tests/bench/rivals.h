/*
 * Other ways to write each kernel, to hold ours against: from the loops that Linux, glibc and FreeBSD use to longer
 * unrolls. They clear exactly and fence like ours, but only for extents of 256 bytes or more at multiples of 8.
 */
#ifndef BENCH_RIVALS_H
#define BENCH_RIVALS_H

#include <stddef.h>

/* A table of these ends with NULLs. */
struct rival {
	const char *kernel; /* row of the table that it competes with */
	const char *shape;
	void (*clear)(void *dst, size_t len);
};

#if defined(__x86_64__)
#include "kernels/cpu.h"
#include "kernels/x86.h"

/* Both ends by stores that overlap the aligned middle, before it. */
static inline struct pc_span ends_first(void *dst, size_t len)
{
	pc_overlap_end(dst, len);
	return pc_overlap_start(dst, len);
}

/* Likewise, in order of address. */
#define IN_ORDER pc_overlap_start(dst, len)
#define THEN_END pc_overlap_end(dst, len)

/* --- string instructions --- */

/* Whole extent at once, as Linux' memset_erms() and clear_page_rep() do; the odd bytes at the end by stosb. */
#define PLAIN_REP(name, instruction, unit)                                                                             \
	static void rival_##name##_plain(void *dst, size_t len)                                                        \
	{                                                                                                              \
		size_t count = len / (unit), rest = len % (unit);                                                      \
		__asm__ volatile("rep " instruction : "+D"(dst), "+c"(count) : "a"(0) : "memory");                     \
		if (rest != 0)                                                                                         \
			__asm__ volatile("rep stosb" : "+D"(dst), "+c"(rest) : "a"(0) : "memory");                     \
	}

PLAIN_REP(stosb, "stosb", 1)
PLAIN_REP(stosl, "stosl", 4)
PLAIN_REP(stosq, "stosq", 8)

/* The start is aligned, the tail is part of the string. */
#define HEAD_REP(name, instruction, unit, align)                                                                       \
	static void rival_##name##_head##align(void *dst, size_t len)                                                  \
	{                                                                                                              \
		unsigned char *at = dst, *end = at + len;                                                              \
		size_t count, rest;                                                                                    \
		pc_store64(at);                                                                                        \
		at += (align) - ((uintptr_t)at & ((align)-1));                                                         \
		count = (size_t)(end - at) / (unit);                                                                   \
		rest = (size_t)(end - at) % (unit);                                                                    \
		__asm__ volatile("rep " instruction : "+D"(at), "+c"(count) : "a"(0) : "memory");                      \
		if (rest != 0)                                                                                         \
			pc_edge(at, rest);                                                                             \
	}

HEAD_REP(stosb, "stosb", 1, 16)
HEAD_REP(stosb, "stosb", 1, 64)
HEAD_REP(stosl, "stosl", 4, 64)
HEAD_REP(stosq, "stosq", 8, 64)

/* Both ends by overlapping stores, an aligned middle by the string. */
#define MIDDLE_REP(name, instruction, unit)                                                                            \
	static void rival_##name##_middle(void *dst, size_t len)                                                       \
	{                                                                                                              \
		struct pc_span middle = ends_first(dst, len);                                                          \
		size_t count = (size_t)(middle.end - middle.at) / (unit);                                              \
		__asm__ volatile("rep " instruction : "+D"(middle.at), "+c"(count) : "a"(0) : "memory");               \
	}

MIDDLE_REP(stosb, "stosb", 1)
MIDDLE_REP(stosl, "stosl", 4)
MIDDLE_REP(stosq, "stosq", 8)

/* --- vector loops --- */

#define OFFSETS_16_64 "0,16,32,48"
#define OFFSETS_16_128 OFFSETS_16_64 ",64,80,96,112"
#define OFFSETS_16_256 OFFSETS_16_128 ",128,144,160,176,192,208,224,240"
#define OFFSETS_16_512 OFFSETS_16_256 ",256,272,288,304,320,336,352,368,384,400,416,432,448,464,480,496"
#define OFFSETS_32_64 "0,32"
#define OFFSETS_32_128 "0,32,64,96"
#define OFFSETS_32_256 OFFSETS_32_128 ",128,160,192,224"
#define OFFSETS_32_512 OFFSETS_32_256 ",256,288,320,352,384,416,448,480"
#define OFFSETS_64_64 "0"
#define OFFSETS_64_128 "0,64"
#define OFFSETS_64_256 "0,64,128,192"
#define OFFSETS_64_512 OFFSETS_64_256 ",256,320,384,448"
#define OFFSETS_8_64 "0,8,16,24,32,40,48,56"
#define OFFSETS_8_128 OFFSETS_8_64 ",64,72,80,88,96,104,112,120"
#define OFFSETS_8_256 OFFSETS_8_128 ",128,136,144,152,160,168,176,184,192,200,208,216,224,232,240,248"

#define LOOP(name, step, ends, zero, width, instruction, tidy, last)                                                   \
	static void rival_##name##_##step(void *dst, size_t len)                                                       \
	{                                                                                                              \
		PC_RUN(ends, zero, step, PC_EACH(OFFSETS_##width##_##step, instruction),                               \
		       PC_EACH(OFFSETS_##width##_64, instruction), tidy);                                              \
		last;                                                                                                  \
	}

#define LOOPS(name, ends, zero, width, instruction, tidy, last)                                                        \
	LOOP(name, 64, ends, zero, width, instruction, tidy, last)                                                     \
	LOOP(name, 128, ends, zero, width, instruction, tidy, last)                                                    \
	LOOP(name, 256, ends, zero, width, instruction, tidy, last)

#define LONG_LOOPS(name, ends, zero, width, instruction, tidy, last)                                                   \
	LOOPS(name, ends, zero, width, instruction, tidy, last)                                                        \
	LOOP(name, 512, ends, zero, width, instruction, tidy, last)

#define LINES pc_whole_lines(dst, len, 64)
#define SSE_ZERO "pxor %%xmm0, %%xmm0"
#define AVX_ZERO "vpxor %%xmm0, %%xmm0, %%xmm0"

LONG_LOOPS(sse2, IN_ORDER, SSE_ZERO, 16, "movdqa %%xmm0", "", THEN_END)
LONG_LOOPS(avx2, IN_ORDER, AVX_ZERO, 32, "vmovdqa %%ymm0", "vzeroupper", THEN_END)
LONG_LOOPS(avx512, IN_ORDER, AVX_ZERO, 64, "vmovdqa64 %%zmm0", "vzeroupper", THEN_END)
LOOPS(movnti, LINES, "xor %%eax, %%eax", 8, "movnti %%rax", "", pc_fence())
LONG_LOOPS(sse2nt, LINES, SSE_ZERO, 16, "movntdq %%xmm0", "", pc_fence())
LONG_LOOPS(avxnt, LINES, AVX_ZERO, 32, "vmovntdq %%ymm0", "vzeroupper", pc_fence())
LONG_LOOPS(avx512nt, LINES, AVX_ZERO, 64, "vmovntdq %%zmm0", "vzeroupper", pc_fence())

/* As glibc's memset: an aligned loop of four vectors that ends before the last four, which follow unaligned. */
#define GLIBC_STYLE(name, zero, vector, store_a, store_u, tidy)                                                        \
	static void rival_##name##_glibc(void *dst, size_t len)                                                        \
	{                                                                                                              \
		unsigned char *at = dst, *last = at + len - 4 * (vector);                                              \
		__asm__ volatile(zero "\n\t" store_u ", (%[at])\n\t"                                                   \
		                      "add $" #vector ", %[at]\n\t"                                                    \
		                      "and $-" #vector ", %[at]\n"                                                     \
		                      "1:\n\t" store_a ", (%[at])\n\t" store_a ", " #vector "(%[at])\n\t" store_a      \
		                      ", 2*" #vector "(%[at])\n\t" store_a ", 3*" #vector "(%[at])\n\t"                \
		                      "add $4*" #vector ", %[at]\n\t"                                                  \
		                      "cmp %[last], %[at]\n\t"                                                         \
		                      "jb 1b\n\t" store_u ", (%[last])\n\t" store_u ", " #vector                       \
		                      "(%[last])\n\t" store_u ", 2*" #vector "(%[last])\n\t" store_u ", 3*" #vector    \
		                      "(%[last])\n\t" tidy                                                             \
		                 : [at] "+r"(at)                                                                       \
		                 : [last] "r"(last)                                                                    \
		                 : "xmm0", "cc", "memory");                                                            \
	}

GLIBC_STYLE(sse2, SSE_ZERO, 16, "movdqa %%xmm0", "movdqu %%xmm0", "")
GLIBC_STYLE(avx2, AVX_ZERO, 32, "vmovdqa %%ymm0", "vmovdqu %%ymm0", "vzeroupper")

/* As Linux' clear_page_orig() with MOVNTI for its MOVs: counts down, eight stores a turn from the extent's own start.
 */
static void rival_movnti_linux(void *dst, size_t len)
{
	unsigned char *at = dst;
	size_t turns = len / 64;

	__asm__ volatile(
		"xor %%eax, %%eax\n\t"
		".p2align 4\n"
		"1:\n\t"
		"dec %[turns]\n\t"
		"movnti %%rax, (%[at])\n\t" PC_EACH("8,16,24,32,40,48,56", "movnti %%rax") "\n\t"
											   "lea 64(%[at]), %[at]\n\t"
											   "jnz 1b"
		: [at] "+r"(at), [turns] "+r"(turns)
		:
		: "rax", "cc", "memory");
	pc_edge(at, len % 64);
	pc_fence();
}

/* Two or four 4 KiB pages side by side, as glibc's large memcpy goes: more DRAM pages open at a time. */
#define PAGES_SIDE_BY_SIDE(pages, stores)                                                                              \
	static void rival_avxnt_pages##pages(void *dst, size_t len)                                                    \
	{                                                                                                              \
		struct pc_span lines = pc_whole_lines(dst, len, 64), rest;                                             \
		size_t blocks = (size_t)(lines.end - lines.at) / ((pages)*4096);                                       \
		for (; blocks > 0; blocks--, lines.at += ((pages)-1) * 4096) {                                         \
			unsigned char *turn = lines.at + 4096;                                                         \
			__asm__ volatile("vpxor %%xmm0, %%xmm0, %%xmm0\n"                                              \
			                 "1:\n\t" PC_EACH(stores, "vmovntdq %%ymm0") "\n\t"                            \
			                                                             "add $64, %[at]\n\tcmp %[turn], " \
			                                                             "%[at]\n\tjne 1b\n\tvzeroupper"   \
			                 : [at] "+r"(lines.at)                                                         \
			                 : [turn] "r"(turn)                                                            \
			                 : "xmm0", "cc", "memory");                                                    \
		}                                                                                                      \
		rest = lines;                                                                                          \
		PC_RUN(rest, AVX_ZERO, 64, PC_EACH("0,32", "vmovntdq %%ymm0"), PC_EACH("0,32", "vmovntdq %%ymm0"),     \
		       "vzeroupper");                                                                                  \
		pc_fence();                                                                                            \
	}

PAGES_SIDE_BY_SIDE(2, "0,32,4096,4128")
PAGES_SIDE_BY_SIDE(4, "0,32,4096,4128,8192,8224,12288,12320")

/* --- whole lines --- */

#define CLZERO_NEXT "clzero\n\tadd %[line], %%rax\n\t"

#define CLZERO_LOOP(turns, instructions)                                                                               \
	static void rival_clzero_x##turns(void *dst, size_t len)                                                       \
	{                                                                                                              \
		const size_t line = pc_cpu_line();                                                                     \
		struct pc_span lines = pc_whole_lines(dst, len, line);                                                 \
		size_t blocks = (size_t)(lines.end - lines.at) / (line * (turns));                                     \
		for (; blocks > 0; blocks--)                                                                           \
			__asm__ volatile(instructions : "+a"(lines.at) : [line] "r"(line) : "cc", "memory");           \
		while (lines.at != lines.end)                                                                          \
			__asm__ volatile(CLZERO_NEXT : "+a"(lines.at) : [line] "r"(line) : "cc", "memory");            \
		pc_fence();                                                                                            \
	}

CLZERO_LOOP(1, CLZERO_NEXT)
CLZERO_LOOP(2, CLZERO_NEXT CLZERO_NEXT)
CLZERO_LOOP(4, CLZERO_NEXT CLZERO_NEXT CLZERO_NEXT CLZERO_NEXT)
CLZERO_LOOP(8, CLZERO_NEXT CLZERO_NEXT CLZERO_NEXT CLZERO_NEXT CLZERO_NEXT CLZERO_NEXT CLZERO_NEXT CLZERO_NEXT)

static const unsigned char rival_zeroes[64] __attribute__((aligned(64)));

#define MOVDIR64B_NEXT "movdir64b (%[from]), %[at]\n\tadd $64, %[at]\n\t"

#define MOVDIR64B_LOOP(turns, instructions)                                                                            \
	static void rival_movdir64b_x##turns(void *dst, size_t len)                                                    \
	{                                                                                                              \
		struct pc_span lines = pc_whole_lines(dst, len, 64);                                                   \
		size_t blocks = (size_t)(lines.end - lines.at) / (64 * (turns));                                       \
		for (; blocks > 0; blocks--)                                                                           \
			__asm__ volatile(instructions                                                                  \
			                 : [at] "+r"(lines.at)                                                         \
			                 : [from] "r"(rival_zeroes)                                                    \
			                 : "cc", "memory");                                                            \
		while (lines.at != lines.end)                                                                          \
			__asm__ volatile(MOVDIR64B_NEXT                                                                \
			                 : [at] "+r"(lines.at)                                                         \
			                 : [from] "r"(rival_zeroes)                                                    \
			                 : "cc", "memory");                                                            \
		pc_fence();                                                                                            \
	}

MOVDIR64B_LOOP(1, MOVDIR64B_NEXT)
MOVDIR64B_LOOP(4, MOVDIR64B_NEXT MOVDIR64B_NEXT MOVDIR64B_NEXT MOVDIR64B_NEXT)

/* clang-format off */
#define RIVAL(kernel, shape) {#kernel, #shape, rival_##kernel##_##shape}

static const struct rival rivals[] = {
	RIVAL(stosb, plain), RIVAL(stosb, head16), RIVAL(stosb, head64), RIVAL(stosb, middle),
	RIVAL(stosl, plain), RIVAL(stosl, head64), RIVAL(stosl, middle),
	RIVAL(stosq, plain), RIVAL(stosq, head64), RIVAL(stosq, middle),
	RIVAL(sse2, 64), RIVAL(sse2, 128), RIVAL(sse2, 256), RIVAL(sse2, 512), RIVAL(sse2, glibc),
	RIVAL(avx2, 64), RIVAL(avx2, 128), RIVAL(avx2, 256), RIVAL(avx2, 512), RIVAL(avx2, glibc),
	RIVAL(avx512, 64), RIVAL(avx512, 128), RIVAL(avx512, 256), RIVAL(avx512, 512),
	RIVAL(movnti, 64), RIVAL(movnti, 128), RIVAL(movnti, 256), RIVAL(movnti, linux),
	RIVAL(sse2nt, 64), RIVAL(sse2nt, 128), RIVAL(sse2nt, 256), RIVAL(sse2nt, 512),
	RIVAL(avxnt, 64), RIVAL(avxnt, 128), RIVAL(avxnt, 256), RIVAL(avxnt, 512),
	RIVAL(avxnt, pages2), RIVAL(avxnt, pages4),
	RIVAL(avx512nt, 64), RIVAL(avx512nt, 128), RIVAL(avx512nt, 256), RIVAL(avx512nt, 512),
	RIVAL(clzero, x1), RIVAL(clzero, x2), RIVAL(clzero, x4), RIVAL(clzero, x8),
	RIVAL(movdir64b, x1), RIVAL(movdir64b, x4),
	{NULL, NULL, NULL},
};
/* clang-format on */
#else
static const struct rival rivals[] = {{NULL, NULL, NULL}};
#endif

#endif
