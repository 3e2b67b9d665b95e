/*
 * libpageclear-preload.so: libc's functions that clear memory, for programs that know nothing of pageclear. Large
 * clears go by the policy, all others to the next memset in line. Knows nothing of environment and files: start.c does.
 *
 * Any of these may be called before this library is relocated (by an indirect function's resolver), before its
 * constructors, by libyaml while they run, in signal handlers and between fork and exec. So they take no lock, and
 * until start() touch nothing that the loader must have prepared: no table of offsets, no pointers but one that starts
 * as NULL.
 */
#undef _FORTIFY_SOURCE      /* its inline functions would call those that are defined here */
#define PAGECLEAR_NO_INLINE /* what is inline would call memset, and that is here */
#include "preload/preload.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct preload_way preload_clear = {.from = SIZE_MAX, .intent = PRELOAD_HOT};
struct preload_way preload_wipe = {.from = SIZE_MAX, .intent = PAGECLEAR_WIPE};
_Atomic(preload_memset_function *) preload_next;

#define EXPORTED __attribute__((visibility("default")))
#define UNLIKELY(condition) __builtin_expect((condition), false)

/* Of libc; ends the program as every overflow that it catches does. */
_Noreturn void __chk_fail(void);

EXPORTED void *__memset_chk(void *dst, int value, size_t len, size_t room);
EXPORTED void __explicit_bzero_chk(void *dst, size_t len, size_t room);

/* The linker makes these of every call of memset inside libpolicy and the kernels (--wrap), the compiler's own
 * included: so the kernel `libc` is libc's, and nothing comes back here. */
void *__wrap_memset(void *dst, int value, size_t len);
void *__wrap___memset_chk(void *dst, int value, size_t len, size_t room);

/* Until libc's memset is known. No loop that a compiler would make a call of memset of. */
static void *set_plainly(void *dst, int value, size_t len)
{
#if defined(__x86_64__)
	void *at = dst;

	__asm__ volatile("rep stosb" : "+D"(at), "+c"(len) : "a"(value) : "memory");
#else
	for (volatile unsigned char *at = dst; len > 0; at++, len--)
		*at = (unsigned char)value;
#endif
	return dst;
}

static inline void *pass_on(void *dst, int value, size_t len)
{
	preload_memset_function *next = atomic_load_explicit(&preload_next, memory_order_relaxed);

	return UNLIKELY(next == NULL) ? set_plainly(dst, value, len) : next(dst, value, len);
}

static inline bool is_large(const struct preload_way *way, size_t len)
{
	return UNLIKELY(len >= atomic_load_explicit(&way->from, memory_order_relaxed));
}

/* Not inlined: the common call must not pay for a stack frame. */
__attribute__((noinline)) static void *by_policy(const struct preload_way *way, void *dst, size_t len)
{
	pageclear_zero(dst, len, atomic_load_explicit(&way->intent, memory_order_relaxed));
	return dst;
}

/* libc takes value as an unsigned char. */
static inline void *set(void *dst, int value, size_t len)
{
	if (is_large(&preload_clear, len) && (unsigned char)value == 0)
		return by_policy(&preload_clear, dst, len);
	return pass_on(dst, value, len);
}

static inline void wipe(void *dst, size_t len)
{
	if (is_large(&preload_wipe, len))
		by_policy(&preload_wipe, dst, len);
	else
		pass_on(dst, 0, len);
}

EXPORTED void *memset(void *dst, int value, size_t len)
{
	return set(dst, value, len);
}

EXPORTED void bzero(void *dst, size_t len)
{
	set(dst, 0, len);
}

EXPORTED void explicit_bzero(void *dst, size_t len)
{
	wipe(dst, len);
}

/* NULL until this library is relocated: an overflow can't be told before, but it can be ended. */
static void (*const volatile overflow)(void) = __chk_fail;

static inline void check(size_t len, size_t room)
{
	if (UNLIKELY(len > room)) {
		void (*tell)(void) = overflow;

		if (tell != NULL)
			tell();
		__builtin_trap();
	}
}

EXPORTED void *__memset_chk(void *dst, int value, size_t len, size_t room)
{
	check(len, room);
	return set(dst, value, len);
}

EXPORTED void __explicit_bzero_chk(void *dst, size_t len, size_t room)
{
	check(len, room);
	wipe(dst, len);
}

void *__wrap_memset(void *dst, int value, size_t len)
{
	return pass_on(dst, value, len);
}

void *__wrap___memset_chk(void *dst, int value, size_t len, size_t room)
{
	check(len, room);
	return pass_on(dst, value, len);
}
