/*
 * A program with an allocator of its own, which clears all that it hands out and takes back: the preloaded library
 * allocates while it starts, and its clears must not need that it has.
 */
#include "calls.h"

#include <errno.h>
#include <stdint.h>

enum { ARENA = 64 << 20, HEAD = 16 };

static unsigned char arena[ARENA] __attribute__((aligned(16)));
static size_t used;

/* The compiler takes a block for the beginning of an object. */
static size_t *length_of(void *block)
{
	__asm__("" : "+r"(block));
	return (size_t *)(void *)((unsigned char *)block - HEAD);
}

void *malloc(size_t len)
{
	size_t room = (len + 15) / 16 * 16;

	if (len > ARENA || room + HEAD > ARENA - used) {
		errno = ENOMEM;
		return NULL;
	}
	unsigned char *block = arena + used + HEAD;
	used += HEAD + room;
	*length_of(block) = len;
	memset(block, 0, len);
	return block;
}

void free(void *block)
{
	if (block != NULL)
		explicit_bzero(block, *length_of(block));
}

void *calloc(size_t count, size_t len)
{
	if (len != 0 && count > SIZE_MAX / len) {
		errno = ENOMEM;
		return NULL;
	}
	return malloc(count * len);
}

void *realloc(void *block, size_t len)
{
	unsigned char *moved = malloc(len);

	if (moved != NULL && block != NULL) {
		memcpy(moved, block, *length_of(block) < len ? *length_of(block) : len);
		free(block);
	}
	return moved;
}

int main(void)
{
	static const size_t lens[] = {100, 5000, 70000, 3 << 20};

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		unsigned char *block = malloc(lens[i]);

		if (block == NULL || block[0] != 0 || memcmp(block, block + 1, lens[i] - 1) != 0)
			fail("a block of %zu bytes is not zero", lens[i]);
		free(block);
	}
	puts("done");
	return 0;
}
