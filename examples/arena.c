/*
 * An arena for requests that carry secrets: blocks are handed out as zeros (hot: the caller uses them right after), and
 * all that was handed out is wiped when the request is done (secrets just used, nobody reads them soon).
 *
 * Two things are worth copying: what never was used is not cleared again, since a fresh mapping is zero already, and
 * the wipe is no memset, which a compiler may leave out when nothing reads the memory afterwards.
 */
#define _DEFAULT_SOURCE
#include <pageclear/policy.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct arena {
	unsigned char *bytes;
	size_t size, used;
	size_t touched; /* bytes from the start that may be non-zero; all behind them are zero */
};

static int arena_new(struct arena *arena, size_t size)
{
	void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (bytes == MAP_FAILED)
		return -1;
	arena->bytes = (unsigned char *)bytes;
	arena->size = size;
	arena->used = arena->touched = 0;
	return 0;
}

/* len zero bytes at a multiple of 64, or NULL. */
static void *arena_take(struct arena *arena, size_t len)
{
	size_t from = arena->used, room = arena->size - from, padding = (64 - len % 64) % 64;

	if (len > room)
		return NULL;
	if (from < arena->touched) {
		size_t dirty = arena->touched - from;

		pageclear_zero(arena->bytes + from, len < dirty ? len : dirty, PAGECLEAR_HOT);
	}
	room -= len;
	arena->used += len + (room < padding ? room : padding);
	if (arena->used > arena->touched)
		arena->touched = arena->used;
	return arena->bytes + from;
}

/* All blocks are given back as they are: for requests without secrets. */
static void arena_reset(struct arena *arena)
{
	arena->used = 0;
}

/* All blocks are given back, and nothing of them is left. */
static size_t arena_wipe(struct arena *arena)
{
	size_t wiped = arena->touched;

	pageclear_zero(arena->bytes, wiped, PAGECLEAR_WIPE);
	arena->used = arena->touched = 0;
	return wiped;
}

static size_t count_dirty(const unsigned char *bytes, size_t len)
{
	size_t dirty = 0;

	for (size_t i = 0; i < len; i++)
		dirty += bytes[i] != 0;
	return dirty;
}

/* A request: blocks of growing sizes, looked at, then filled. Returns the bytes that were not zero, or SIZE_MAX. */
static size_t serve(struct arena *arena, int fill)
{
	size_t dirty = 0;

	for (size_t len = 1; len <= 1000000; len += len / 2 + 1) {
		unsigned char *block = (unsigned char *)arena_take(arena, len);

		if (block == NULL)
			return SIZE_MAX;
		dirty += count_dirty(block, len);
		memset(block, fill, len);
	}
	return dirty;
}

int main(void)
{
	struct arena arena;
	size_t dirty = 0, wiped = 0, left = 0;

	if (arena_new(&arena, 4u << 20) < 0) {
		perror("arena");
		return 1;
	}
	for (int request = 1; request <= 10; request++) {
		size_t found = serve(&arena, request);

		if (found == SIZE_MAX) {
			fprintf(stderr, "arena: full\n");
			return 1;
		}
		dirty += found;
		if (request % 2 == 1)
			arena_reset(&arena);
		else
			wiped += arena_wipe(&arena);
	}
	left = count_dirty(arena.bytes, arena.size);
	munmap(arena.bytes, arena.size);
	printf("arena: 10 requests, %zu bytes were not zero; wiped %zu bytes, %zu are left\n", dirty, wiped, left);
	return dirty == 0 && left == 0 ? 0 : 1;
}
