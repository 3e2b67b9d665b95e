/*
 * What a preloaded library does to memset, for tests/bench/preload: run it with and without.
 *   bench-preload calls BYTES   nanoseconds a call of one cached target, the median of 31 batches
 *   bench-preload again BYTES   clears BYTES again and again and reads them, 2 GiB in all: a program that does little
 * else
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "calibrd/stats.h"

enum { BATCHES = 31, CALLS = 20000 };

static void *(*volatile clear)(void *, int, size_t) = memset;

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void calls(unsigned char *target, size_t len)
{
	double batch[BATCHES];

	for (int i = 0; i < BATCHES; i++) {
		double begin = now_ns();

		for (int call = 0; call < CALLS; call++)
			clear(target, 0, len);
		batch[i] = (now_ns() - begin) / CALLS;
	}
	printf("%.2f\n", stats_median(batch, BATCHES));
}

static uint64_t sum_of(const unsigned char *target, size_t len)
{
	uint64_t sum = 0, word;

	for (size_t i = 0; i + sizeof(word) <= len; i += sizeof(word)) {
		memcpy(&word, target + i, sizeof(word));
		sum += word;
	}
	return sum;
}

static int again(unsigned char *target, size_t len)
{
	for (size_t done = 0; done < (size_t)2 << 30; done += len) {
		target[done % len] = 1;
		clear(target, 0, len);
		if (sum_of(target, len) != 0)
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	size_t len = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
	unsigned char *target = len == 0 ? NULL : aligned_alloc(4096, (len + 4095) / 4096 * 4096);

	if (target == NULL) {
		fprintf(stderr, "usage: bench-preload calls|again BYTES\n");
		return 2;
	}
	memset(target, 1, len);
	if (strcmp(argv[1], "again") == 0)
		return again(target, len);
	calls(target, len);
	return 0;
}
