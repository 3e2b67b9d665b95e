/*
 * The bodies behind the table's rows; each is described by its row. Internal to kernels/.
 *
 * Each begins with a line of code, as touch_read() of calibrd does (see there what a border costs a loop): what is
 * measured in one program must lie in the lines of every other as it lies there. That also puts the rest of a file, and
 * the ends that pc_edge() clears, in the same place everywhere.
 */
#ifndef PC_BODIES_H
#define PC_BODIES_H

#include <stddef.h>

#define PC_BODY __attribute__((aligned(64)))

PC_BODY void pc_libc(void *dst, size_t len);

#if defined(__x86_64__)
PC_BODY void pc_stosb(void *dst, size_t len);
PC_BODY void pc_stosl(void *dst, size_t len);
PC_BODY void pc_stosq(void *dst, size_t len);
PC_BODY void pc_sse2(void *dst, size_t len);
PC_BODY void pc_avx2(void *dst, size_t len);
PC_BODY void pc_avx512(void *dst, size_t len);
PC_BODY void pc_movnti(void *dst, size_t len);
PC_BODY void pc_sse2nt(void *dst, size_t len);
PC_BODY void pc_avxnt(void *dst, size_t len);
PC_BODY void pc_avx512nt(void *dst, size_t len);
PC_BODY void pc_clzero(void *dst, size_t len);
PC_BODY void pc_movdir64b(void *dst, size_t len);
#endif

#endif
