/*
 * A library that clears before anyone is ready: from an indirect function's resolver, which the loader runs while it
 * relocates, and from a constructor. Tells its program through early_found() how that went; -DPROGRAM makes the
 * program.
 */
#include "calls.h"

#include <unistd.h>

/* Bits: the resolver has run, its bytes were right, the constructor has run, its bytes were right. */
int early_found(void);
int early_indirect(void);

#ifdef PROGRAM
int main(void)
{
	int found = early_found(), returned = early_indirect();

	if (found != 15 || returned != 42)
		fail("found %d, returned %d", found, returned);
	puts("done");
	return 0;
}
#else
enum { LEN = 3 << 20 };

static unsigned char bytes[LEN + 2];
static int found;

static int is_right(void)
{
	for (size_t i = 1; i <= LEN; i++)
		if (bytes[i] != 0)
			return 0;
	return bytes[0] == 1 && bytes[LEN + 1] == 1;
}

static void dirty(void)
{
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = 1;
	__asm__ volatile("" : : "r"(bytes) : "memory");
}

static int answer(void)
{
	return 42;
}

/* By its name: the table of call_... is not relocated either, and the compiler must not store zeros itself. */
__attribute__((used)) static int (*resolve(void))(void)
{
	size_t len = LEN;

	found |= 1;
	dirty();
	__asm__("" : "+r"(len));
	memset(bytes + 1, 0, len);
	found |= is_right() ? 2 : 0;
	return answer;
}

int early_indirect(void) __attribute__((ifunc("resolve")));

/* Bound while this library is relocated, and so before the preloaded one: the loader begins with the last of its list.
 */
int (*early_bound)(void) = early_indirect;

__attribute__((constructor)) static void start(void)
{
	found |= 4;
	for (int call = 0; call < CALLS; call++) {
		dirty();
		call_clear(call, bytes + 1, LEN);
		if (!is_right())
			return;
	}
	found |= 8;
	if (getenv("EARLY_SAYS") != NULL)
		fputs("early: constructor\n", stderr);
	if (getenv("EARLY_OVERFLOWS") != NULL)
		call_memset_chk(bytes, 0, 10, 9);
}

int early_found(void)
{
	return found;
}
#endif
