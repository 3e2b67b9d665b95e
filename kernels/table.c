/* The table: one row a kernel, in order of simplicity. Everything that lists, measures or tests kernels walks it. */
#include "kernels/kernels.h"

#include <string.h>

#include "kernels/bodies.h"
#include "kernels/cpu.h"

#ifdef PC_TEST_KERNELS
#include "tests/unit/faulty_kernels.h"
#endif

#define STRONG(name) .weak = false, .body = pc_##name, .clear = pc_##name
#define WEAK(name) .weak = true, .body = pc_##name, .clear = fenced_##name

#define FENCED(name)                                                                                                   \
	static void fenced_##name(void *dst, size_t len)                                                               \
	{                                                                                                              \
		pc_##name(dst, len);                                                                                   \
		pc_fence();                                                                                            \
	}

#if defined(__x86_64__)
FENCED(movnti)
FENCED(sse2nt)
FENCED(avxnt)
FENCED(avx512nt)
FENCED(clzero)
FENCED(movdir64b)
#endif

const struct pc_kernel pc_kernels[] = {
	{"libc", 1, PC_LIBC, 0, STRONG(libc), .about = "libc's memset"},
#if defined(__x86_64__)
	/* Stores may pass each other within a string, not its end (Intel SDM vol. 3, "Fast-String Operation"). */
	{"stosb", 1, PC_REP, 0, STRONG(stosb), .about = "rep stosb from an aligned head"},
	{"stosl", 1, PC_REP, 0, STRONG(stosl), .about = "rep stosl from an aligned head"},
	{"stosq", 1, PC_REP, 0, STRONG(stosq), .about = "rep stosq from an aligned head"},
	{"sse2", 1, PC_TEMPORAL, 0, STRONG(sse2), .about = "16-byte stores"},
	{"avx2", 1, PC_TEMPORAL, PC_CPU_AVX | PC_CPU_AVX2, STRONG(avx2), .about = "32-byte stores"},
	{"avx512", 1, PC_TEMPORAL, PC_CPU_AVX | PC_CPU_AVX512F, STRONG(avx512), .about = "64-byte stores"},
	{"movnti", 1, PC_NONTEMPORAL, 0, WEAK(movnti), .about = "8-byte non-temporal stores"},
	{"sse2nt", 1, PC_NONTEMPORAL, 0, WEAK(sse2nt), .about = "16-byte non-temporal stores"},
	{"avxnt", 1, PC_NONTEMPORAL, PC_CPU_AVX, WEAK(avxnt), .about = "32-byte non-temporal stores"},
	{"avx512nt", 1, PC_NONTEMPORAL, PC_CPU_AVX | PC_CPU_AVX512F, WEAK(avx512nt),
         .about = "64-byte non-temporal stores"},
	{"clzero", 1, PC_LINE, PC_CPU_CLZERO, WEAK(clzero), .about = "AMD's cache line zero"},
	{"movdir64b", 1, PC_LINE, PC_CPU_MOVDIR64B, WEAK(movdir64b), .about = "64-byte direct stores"},
#endif
#ifdef PC_TEST_KERNELS
	PC_FAULTY_ROWS,
#endif
};

#define ROWS (sizeof(pc_kernels) / sizeof(pc_kernels[0]))
_Static_assert(ROWS <= PC_KERNEL_MAX, "arrays indexed by kernel have PC_KERNEL_MAX elements");

const unsigned pc_kernel_count = ROWS;

const struct pc_kernel *pc_kernel_find(const char *name)
{
	for (unsigned i = 0; i < pc_kernel_count; i++)
		if (strcmp(pc_kernels[i].name, name) == 0)
			return &pc_kernels[i];
	return NULL;
}

bool pc_kernel_runs(const struct pc_kernel *kernel)
{
	return (kernel->needs & ~pc_cpu_features()) == 0;
}
