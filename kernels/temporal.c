/*
 * Ordinary vector stores, one row a register width: lines are fetched into the caches and stay there.
 *
 * Shape, by tests/bench/shapes on an EPYC Milan: 16-byte stores 128 bytes a turn, 32-byte ones 256. Longer turns gain
 * nothing (0.99-1.02); 64 bytes a turn and glibc's loop, which is not aligned in the code, lose 0-12 % at 64 KiB
 * cached, as they happen to lie. At 64 KiB flushed and at 64 MiB all are alike (0.99-1.01). 64-byte stores follow
 * glibc's four a turn, unmeasured.
 */
#include "kernels/bodies.h"

#if defined(__x86_64__)
#include "kernels/x86.h"

void pc_sse2(void *dst, size_t len)
{
	struct pc_span middle = pc_overlap_start(dst, len);

	PC_RUN(middle, "pxor %%xmm0, %%xmm0", 128, PC_EACH("0,16,32,48,64,80,96,112", "movdqa %%xmm0"),
	       PC_EACH("0,16,32,48", "movdqa %%xmm0"), "");
	pc_overlap_end(dst, len);
}

void pc_avx2(void *dst, size_t len)
{
	struct pc_span middle = pc_overlap_start(dst, len);

	PC_RUN(middle, "vpxor %%ymm0, %%ymm0, %%ymm0", 256, PC_EACH("0,32,64,96,128,160,192,224", "vmovdqa %%ymm0"),
	       PC_EACH("0,32", "vmovdqa %%ymm0"), "vzeroupper");
	pc_overlap_end(dst, len);
}

/*
 * VPXOR of xmm0 clears all of zmm0, as every VEX-encoded write does (Intel SDM vol. 2, 2.3.10.1). Not zmm16-31:
 * VZEROUPPER leaves those alone, and so the Hi16_ZMM state in use.
 */
void pc_avx512(void *dst, size_t len)
{
	struct pc_span middle = pc_overlap_start(dst, len);

	PC_RUN(middle, "vpxor %%xmm0, %%xmm0, %%xmm0", 256, PC_EACH("0,64,128,192", "vmovdqa64 %%zmm0"),
	       PC_EACH("0", "vmovdqa64 %%zmm0"), "vzeroupper");
	pc_overlap_end(dst, len);
}
#endif
