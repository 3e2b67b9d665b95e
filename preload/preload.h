/*
 * What the functions that stand in for libc's go by. Written once, by start.c; before that, and before this library is
 * relocated, the values say: nothing is large enough, and libc's memset is not known.
 */
#ifndef PRELOAD_PRELOAD_H
#define PRELOAD_PRELOAD_H

#include <stdatomic.h>
#include <stddef.h>

#include <pageclear/policy.h>

typedef void *preload_memset_function(void *dst, int value, size_t len);

struct preload_way {
	_Atomic size_t from;     /* bytes; smaller clears are libc's */
	_Atomic unsigned intent; /* as for pageclear_zero */
};

extern struct preload_way preload_clear; /* memset with zero, bzero */
extern struct preload_way preload_wipe;  /* explicit_bzero */

/* The memset that the program would have had; NULL until it is known. */
extern _Atomic(preload_memset_function *) preload_next;

/*
 * All three hint that the target is cached, which a memset cannot know. Without a hint pageclear_zero would read the
 * time stamp counter, in programs too that forbid it themselves; and what unmodified programs clear at that size is
 * often a fresh mapping, which is as good as cached, since the system has just cleared each page.
 */
enum {
	PRELOAD_HOT = PAGECLEAR_HOT | PAGECLEAR_CACHED,
	PRELOAD_COLD = PAGECLEAR_COLD | PAGECLEAR_CACHED,
	PRELOAD_SCRUB = PAGECLEAR_SCRUB,
};

#endif
