/* Loads and stores of known effect; see touch.h. */
#include "calibrd/touch.h"

#include <string.h>

enum { LINE = 64, PAGE = 4096, LINES = PAGE / LINE };

/* Not the same byte eight times: the compiler cannot turn the loop into a call of memset. */
#define DIRT 0x0123456789abcdefu

void touch_dirty(void *at, size_t bytes)
{
	uint64_t word = DIRT;
	char *p = at, *end = p + bytes;

	for (; end - p >= 8; p += 8)
		memcpy(p, &word, 8);
	memcpy(p, &word, (size_t)(end - p));
	__asm__ volatile("" : : "r"(at) : "memory");
}

/* Where this loop crosses a border of 64 bytes of code, cached memory took 1.9 times as long to read on a Zen 3 guest
 * (6 KiB: 483 ns against 249, the same loop at 16 offsets, measured once), and calibrd and calibctl would differ by
 * where the linker happened to put it. */
__attribute__((aligned(64))) uint64_t touch_read(const void *at, size_t bytes)
{
	const char *p = at, *end = p + bytes;
	uint64_t sum = 0, word;

	for (; end - p >= 8; p += 8) {
		memcpy(&word, p, 8);
		sum += word;
	}
	word = 0;
	memcpy(&word, p, (size_t)(end - p));
	return sum + word;
}

uint64_t touch_victim(const void *at, size_t bytes)
{
	uint64_t sum = 0;

	for (const char *page = at; page < (const char *)at + bytes; page += PAGE)
		for (unsigned i = 0, line = 0; i < LINES; i++, line = (line + 7) % LINES)
			sum += *(const volatile uint64_t *)(const void *)(page + line * LINE);
	return sum;
}

void touch_chain(void *at, size_t bytes, struct random *random)
{
	unsigned order[LINES];
	char *end = (char *)at + bytes, **previous = NULL;

	for (unsigned i = 0; i < LINES; i++)
		order[i] = i;
	for (char *page = at; page < end; page += PAGE) {
		/* The first line of a page stays first, so that the chain starts at `at`. */
		random_shuffle(random, order + 1, LINES - 1);
		for (unsigned i = 0; i < LINES; i++) {
			char **slot = (char **)(void *)(page + order[i] * LINE);

			if (page + order[i] * LINE >= end)
				continue;
			if (previous != NULL)
				*previous = (char *)slot;
			previous = slot;
		}
	}
	if (previous != NULL)
		*previous = at;
}

const void *touch_chase(const void *at, size_t loads)
{
	for (size_t i = 0; i < loads; i++)
		at = *(const void *const volatile *)at;
	return at;
}

void touch_work(uint64_t *scratch, unsigned rounds)
{
	uint64_t x = scratch[0] | 1;

	for (unsigned i = 0; i < rounds; i++) {
		x = x * DIRT + i;
		*(volatile uint64_t *)&scratch[(2 * i) % 256] = x;
		*(volatile uint64_t *)&scratch[(2 * i + 1) % 256] = ~x;
	}
}
