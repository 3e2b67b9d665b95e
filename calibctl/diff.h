/*
 * What diff found out, between the part that asks and the one that prints.
 */
#ifndef CALIBCTL_DIFF_H
#define CALIBCTL_DIFF_H

#include <jansson.h>

#include "calibctl/diff_cost.h"
#include "calibctl/diff_rules.h"
#include "calibrd/store.h"
#include "libpolicy/why.h"

struct diff_side {
	const char *path; /* of a file, NULL: from the database */
	bool in_force;    /* the policy's file, for want of another name */
	uint64_t generation;
	struct pc_document *document;
};

struct diff {
	struct diff_side a, b;
	size_t count;
	struct diff_table tables[DIFF_TABLES_MAX];
	struct diff_cost costs[DIFF_TABLES_MAX]; /* of those that choose otherwise */

	/* from the database */
	int measured; /* 0 costs are set; 1 there is nothing to tell them by, -errno: reason says why */
	struct pc_why reason;
	struct calibration calibration;
};

/* Quality, knee, probe and topology. What reads the same is the same: else a difference would be told that nobody sees.
 */
bool diff_same_header(const struct pc_document *a, const struct pc_document *b);
bool diff_same_knee(const struct pc_document *a, const struct pc_document *b);
bool diff_same_probe(const struct pc_document *a, const struct pc_document *b);

/* True if one of them has a table of its own that the other has not, or they choose otherwise. */
bool diff_table_differs(const struct diff_table *table);

bool diff_same(const struct diff *diff);

/* True if a policy's choices were made by that calibration: a policy tells when it was measured. */
bool diff_decided_from(const struct diff_side *side, const struct calibration *calibration);

void diff_print(const struct diff *diff);
json_t *diff_json(const struct diff *diff);

#endif
