/*
 * bench: what its parts share. A request is parsed, a stand is set up (kernels tried, this process pinned), one of
 * three tables is measured through a meter, and printed as text, CSV or JSON.
 */
#ifndef CALIBCTL_BENCH_H
#define CALIBCTL_BENCH_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calibctl/args.h"
#include "calibctl/calibctl.h"
#include "calibrd/meter.h"
#include "calibrd/random.h"
#include "calibrd/topology.h"
#include "kernels/kernels.h"
#include "libpolicy/why.h"

enum bench_kind { BENCH_TABLE, BENCH_XEN, BENCH_HUGEPAGE, BENCH_KINDS };
enum bench_format { BENCH_TEXT, BENCH_CSV, BENCH_JSON, BENCH_FORMATS };
enum { BENCH_SIZES = 32, BENCH_RUNS = 1000 };

/* --- what is asked for ------------------------------------------------------------------------------------------- */

struct bench_request {
	enum bench_kind kind;
	enum bench_format format;
	size_t size_count;           /* 0: the kind's own */
	uint64_t sizes[BENCH_SIZES]; /* ascending, none twice */
	uint32_t kernels;            /* bits of pc_kernels; 0: the kind's own */
	uint32_t priors;             /* 1 << enum pc_prior: PC_CACHED, PC_FLUSHED */
	unsigned runs;               /* each with fresh mappings */
};

/* memory_bytes: most that a run's mappings may take together. DONE or USAGE, which is said. */
enum outcome bench_options_parse(struct bench_request *out, struct args *args, struct calibctl *ctl,
                                 uint64_t memory_bytes);

/* The same without a command line. Items of a list that ends in an empty one are wrong. 0 or -EINVAL, -ERANGE with why.
 * Pure. */
int bench_parse_sizes(struct bench_request *out, const char *list, struct pc_why *why);
int bench_parse_kernels(struct bench_request *out, const char *list, struct pc_why *why);

/* --- where it is measured ---------------------------------------------------------------------------------------- */

enum { BENCH_OBSTACLE = 112 };

struct bench_stand {
	struct bench_request request;
	struct topology *topology; /* never NULL once open */
	struct meter *meter;
	uint64_t memory_bytes;                         /* most that a run's mappings may take together */
	uint32_t kernels;                              /* bits of those that are measured */
	char obstacles[PC_KERNEL_MAX][BENCH_OBSTACLE]; /* of those asked for that are not; "" for all others */
	struct random random;
	const volatile sig_atomic_t *stop; /* a signal that ends it early, 0: none yet; NULL: never */
	bool quiet;                        /* no progress is told */
};

/* Tries every kernel asked for in a child, reads the topology, pins this process. 0, or -errno with why;
 * bench_stand_close() after both. */
int bench_stand_open(struct bench_stand *stand, struct pc_why *why);
void bench_stand_close(struct bench_stand *stand);

bool bench_stand_stopped(const struct bench_stand *stand);

/* The kernels of a set in shuffled order; how many. */
size_t bench_stand_shuffle(struct bench_stand *stand, uint32_t kernels, unsigned order[PC_KERNEL_MAX]);

/* share of all that there is to do. */
void bench_stand_progress(const struct bench_stand *stand, unsigned run, double share);

/* --- how it is printed ------------------------------------------------------------------------------------------- */

/* What whoever reads the figures should know. Where they are CSV, which has no room for it, on standard error. */
void bench_warn(const struct bench_stand *stand, const char *text);
/* If it was. */
void bench_warn_stopped(const struct bench_stand *stand);

/* "host", and the kernels that are not measured and why. */
void bench_print_head(const struct bench_stand *stand);
/* Members that the three have in common: bench, host, runs, stopped, not_measured. */
json_t *bench_json_head(const struct bench_stand *stand, unsigned runs);
/* Prints and releases it. 0, or 1 where it could not be printed, which is said. */
int bench_json_print(json_t *json);

const char *bench_kind_name(enum bench_kind kind);

/* Each measures, prints and returns 0 or -errno with why; -ECANCELED: stopped before there was anything to print; 1: it
 * could not be printed, which is said. */
int bench_table(struct bench_stand *stand, struct pc_why *why);
int bench_xen(struct bench_stand *stand, struct pc_why *why);
int bench_hugepage(struct bench_stand *stand, struct pc_why *why);

#endif
