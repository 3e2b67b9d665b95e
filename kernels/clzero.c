/*
 * CLZERO (AMD since Zen): one instruction zeroes a whole line without reading it, and without keeping it cached.
 *
 * Shape, by tests/bench/shapes on an EPYC Milan: one a turn was up to 20 % slower than two, four or eight at 64 KiB
 * flushed in some builds, equal in others (0.99-1.02); everywhere else they are alike. Four, so that the loop never
 * matters.
 */
#include "kernels/bodies.h"

#if defined(__x86_64__)
#include "kernels/x86.h"

/* The address is implied: rax (AMD APM vol. 3, CLZERO). */
#define ZERO_NEXT "clzero\n\tadd %[line], %%rax\n\t"

enum { LINE = 64 }; /* bytes; PC_CPU_CLZERO is set for no other */

void pc_clzero(void *dst, size_t len)
{
	struct pc_span lines = pc_whole_lines(dst, len, LINE);
	size_t fours = (size_t)(lines.end - lines.at) / (4 * LINE);

	for (; fours > 0; fours--)
		__asm__ volatile(ZERO_NEXT ZERO_NEXT ZERO_NEXT ZERO_NEXT
		                 : "+a"(lines.at)
		                 : [line] "i"(LINE)
		                 : "cc", "memory");
	while (lines.at != lines.end)
		__asm__ volatile(ZERO_NEXT : "+a"(lines.at) : [line] "i"(LINE) : "cc", "memory");
}
#endif
