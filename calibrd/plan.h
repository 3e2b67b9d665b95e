/*
 * What to measure next, and how often. Pure: it is told what things cost, it never looks at a clock.
 * A block is one condition (size, prior, phase) under which all kernels still in the race are compared, round by round.
 */
#ifndef CALIBRD_PLAN_H
#define CALIBRD_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "calibrd/samples.h"
#include "libpolicy/document.h"

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

enum block_kind { BLOCK_CLEAR, BLOCK_SINGLE, BLOCK_SCRUB };

/* Who takes part in a block before anyone is known to be good. */
enum block_field { FIELD_ALL, FIELD_FINALISTS, FIELD_FAMILIES };

struct block {
	enum block_kind kind;
	enum block_field field;
	enum pc_prior prior;
	uint64_t bytes;
	double wish;      /* rounds that a calibration of standard effort would like, in all */
	double round_ns;  /* what a round costs: an estimate, then what the last ones took */
	double owed;      /* fractional rounds carried over to the next epoch */
	uint32_t kernels; /* bits of pc_kernels that still race here; 0: not chosen yet, nothing to take */
	unsigned rounds;  /* to take in this epoch */
	unsigned taken;   /* in all */
};

enum { PLAN_BLOCKS = 256 };

struct plan {
	struct effort_limits limits;
	uint32_t kernels; /* all that may be measured; bit 0 (libc) is always among them */
	uint32_t keep; /* of these, the ones that the policy in force names: measured at every size, so that it can be
	                  judged */
	size_t count;
	struct block blocks[PLAN_BLOCKS];
};

/* kernels: usable rows of pc_kernels. memory_bytes: most that a target may take. */
void plan_build(struct plan *plan, enum effort effort, uint32_t kernels, uint64_t memory_bytes);

/* Sets every block's rounds for an epoch that may take budget_ns. */
void plan_epoch(struct plan *plan, double budget_ns);

/* Tells what `rounds` rounds of a block took. */
void plan_spent(struct block *block, unsigned rounds, double ns);

/* Once FIELD_ALL's blocks of an epoch are measured: drops kernels that can no longer win; the first time also chooses
 * the finalists of the largest sizes and the families' champions for scrub, which stay the same from then on. */
void plan_race(struct plan *plan, const struct dataset *data);

#endif
