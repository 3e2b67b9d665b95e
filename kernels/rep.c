/*
 * String instructions: microcode picks width and type of the stores, also by the count that one instruction covers.
 *
 * Shape, by tests/bench/shapes on an EPYC Milan: from an aligned start over whole lines, both ends by overlapping
 * stores. Against one string over the whole extent 0.99-1.00 at 64 KiB; a start aligned to 16 bytes only is 13 % slower
 * at 2 KiB cached, the tail stored first 7 % at 2 KiB flushed. At 64 MiB, not yet at
 * 32, every shape runs at anything between 20 and 50 GB/s from call to call (the microcode streams such long strings,
 * and perhaps not to the end when interrupted: a guess). No shape stands out of that (0.95-1.05; ours against itself
 * 0.8-1.4).
 */
#include "kernels/bodies.h"

#if defined(__x86_64__)
#include "kernels/x86.h"

/* DF is clear at every call (System V ABI, 3.2.1), so the strings run upwards. */
#define REP(instruction, span, unit)                                                                                   \
	do {                                                                                                           \
		unsigned char *at_ = (span).at;                                                                        \
		size_t count_ = (size_t)((span).end - at_) / (unit);                                                   \
		__asm__ volatile("rep " instruction : "+D"(at_), "+c"(count_) : "a"((uint64_t)0) : "memory");          \
	} while (0)

void pc_stosb(void *dst, size_t len)
{
	struct pc_span middle = pc_overlap_start(dst, len);

	REP("stosb", middle, 1);
	pc_overlap_end(dst, len);
}

void pc_stosl(void *dst, size_t len)
{
	struct pc_span middle = pc_overlap_start(dst, len);

	REP("stosl", middle, 4);
	pc_overlap_end(dst, len);
}

void pc_stosq(void *dst, size_t len)
{
	struct pc_span middle = pc_overlap_start(dst, len);

	REP("stosq", middle, 8);
	pc_overlap_end(dst, len);
}
#endif
