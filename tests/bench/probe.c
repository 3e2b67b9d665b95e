/*
 * Does the probe tell cached from flushed? Its lines against equidistant ones: share of targets taken for flushed.
 * A report for `make bench`; it judges nothing.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#include "calibrd/touch.h"
#include "kernels/cpu.h"
#include "libpolicy/probe.h"

enum { LINES = 4, TARGETS = 400, ARENA = 40 << 20 };

static const double slow_ns = 75;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static double ticks_per_ns(void)
{
	uint64_t ticks = pc_ticks(), start = now_ns(), end;

	do
		end = now_ns();
	while (end - start < 20000000);
	return (double)(pc_ticks() - ticks) / (double)(end - start);
}

static size_t equidistant(size_t total, unsigned i)
{
	return total / (2 * LINES) * (2 * i + 1);
}

/* One load instruction for all, as in a loop that stays one: prefetchers learn strides by instruction. */
static __attribute__((noinline)) uint64_t timed_load(const char *at)
{
	uint64_t last = pc_ticks();

	return pc_probe_load(at, &last);
}

static bool says_flushed(const char *target, size_t bytes, size_t (*offset)(size_t, unsigned), uint64_t slow_ticks)
{
	unsigned slow = 0;

	for (unsigned i = 0; i < LINES; i++)
		slow += timed_load(target + offset(bytes, i)) > slow_ticks;
	return 2 * slow > LINES;
}

static double share(char *arena, size_t bytes, bool flushed, size_t (*offset)(size_t, unsigned), uint64_t slow_ticks)
{
	unsigned said = 0;

	for (size_t i = 0; i < TARGETS; i++) {
		char *target = arena + i * 28672 % (ARENA - bytes) / 4096 * 4096;

		for (int pass = 0; pass < (flushed ? 1 : 3); pass++)
			touch_dirty(target, bytes);
		if (flushed)
			pc_cpu_flush(target, bytes);
		said += says_flushed(target, bytes, offset, slow_ticks);
	}
	return (double)said / TARGETS;
}

int main(void)
{
	char *arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t slow_ticks = (uint64_t)(slow_ns * ticks_per_ns());

	if (arena == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	madvise(arena, ARENA, MADV_HUGEPAGE);
	touch_dirty(arena, ARENA);
	printf("share of %d targets that %d loads take for flushed (slow from %.0f ns)\n", TARGETS, LINES, slow_ns);
	printf("%10s  %21s  %21s\n%10s  %10s %10s  %10s %10s\n", "", "equidistant", "golden ratio", "KiB", "cached",
	       "flushed", "cached", "flushed");
	for (size_t bytes = 65536; bytes <= 4 << 20; bytes *= 2)
		printf("%10zu  %10.2f %10.2f  %10.2f %10.2f\n", bytes >> 10,
		       share(arena, bytes, false, equidistant, slow_ticks),
		       share(arena, bytes, true, equidistant, slow_ticks),
		       share(arena, bytes, false, pc_probe_offset, slow_ticks),
		       share(arena, bytes, true, pc_probe_offset, slow_ticks));
	munmap(arena, ARENA);
	return 0;
}
