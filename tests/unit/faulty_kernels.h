/*
 * Kernels that fault in every way a trial must catch. Part of the table only where it is built with -DPC_TEST_KERNELS;
 * running one outside a child that may die is the caller's loss.
 */
#ifndef TESTS_FAULTY_KERNELS_H
#define TESTS_FAULTY_KERNELS_H

#include <stddef.h>
#include <string.h>

static void t_sigill(void *dst, size_t len)
{
	(void)dst;
	(void)len;
#if defined(__x86_64__)
	__asm__ volatile("ud2");
#elif defined(__aarch64__)
	__asm__ volatile(".inst 0"); /* UDF #0 */
#else
	__builtin_trap();
#endif
}

/* No sanitizer: it would report these and leave by exit(), where the trial waits for what the hardware does. */
__attribute__((no_sanitize("address", "undefined"))) static void t_segv(void *dst, size_t len)
{
	volatile unsigned char *volatile nowhere = (volatile unsigned char *)8; /* below any mmap_min_addr */

	(void)dst;
	(void)len;
	*nowhere = 0;
}

static void t_wrong(void *dst, size_t len)
{
	memset(dst, 0, len);
	if (len > 0)
		((volatile unsigned char *)dst)[len / 2] = 1;
}

__attribute__((no_sanitize("address", "undefined"))) static void t_canary(void *dst, size_t len)
{
	memset(dst, 0, len);
	((volatile unsigned char *)dst)[len] = 0;
}

static void t_hang(void *dst, size_t len)
{
	(void)dst;
	(void)len;
	for (;;)
		__asm__ volatile("");
}

/* clang-format off */
#define PC_FAULTY_ROW(name, text) {#name, 1, PC_TEMPORAL, 0, false, name, name, text}
/* clang-format on */

#define PC_FAULTY_ROWS                                                                                                 \
	PC_FAULTY_ROW(t_sigill, "test: undefined instruction"), PC_FAULTY_ROW(t_segv, "test: unmapped address"),       \
		PC_FAULTY_ROW(t_wrong, "test: leaves one byte"),                                                       \
		PC_FAULTY_ROW(t_canary, "test: clears one byte too many"),                                             \
		PC_FAULTY_ROW(t_hang, "test: never returns")

#endif
