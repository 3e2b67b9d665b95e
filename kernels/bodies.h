/* The bodies behind the table's rows; each is described by its row. Internal to kernels/. */
#ifndef PC_BODIES_H
#define PC_BODIES_H

#include <stddef.h>

void pc_libc(void *dst, size_t len);

#if defined(__x86_64__)
void pc_stosb(void *dst, size_t len);
void pc_stosl(void *dst, size_t len);
void pc_stosq(void *dst, size_t len);
void pc_sse2(void *dst, size_t len);
void pc_avx2(void *dst, size_t len);
void pc_avx512(void *dst, size_t len);
void pc_movnti(void *dst, size_t len);
void pc_sse2nt(void *dst, size_t len);
void pc_avxnt(void *dst, size_t len);
void pc_avx512nt(void *dst, size_t len);
void pc_clzero(void *dst, size_t len);
void pc_movdir64b(void *dst, size_t len);
#endif

#endif
