/* libc's own memset: the yardstick, and the kernel that every host has. */
#include "kernels/bodies.h"

#include <string.h>

void pc_libc(void *dst, size_t len)
{
	if (len != 0) /* given to memset, dst is never NULL as far as the compiler knows */
		memset(dst, 0, len);
	/* The bytes are used, as far as the compiler knows: not even link-time optimisation drops the call. */
	__asm__ volatile("" : : "r"(dst) : "memory");
}
