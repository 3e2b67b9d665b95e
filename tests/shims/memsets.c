/*
 * shim-memsets.so, for LD_PRELOAD: counts the clears (memset with 0 and its relatives) of a program and all that it
 * starts, by size, in the file $SHIM_MEMSETS: 64 pairs of native 64-bit numbers, calls and bytes, a pair for each power
 * of two; it must exist, with 1024 bytes. In shared memory, so that who ends by _exit or a signal counts as well.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct count {
	_Atomic uint64_t calls, bytes;
};

enum { POWERS = 64 };

static struct count *counts;
static void *(*next)(void *, int, size_t);

void *__memset_chk(void *dst, int value, size_t len, size_t room);
void __explicit_bzero_chk(void *dst, size_t len, size_t room);

static void *set(void *dst, int value, size_t len)
{
	if (counts != NULL && (unsigned char)value == 0 && len > 0) {
		struct count *count = &counts[63 - __builtin_clzll(len)];

		atomic_fetch_add_explicit(&count->calls, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&count->bytes, len, memory_order_relaxed);
	}
	if (next != NULL)
		return next(dst, value, len);
	/* Not yet: volatile, so that no compiler makes a call of memset of it. */
	for (volatile unsigned char *at = dst; len > 0; at++, len--)
		*at = (unsigned char)value;
	return dst;
}

__attribute__((visibility("default"))) void *memset(void *dst, int value, size_t len)
{
	return set(dst, value, len);
}

__attribute__((visibility("default"))) void bzero(void *dst, size_t len)
{
	set(dst, 0, len);
}

__attribute__((visibility("default"))) void explicit_bzero(void *dst, size_t len)
{
	set(dst, 0, len);
}

__attribute__((visibility("default"))) void *__memset_chk(void *dst, int value, size_t len, size_t room)
{
	if (len > room)
		abort();
	return set(dst, value, len);
}

__attribute__((visibility("default"))) void __explicit_bzero_chk(void *dst, size_t len, size_t room)
{
	if (len > room)
		abort();
	set(dst, 0, len);
}

__attribute__((constructor)) static void start(void)
{
	const char *path = getenv("SHIM_MEMSETS");
	int fd = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);

	next = (void *(*)(void *, int, size_t))dlsym(RTLD_NEXT, "memset");
	if (fd < 0)
		return;
	void *mapped = mmap(NULL, POWERS * sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mapped != MAP_FAILED)
		counts = mapped;
	close(fd);
}
