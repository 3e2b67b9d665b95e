/* What the benches of the probe are told alike: rounds, the threshold, the rival, and sizes in KiB behind the options.
 */
#ifndef TESTS_BENCH_PROBE_OPTIONS_H
#define TESTS_BENCH_PROBE_OPTIONS_H

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernels/kernels.h"

enum { ARENA = 48 << 20, ROUNDS_MAX = 400 };

struct probe_options {
	size_t rounds;
	double slow_ns;
	const struct pc_kernel *rival; /* goes round the caches */
	char **sizes;                  /* in KiB, as texts, up to NULL; none: the bench's own */
};

static inline bool probe_option(struct probe_options *options, int letter)
{
	switch (letter) {
	case 't':
		options->slow_ns = strtod(optarg, NULL);
		return true;
	case 'k':
		options->rival = pc_kernel_find(optarg);
		return true;
	case 'r':
		options->rounds = strtoul(optarg, NULL, 10);
		return true;
	default:
		return false;
	}
}

static inline bool probe_options_hold(const struct probe_options *options)
{
	if (options->rival == NULL || !pc_kernel_runs(options->rival) || options->rounds < 1 ||
	    options->rounds > ROUNDS_MAX || options->slow_ns <= 0)
		return false;
	for (char **size = options->sizes; *size != NULL; size++)
		if (strtoul(*size, NULL, 10) < 8 || strtoul(*size, NULL, 10) > ARENA / 2048)
			return false;
	return true;
}

/* `own` takes the letters that are one bench's only, their words from optarg. */
static inline bool probe_options_parse(struct probe_options *options, int argc, char **argv, const char *letters,
                                       bool (*own)(int letter))
{
	int letter;

	options->rival = pc_kernel_find("clzero");
	if (options->rival == NULL || !pc_kernel_runs(options->rival))
		options->rival = pc_kernel_find("sse2nt");
	while ((letter = getopt(argc, argv, letters)) != -1)
		if (!probe_option(options, letter) && !own(letter))
			return false;
	options->sizes = argv + optind;
	return probe_options_hold(options);
}

/* Of each size that was asked for; without any, of 64 KiB to 4 MiB by that factor. */
static inline void probe_report(const struct probe_options *options, size_t factor,
                                void (*report)(char *arena, size_t bytes), char *arena)
{
	if (*options->sizes == NULL)
		for (size_t kib = 64; kib <= 4096; kib *= factor)
			report(arena, kib << 10);
	for (char **size = options->sizes; *size != NULL; size++)
		report(arena, strtoul(*size, NULL, 10) << 10);
}

#endif
