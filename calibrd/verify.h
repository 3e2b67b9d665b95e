/*
 * What a policy's choices cost at sizes that no calibration has seen. Measuring goes through a meter and knows no
 * policy's worth; judging is pure, so that many policies can be judged on one set of measurements.
 */
#ifndef CALIBRD_VERIFY_H
#define CALIBRD_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calibrd/meter.h"
#include "calibrd/plan.h"
#include "calibrd/stats.h"
#include "calibrd/verified.h"
#include "libpolicy/why.h"

struct pageclear_policy;

enum {
	VERIFY_POLICIES = 8,   /* at most that are measured for together */
	VERIFY_ENTRANTS = 72,  /* of a size */
	VERIFY_ROUNDS = 240,   /* of a size */
	VERIFY_SERIES = 5,     /* pairs of intent and prior */
	VERIFY_TOLERANCE = 2,  /* per cent, of the mean regret beyond the floor's */
	VERIFY_SCRUB_TIMES = 3 /* so much more for scrub, whose costs are differences of noisy readings */
};

/* --- measurements ------------------------------------------------------------------------------------------------ */

/* Hot and cold share samples: one gives the clear and its first read. */
enum verify_shape { VERIFY_CACHED, VERIFY_FLUSHED, VERIFY_SCRUB, VERIFY_SHAPES };

enum verify_kind {
	VERIFY_KERNEL,
	VERIFY_AGAIN,    /* libc a second time: what differs from the first is noise */
	VERIFY_UNHINTED, /* pageclear_policy_zero() without a hint, the probe included */
	VERIFY_AGAINST   /* another library's memset */
};

struct verify_way {
	unsigned kernel; /* row of pc_kernels */
	uint64_t chunk;  /* bytes a call covers, 0: the whole extent */
};

struct verify_entrant {
	enum verify_kind kind;
	struct verify_way way;                 /* VERIFY_KERNEL */
	const struct pageclear_policy *policy; /* VERIFY_UNHINTED; compared, never followed by the judge */
	unsigned intent;                       /* likewise */
};

/* Of one entrant in one round, ns; NaN where it was disturbed or not asked for. */
struct verify_cost {
	float clear, read;
	float displaced; /* all victims together, each less its no-clear control; any sign */
	float alone;     /* one clear with ordinary work behind it, which is in it; see verify_point_alone() */
};

struct verify_point {
	enum verify_shape shape;
	uint64_t bytes;
	size_t entrant_count;
	struct verify_entrant entrants[VERIFY_ENTRANTS]; /* [0]: libc */
	size_t rounds;
	uint8_t epoch[VERIFY_ROUNDS];
	struct verify_cost *costs; /* [rounds][entrant_count] */
};

struct verify_data {
	size_t count;
	struct verify_point *points;
};

void verify_data_free(struct verify_data *data);

/* Takes one round's costs, one an entrant. 0, -ENOMEM, -E2BIG: more than VERIFY_ROUNDS. */
int verify_point_add(struct verify_point *point, unsigned epoch, const struct verify_cost *costs);

/* --- measuring --------------------------------------------------------------------------------------------------- */

struct verify_config {
	enum effort effort;                       /* about 15 s, 60 s, 5 min */
	uint32_t kernels;                         /* bits of pc_kernels that passed their trial; libc's is implied */
	uint64_t memory_bytes;                    /* most that targets and victims may take together */
	uint64_t l1_bytes, l2_bytes, knee_bytes;  /* 0: unknown */
	uint64_t seed;                            /* of sizes and order */
	const struct pageclear_policy **policies; /* whose chunked and unhinted choices take part */
	size_t policy_count;
	bool unhinted;                   /* false: no calls of the library itself (a simulated host has none) */
	const struct pc_kernel *against; /* its body is what is timed; NULL: none */
	/* May be NULL; a negative return ends the run and is passed up. */
	int (*progress)(void *context, unsigned epoch, unsigned epochs, double share);
	void *context;
};

/* Of measuring, that an effort takes. */
double verify_seconds(enum effort effort);

/* Bits of pc_kernels that a policy names for one thread, any size and any hint. */
uint32_t verify_named(const struct pageclear_policy *policy);

/* *out is for verify_data_free(), set on success only. One at a time in a process. 0; -ENOEXEC: a policy names a kernel
 * that is not among config->kernels; -ENOMEM, also where memory_bytes is too little; what the meter or progress
 * returned. */
int verify_measure(struct meter *meter, const struct verify_config *config, struct verify_data *out,
                   struct pc_why *why);

/* --- judging ----------------------------------------------------------------------------------------------------- */

/* One size under one intent. In nats; for scrub shares of libc's cost (design section 1). NaN: cannot be told. */
struct verify_outcome {
	double regret; /* of the choice against the best kernel, which is picked on the rounds of the even epochs
	                * and valued on those of the odd ones, and the other way round */
	double floor; /* |libc again against libc|, likewise: without its sign, so above what noise alone does to regret
	               */
	double own;   /* cost of the choice against libc's */
	double best;  /* likewise of the best kernel, picked and valued as above */
	double unhinted;                  /* likewise */
	double against;                   /* likewise */
	struct verify_way chosen, better; /* better: the best over all rounds */
};

/* True if regret, floor, own and best could be told. */
bool verify_point_judge(const struct verify_point *point, unsigned intent, const struct pageclear_policy *policy,
                        struct verify_outcome *out);

/* What the policy chooses there, with the shape's hint, for one thread. */
struct verify_way verify_choice(const struct pageclear_policy *policy, enum verify_shape shape, uint64_t bytes,
                                unsigned intent);

/* True if the samples of a point say something of that intent. */
bool verify_point_serves(const struct verify_point *point, unsigned intent);

/* True if under that intent a clear there is asked for in two ways, in a batch and alone. All that is compared with
 * libc, libc again and calls without a hint included, then counts in the way in which it is dearer: as the decision
 * counts (costs.h), so that what it does on purpose is no regret. */
bool verify_point_alone(const struct verify_point *point, unsigned intent);

/* How one way compares with another at a size: 95 % interval of the median over rounds of ln(cost of a / cost of b);
 * for scrub of differences, as shares of libc's cost. Infinite where either was hardly measured. */
struct interval verify_point_between(const struct verify_point *point, unsigned intent, const struct verify_way *a,
                                     const struct verify_way *b);

/* All sizes of one intent and prior. */
struct verify_series {
	struct verified told;
	unsigned measured;                /* sizes; told.sizes could be judged */
	struct verify_way chosen, better; /* at told.worst_bytes */
};

struct verify_report {
	size_t count;
	struct verify_series series[VERIFY_SERIES]; /* hot, cold, scrub; cached before flushed */
	bool passed;
};

/* tolerance: share by which the mean regret may exceed the floor's mean (scrub: VERIFY_SCRUB_TIMES as much); the 95th
 * percentile may exceed the floor's by 10 %. 0; -ENODATA: fewer than half of a series' sizes could be judged; -ENOMEM.
 */
int verify_judge(const struct verify_data *data, const struct pageclear_policy *policy, double tolerance,
                 struct verify_report *out, struct pc_why *why);

/* What a series may reach. */
double verify_mean_limit(const struct verified *told, double tolerance);
double verify_p95_limit(const struct verified *told);

/* Of the series beyond theirs the one that is furthest beyond, by mean or percentile; NULL: none is. */
const struct verified *verify_worst(const struct verify_report *report, double tolerance);

#endif
