/*
 * CLZERO (AMD since Zen): one instruction zeroes a whole line without reading it, and without keeping it cached.
 *
 * Shape, by tests/bench/shapes on an EPYC Milan: one a turn was up to 20 % slower than two, four or eight at 64 KiB
 * flushed in some builds, equal in others (0.99-1.02); everywhere else they are alike. Four, so that the loop never
 * matters.
 */
#include "kernels/bodies.h"

#if defined(__x86_64__)
#include "kernels/cpu.h"
#include "kernels/x86.h"

/* The address is implied: rax (AMD APM vol. 3, CLZERO). */
#define ZERO_NEXT "clzero\n\tadd %[line], %%rax\n\t"

void pc_clzero(void *dst, size_t len)
{
	const size_t line = pc_cpu_line();
	struct pc_span lines = pc_whole_lines(dst, len, line);
	size_t fours = (size_t)(lines.end - lines.at) / (4 * line);

	for (; fours > 0; fours--)
		__asm__ volatile(ZERO_NEXT ZERO_NEXT ZERO_NEXT ZERO_NEXT
		                 : "+a"(lines.at)
		                 : [line] "r"(line)
		                 : "cc", "memory");
	while (lines.at != lines.end)
		__asm__ volatile(ZERO_NEXT : "+a"(lines.at) : [line] "r"(line) : "cc", "memory");
}
#endif
