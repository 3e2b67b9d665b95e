/*
 * MOVDIR64B (Intel since Tremont and Tiger Lake, AMD since Zen 5): 64 bytes in one direct store round the caches.
 * One a turn, unmeasured: each is a whole write-combining buffer, and CLZERO's and the non-temporal loops show that
 * such loops wait for memory.
 */
#include "kernels/bodies.h"

#if defined(__x86_64__)
#include "kernels/x86.h"

/* 64 bytes to an address aligned to 64, whatever the size of a line (Intel SDM vol. 2, MOVDIR64B). */
enum { MOVED = 64 };

static const unsigned char zeroes[MOVED] __attribute__((aligned(64)));

void pc_movdir64b(void *dst, size_t len)
{
	struct pc_span lines = pc_whole_lines(dst, len, MOVED);

	for (unsigned char *at = lines.at; at != lines.end; at += MOVED)
		__asm__ volatile("movdir64b %[from], %[to]" : : [from] "m"(zeroes), [to] "r"(at) : "memory");
}
#endif
