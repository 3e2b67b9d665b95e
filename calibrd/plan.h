/*
 * What to measure next, and how often. Pure: it is told what things cost, it never looks at a clock.
 * A block is one condition (size, prior, phase) under which all kernels still in the race are compared, round by round.
 */
#ifndef CALIBRD_PLAN_H
#define CALIBRD_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calibrd/samples.h"
#include "libpolicy/document.h"

/* Of a block in one epoch: no comparison can use more. */
enum { PLAN_ROUNDS_MOST = 120 };

enum effort { EFFORT_QUICK, EFFORT_STANDARD, EFFORT_THOROUGH, EFFORTS };

struct effort_limits {
	const char *name;
	double seconds; /* of measuring, knee included */
	unsigned epochs;
	uint64_t most_bytes; /* largest extent */
	unsigned per_octave; /* sizes an octave, 64 KiB and up */
};

extern const struct effort_limits effort_limits[EFFORTS];

/* EFFORTS if there is no effort of that name. */
enum effort effort_find(const char *name);

/* BLOCK_SPOT compares ways over the extent: whole, in chunks, backwards, on base pages. */
enum block_kind { BLOCK_CLEAR, BLOCK_SINGLE, BLOCK_SCRUB, BLOCK_SPOT };

/* Who takes part in a block. Only of FIELD_ALL and FIELD_GIVEN is it known from the start. */
enum block_field {
	FIELD_ALL,
	FIELD_GIVEN,     /* the rivals of a crossover, and libc */
	FIELD_FINALISTS, /* largest sizes: the best of the largest one that all took part in */
	FIELD_FAMILIES,  /* scrub: of each family the best */
	FIELD_CLASSES, /* several threads: the best temporal and the best non-temporal one, and one thread's winners */
	FIELD_WINNERS, /* spot checks: those that may be chosen at that size */
};

struct block {
	enum block_kind kind;
	enum block_field field;
	enum pc_prior prior;
	unsigned threads;
	uint64_t bytes;
	bool settled;     /* more rounds could not change what is decided */
	double wish;      /* rounds that a calibration of standard effort would like, in all; 0: dropped */
	double round_ns;  /* what a round costs: an estimate, then what the last ones took */
	double owed;      /* fractional rounds carried over to the next epoch */
	uint32_t kernels; /* bits of pc_kernels that still race here; 0: not chosen yet, nothing to take */
	unsigned rounds;  /* to take in this epoch */
	unsigned taken;   /* in all */
};

enum { PLAN_BLOCKS = 512 };

struct plan {
	struct effort_limits limits;
	uint32_t kernels; /* all that may be measured; bit 0 (libc) is always among them */
	uint32_t keep; /* of these, the ones that the policy in force names: in every race, final and table of several
	                * threads, so that it can be judged; not in spot checks and brackets */
	unsigned threads; /* measured together besides one alone; 0: none */
	unsigned races;   /* plan_race() so far */
	size_t count;
	struct block blocks[PLAN_BLOCKS];
};

/* What a plan may use. */
struct plan_means {
	uint32_t kernels;      /* usable rows of pc_kernels */
	uint64_t memory_bytes; /* most that a target may take */
	uint64_t base_bytes;   /* most that one on base pages may take */
	unsigned threads;      /* of one last-level cache, also measured together; 0 and 1: one alone */
	uint64_t crew_bytes;   /* most that the target of each of several threads may take */
};

void plan_build(struct plan *plan, enum effort effort, const struct plan_means *means);

/* Adds a size inside a crossover's bracket, unless that condition is measured already or there is no room: then false.
 */
bool plan_refine(struct plan *plan, enum pc_prior prior, unsigned threads, uint64_t bytes, uint32_t kernels);

/* Several threads can't be measured after all: their blocks get no more time. */
void plan_drop_threads(struct plan *plan);

/* Sets every block's rounds for an epoch that may take budget_ns: most of it for the blocks that are not settled. */
void plan_epoch(struct plan *plan, double budget_ns);

/* Tells what `rounds` rounds of a block took. */
void plan_spent(struct block *block, unsigned rounds, double ns);

/* Once FIELD_ALL's blocks of an epoch are measured: drops kernels that can no longer win; as soon as somebody but libc
 * was heard also chooses the finalists of the largest sizes and the families' champions for scrub, which stay the same
 * from then on. Spot checks gain each epoch's winners, several threads those of the first few. */
void plan_race(struct plan *plan, const struct dataset *data);

#endif
