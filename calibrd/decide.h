/*
 * From measurements to rules: one table an intent and prior, each kernel but libc proven. Pure.
 */
#ifndef CALIBRD_DECIDE_H
#define CALIBRD_DECIDE_H

#include <stddef.h>
#include <stdint.h>

#include "calibrd/grid.h"
#include "calibrd/samples.h"
#include "libpolicy/document.h"

/* What a policy answers for each number of threads: the intents, with each prior. */
struct decide_question {
	unsigned intent;
	enum pc_prior prior; /* for scrub PC_UNKNOWN */
};

enum { DECIDE_QUESTIONS = 7 };
extern const struct decide_question decide_questions[DECIDE_QUESTIONS];

/* A scrub's own time counts this much beside what it displaces, unless calibrd.yaml says otherwise. A policy does not
 * tell which weight it was decided with: who judges one later goes by this. */
#define DECIDE_SCRUB_WEIGHT 0.1

struct pin {
	unsigned intent;
	enum pc_prior prior; /* for scrub PC_UNKNOWN */
	bool any_prior;
	uint64_t from, to; /* [from, to); UINT64_MAX: to the end */
	unsigned kernel;
};

struct decide_input {
	const struct dataset *data;
	unsigned calibrations; /* that its epochs come from; 0: one */
	uint32_t kernels;      /* bits of pc_kernels that may be chosen */
	double scrub_weight;
	const struct pc_document
		*old;           /* published before for the same topology, or NULL: its rules stay unless they lose */
	const struct pin *pins; /* from the admin: they come last and win */
	size_t pin_count;
};

struct decision {
	size_t table_count;
	struct pc_table tables[PC_TABLES_MAX]; /* owned: decision_free() */
	bool kept[PC_TABLES_MAX];              /* the old rules stayed, as they were */
	bool refused[PC_TABLES_MAX];           /* rules went against a measured loss, a fault of ours: libc instead */
};

/*
 * The seven questions for one thread, then for every other number of threads in the data, ascending. A table for which
 * nothing was measured is the old one, as long as all its kernels may be chosen and nothing in it was pinned; else it
 * is left out. Old tables of more than one thread are forgotten once others are measured with more than one, and
 * so are tables for which policy.yaml has no room. Pins hold for any number of threads.
 * No rule but a pinned one names another kernel than libc for a size at which the data forbid it.
 * Chunks are what spot_chunk() says; a rule's gain is that of the whole extent all the same. libc may have one.
 * 0, -ENOMEM, or -E2BIG: more pins than a table holds rules.
 */
int decide(const struct decide_input *input, struct decision *out);
void decision_free(struct decision *decision);

/* The rules of one solved grid. rules[PC_RULES_MAX]; returns how many. */
size_t decide_rules(const struct grid *grid, const unsigned *choice, struct pc_rule *rules);

/* The first rule of a table, pinned ones aside, that names a kernel for a size at which the grid forbids it; NULL:
 * none.
 */
const struct pc_rule *decide_against(const struct pc_table *table, const struct grid *grid);

#endif
