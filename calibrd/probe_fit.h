/*
 * Is the probe worth it here, from which size, and what tells a cached line from a flushed one? Pure.
 */
#ifndef CALIBRD_PROBE_FIT_H
#define CALIBRD_PROBE_FIT_H

#include <stdbool.h>
#include <stddef.h>

#include "calibrd/bench.h"
#include "calibrd/decide.h"

struct probe_set {
	size_t count, room;
	struct bench_probe *probes;
};

int probe_set_add(struct probe_set *set, const struct bench_probe *probe); /* 0 or -ENOMEM */
void probe_set_clear(struct probe_set *set);

struct probe_fit {
	uint64_t from; /* smallest extent worth probing; 0: never here */
	unsigned lines;
	double slow_ns;   /* a look that takes longer met a line that no cache held */
	double wrong;     /* share of probes that told the wrong prior, at sizes from `from` up */
	char reason[128]; /* why not, or what it rests on; in words */
};

/* knee_bytes bounds what can be cached at all (0: unknown). decision holds the tables that the probe would choose from.
 */
void probe_fit(const struct probe_set *set, const struct dataset *data, const struct decision *decision,
               uint64_t knee_bytes, struct probe_fit *out);

#endif
