/*
 * The clear kernels: one table that the library, the benchmark, the command line and the tests walk.
 * Depends on libc only; knows nothing of policies, measurements or files.
 */
#ifndef PC_KERNELS_H
#define PC_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which hardware path a kernel's stores take: what makes two kernels rivals or relatives. */
enum pc_family {
	PC_LIBC,        /* whatever libc's memset does */
	PC_REP,         /* string instructions; microcode picks the store type */
	PC_TEMPORAL,    /* ordinary vector stores: allocate in the caches */
	PC_NONTEMPORAL, /* write-combining stores that go round the caches */
	PC_LINE,        /* whole-line instructions: CLZERO, MOVDIR64B */
};

struct pc_kernel {
	const char *name;  /* unique, at most 15 bytes, fixed for ever */
	unsigned revision; /* counts up whenever the code changes its timing */
	enum pc_family family;
	uint32_t needs;                       /* PC_CPU_* bits that it takes to execute it (not to be fast) */
	bool weak;                            /* weakly ordered stores: an extent ends with pc_fence() */
	void (*body)(void *dst, size_t len);  /* zeroes exactly len bytes at any alignment; does not fence */
	void (*clear)(void *dst, size_t len); /* body, then the fence if weak: the form handed to users */
	const char *about;                    /* one line for people */
};

/* In order of simplicity: ties go to the earlier row. Row 0 is libc and runs everywhere. */
extern const struct pc_kernel pc_kernels[];
extern const unsigned pc_kernel_count;

enum { PC_KERNEL_MAX = 32, PC_KERNEL_NAME = 16 };

/* NULL if no kernel has that name. */
const struct pc_kernel *pc_kernel_find(const char *name);

/* True if this CPU and this OS let the kernel execute (says nothing of speed). */
bool pc_kernel_runs(const struct pc_kernel *kernel);

static inline unsigned pc_kernel_index(const struct pc_kernel *kernel)
{
	return (unsigned)(kernel - pc_kernels);
}

#endif
