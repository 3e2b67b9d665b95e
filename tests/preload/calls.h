/* The functions that libpageclear-preload.so stands in for, called so that no compiler does it itself. */
#ifndef TESTS_PRELOAD_CALLS_H
#define TESTS_PRELOAD_CALLS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__memset_chk(void *dst, int value, size_t len, size_t room);
void __explicit_bzero_chk(void *dst, size_t len, size_t room);

static void *(*volatile call_memset)(void *, int, size_t) = memset;
static void (*volatile call_bzero)(void *, size_t) = bzero;
static void (*volatile call_explicit_bzero)(void *, size_t) = explicit_bzero;
static void *(*volatile call_memset_chk)(void *, int, size_t, size_t) = __memset_chk;
static void (*volatile call_explicit_bzero_chk)(void *, size_t, size_t) = __explicit_bzero_chk;

enum { CALLS = 5 };

static const char *const call_names[CALLS] = {"memset", "bzero", "explicit_bzero", "__memset_chk",
                                              "__explicit_bzero_chk"};

__attribute__((format(printf, 1, 2), noreturn, unused)) static void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

/* True for those that wipe. */
__attribute__((unused)) static int call_wipes(int call)
{
	return call == 2 || call == 4;
}

__attribute__((unused)) static void call_clear(int call, void *dst, size_t len)
{
	void *returned = dst;

	switch (call) {
	case 0:
		returned = call_memset(dst, 0, len);
		break;
	case 1:
		call_bzero(dst, len);
		break;
	case 2:
		call_explicit_bzero(dst, len);
		break;
	case 3:
		returned = call_memset_chk(dst, 0, len, len);
		break;
	default:
		call_explicit_bzero_chk(dst, len, (size_t)-1); /* what the compiler passes where it knows no size */
	}
	if (returned != dst)
		fail("%s returned another address", call_names[call]);
}

#endif
