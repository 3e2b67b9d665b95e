/*
 * Non-temporal stores, one row a register width: whole lines gathered in write-combining buffers go round the caches,
 * and cached copies are thrown out. Shared lines at both ends get ordinary stores.
 *
 * Shape, by tests/bench/shapes on an EPYC Milan: 64 to 512 bytes a turn are alike everywhere (0.97-1.03, the noise),
 * since it is memory that is waited for. Linux' MOVNTI loop, which streams partial lines too, is equal on aligned
 * extents and 2-4 % faster on unaligned flushed 64 KiB. Two pages side by side lose up to 28 %, four up to 67 %.
 * 64-byte stores take 256 bytes a turn as in temporal.c, unmeasured.
 */
#include "kernels/bodies.h"

#if defined(__x86_64__)
#include "kernels/x86.h"

enum { LINE = 64 };

void pc_movnti(void *dst, size_t len)
{
	struct pc_span lines = pc_whole_lines(dst, len, LINE);

	PC_RUN(lines, "xor %%eax, %%eax", 64, PC_EACH("0,8,16,24,32,40,48,56", "movnti %%rax"),
	       PC_EACH("0,8,16,24,32,40,48,56", "movnti %%rax"), "");
}

void pc_sse2nt(void *dst, size_t len)
{
	struct pc_span lines = pc_whole_lines(dst, len, LINE);

	PC_RUN(lines, "pxor %%xmm0, %%xmm0", 128, PC_EACH("0,16,32,48,64,80,96,112", "movntdq %%xmm0"),
	       PC_EACH("0,16,32,48", "movntdq %%xmm0"), "");
}

void pc_avxnt(void *dst, size_t len)
{
	struct pc_span lines = pc_whole_lines(dst, len, LINE);

	PC_RUN(lines, "vpxor %%xmm0, %%xmm0, %%xmm0", 128, PC_EACH("0,32,64,96", "vmovntdq %%ymm0"),
	       PC_EACH("0,32", "vmovntdq %%ymm0"), "vzeroupper");
}

void pc_avx512nt(void *dst, size_t len)
{
	struct pc_span lines = pc_whole_lines(dst, len, LINE);

	PC_RUN(lines, "vpxor %%xmm0, %%xmm0, %%xmm0", 256, PC_EACH("0,64,128,192", "vmovntdq %%zmm0"),
	       PC_EACH("0", "vmovntdq %%zmm0"), "vzeroupper");
}
#endif
