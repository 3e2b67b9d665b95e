/* SPDX-License-Identifier: MIT */
/*
 * <pageclear/policy.h> as version 0.1 has it, without its words: for programs that stay as they were built. Never to be
 * changed once 0.1 is released; tests/cli/abi.bats says where today's header differs from it.
 */
#ifndef PAGECLEAR_POLICY_H
#define PAGECLEAR_POLICY_H
#include <stddef.h>
#include <sys/uio.h>
#ifdef __cplusplus
extern "C" {
#endif
#if !defined(__GNUC__)
#define PAGECLEAR_API
#elif defined(PAGECLEAR_BUILD) && !defined(PAGECLEAR_SHARED)
#define PAGECLEAR_API __attribute__((visibility("hidden")))
#else
#define PAGECLEAR_API __attribute__((visibility("default")))
#endif
#define PAGECLEAR_HOT 0u
#define PAGECLEAR_COLD 1u
#define PAGECLEAR_SCRUB 2u
#define PAGECLEAR_CACHED 16u
#define PAGECLEAR_FLUSHED 32u
#define PAGECLEAR_WIPE (PAGECLEAR_COLD | PAGECLEAR_CACHED)
PAGECLEAR_API void pageclear_zero(void *dst, size_t len, unsigned intent);
PAGECLEAR_API void pageclear_zero_ranges(const struct iovec *ranges, size_t n, unsigned intent);
PAGECLEAR_API int pageclear_reload(void);
PAGECLEAR_API int pageclear_status(char *text, size_t size);
struct pageclear_policy;
PAGECLEAR_API int pageclear_policy_open(const struct pageclear_policy **out, const char *path);
PAGECLEAR_API int pageclear_policy_builtin(const struct pageclear_policy **out);
PAGECLEAR_API const struct pageclear_policy *pageclear_policy_close(const struct pageclear_policy *policy);
struct pageclear_query {
	size_t size;
	size_t len;
	unsigned intent;
	unsigned threads;
};
struct pageclear_choice {
	size_t size;
	const char *kernel;
	void (*clear)(void *, size_t);
	size_t chunk;
	size_t from, to;
};
PAGECLEAR_API int pageclear_policy_choose(const struct pageclear_policy *policy, const struct pageclear_query *query,
                                          struct pageclear_choice *choice);
PAGECLEAR_API void pageclear_policy_zero(const struct pageclear_policy *policy, void *dst, size_t len, unsigned intent);
#if defined(__GNUC__) && !defined(PAGECLEAR_NO_INLINE)
extern __inline__ __attribute__((__gnu_inline__, __always_inline__)) void pageclear_zero(void *dst, size_t len,
                                                                                         unsigned intent)
{
	if (len <= 256) {
		if (len != 0)
			__builtin_memset(dst, 0, len);
		__asm__ __volatile__("" : : "r"(dst) : "memory");
	} else {
		void (*exported)(void *, size_t, unsigned) = pageclear_zero;
		__asm__("" : "+r"(exported));
		exported(dst, len, intent);
	}
}
#endif
#ifdef __cplusplus
}
#endif
#endif
