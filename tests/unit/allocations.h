/*
 * This program's allocations, counted and, one of them, refused. Include it in one source file of a program.
 */
#ifndef TESTS_ALLOCATIONS_H
#define TESTS_ALLOCATIONS_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { OWN_MALLOC = 0 };
static unsigned long allocations;
__attribute__((unused)) static unsigned long refuse_at;
__attribute__((unused)) static long live;
__attribute__((unused)) static unsigned long asked_bytes;
#else
enum { OWN_MALLOC = 1 };
/* Atomic for the threads, volatile since the compiler knows that malloc changes no variables. */
static volatile atomic_ulong allocations, refuse_at; /* refuse_at: the number of the one to refuse, 0: none */
static volatile atomic_long live;
static volatile atomic_ulong asked_bytes; /* of all calls, those of realloc in full: what a copy may cost */

#pragma GCC visibility push(default) /* in the way of libyaml's and libc's own calls as well */

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

static bool refused(size_t bytes)
{
	asked_bytes += bytes;
	if (++allocations != refuse_at)
		return false;
	errno = ENOMEM;
	return true;
}

static void *counted(void *memory)
{
	live += memory != NULL;
	return memory;
}

void *malloc(size_t size)
{
	return refused(size) ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
	return refused(n * size) ? NULL : counted(__libc_calloc(n, size));
}

void *realloc(void *memory, size_t size)
{
	if (refused(size))
		return NULL;
	return memory == NULL ? counted(__libc_malloc(size)) : __libc_realloc(memory, size);
}

void free(void *memory)
{
	live -= memory != NULL;
	__libc_free(memory);
}

#pragma GCC visibility pop
#endif

/* False under valgrind too, which puts its own in front. */
static inline bool sees_allocations(void)
{
	unsigned long before = allocations;
	void *volatile memory = malloc(1);

	free(memory);
	return OWN_MALLOC && allocations > before;
}

#endif
