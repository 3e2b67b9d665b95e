/*
 * The small interface through which the benchmark reaches hardware. meter_real.c times this host; the simulated one in
 * tests/sim answers from a table. Nobody else reads a clock while a sample is taken.
 */
#ifndef CALIBRD_METER_H
#define CALIBRD_METER_H

#include <stdbool.h>
#include <stdint.h>

#include "calibrd/samples.h"
#include "calibrd/taints.h"
#include "kernels/kernels.h"
#include "libpolicy/document.h"
#include "libpolicy/probe.h"
#include "libpolicy/why.h"

struct meter;

/* What to time. One ask is one sample. */
struct meter_ask {
	const struct pc_kernel *kernel; /* NULL: the no-clear control of a victim */
	enum phase phase;               /* PHASE_CLEAR, PHASE_SINGLE or one of the victims */
	enum pc_prior prior;            /* PC_CACHED or PC_FLUSHED */
	uint64_t bytes;                 /* of the extent; with several threads of each one's */
	uint64_t victim_bytes;          /* of the victim, for victim phases */
	uint64_t chunk;                 /* bytes a kernel call covers, 0: all; whatever it is, one fence at the end */
	unsigned threads; /* that clear at the same time, 0 and 1: the caller alone. PHASE_CLEAR and victims;
	                   * the other threads take no part in the victim but for clearing */
	unsigned passes;  /* of ordinary stores that make the target cached */
	bool read;        /* PHASE_CLEAR: also time the first forward read */
	bool backward;    /* the chunks in descending order of address */
	bool base_pages;  /* on base pages, however large the extent */
	bool exact;       /* PHASE_CLEAR: of just so many bytes; else of up to meter_shorter() less, alike for all asks
	                   * of a round, and told as if it were all */
};

/*
 * How much shorter than its size an extent may be: a sixteenth below 4 KiB and above 2 MiB. Powers of two are what some
 * kernels like best there and programs ask for least, and they are where implementations change their ways: REP STOSB
 * on a Zen 3 goes round the caches from 32 MiB on exactly (calibctl bench table --kernels libc --sizes
 * 33554368,33554432), so that an extent of 32 MiB would speak for none of those between 16 and 32. Pages, and what
 * allocators make of them, are powers of two.
 */
static inline uint64_t meter_shorter(uint64_t bytes)
{
	return bytes < 256 || (bytes >= 4096 && bytes <= 2 << 20) ? 0 : bytes / 16;
}

struct meter_sample {
	double ns; /* the clear with its fence; of several threads the mean of what each took, from the common start;
	            * for victims the re-read of the victim */
	double read_ns; /* the first read, if asked for; likewise */
	bool tainted;   /* time was lost, or a migration happened meanwhile */
};

/* What an epoch's mappings must hold. */
struct meter_room {
	uint64_t target_bytes; /* largest extent of the caller's own */
	uint64_t base_bytes;   /* largest extent on base pages; small ones always fit */
	uint64_t crew_bytes;   /* largest extent of every other thread */
	uint64_t victim_bytes;
};

/* Every function returns 0 or -errno; a sample that was disturbed is no error. */
struct meter_ops {
	uint64_t (*now_ns)(struct meter *meter);
	/* Fresh mappings. */
	int (*epoch)(struct meter *meter, const struct meter_room *room);
	/* Mean latency of dependent loads in random order inside pages over an array of that size. */
	int (*latency)(struct meter *meter, uint64_t bytes, double *ns);
	/* Begins a round: all samples until round_end() use the same target, at a place that the seed picks. */
	int (*round_begin)(struct meter *meter, uint64_t seed);
	/* -EINVAL: beyond the mappings, or an ask that makes no sense. */
	int (*sample)(struct meter *meter, const struct meter_ask *ask, struct meter_sample *out);
	/* Ends it; true if the whole round is tainted: the reference loop ran slow, or time was stolen. */
	bool (*round_end)(struct meter *meter);
	/* Looks at `lines` lines of a target in that prior state as libpolicy's probe does; looks[PC_PROBE_LOOKS] in
	 * ns, 0 for one without lines; *whole_ns the probe as a whole. */
	int (*probe)(struct meter *meter, uint64_t bytes, enum pc_prior prior, unsigned lines, double *looks,
	             double *whole_ns);
	/* Leaves the CPUs to others for so long, neither within a sample nor within a probe. May be NULL. */
	void (*rest)(struct meter *meter, uint64_t ns);
	/* What undid samples and rounds so far. May be NULL. */
	void (*taints)(struct meter *meter, struct taints *out);
	void (*free)(struct meter *meter);
};

struct meter {
	const struct meter_ops *ops;
};

/* What the real meter maps beside targets, victims and large extents on base pages; and for every other thread that
 * was ever asked for beside its crew_bytes (or twice those, once it was asked for large extents on base pages). */
enum { METER_OVERHEAD = 10 << 20, METER_OVERHEAD_THREAD = 2 << 20 };

/* Size of the victim for a private cache of that level, 1 or 2: as reported, unless no such cache was ever that large,
 * for reports lie; 0: unknown. */
static inline uint64_t meter_private_cache(unsigned level, uint64_t reported)
{
	uint64_t most = level == 1 ? 1 << 20 : 64 << 20, usual = level == 1 ? 32 << 10 : 512 << 10;

	return reported > 0 && reported <= most ? reported : usual;
}

struct crew;

/* The real one, on the CPU it is called on: pins the caller there. crew: the CPUs that asks with several threads may
 * use, the caller's own among them, copied; NULL: that alone. Its other threads are started when they are first asked
 * for, and sleep between asks; failing to get them, or their memory, is -errno of sample(). All calls come from the
 * thread that made it. */
int meter_real_new(struct meter **out, const struct crew *crew, struct pc_why *why);

static inline struct meter *meter_free(struct meter *meter)
{
	if (meter != NULL)
		meter->ops->free(meter);
	return NULL;
}

#endif
