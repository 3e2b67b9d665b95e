/*
 * What explain found out, between the part that asks and the two that print it.
 */
#ifndef CALIBCTL_EXPLAIN_H
#define CALIBCTL_EXPLAIN_H

#include <jansson.h>

#include "calibctl/evidence.h"
#include "calibctl/explain_spot.h"
#include "calibctl/subject.h"
#include "calibrd/store.h"
#include "kernels/kernels.h"
#include "libpolicy/document.h"

/* What the policy says under one prior. */
struct explain_answer {
	const struct pc_table *table; /* NULL: no table, so libc */
	size_t rule;
	const struct pc_kernel *kernel; /* that runs in the end: libc where the rule's own cannot */
};

struct explanation {
	struct subject subject;
	struct evidence_query query;
	struct explain_answer answers[PC_PRIORS]; /* scrub: only PC_UNKNOWN's */
	bool probes;                              /* the library would find out the prior itself, and it matters */

	/* from the database */
	int recorded; /* 0 all that follows is set; 1 none, -errno: reason says why */
	struct pc_why reason;
	struct calibration calibration;
	struct evidence evidence;
	struct explain_spot spot;               /* of the rule that was asked for */
	struct evidence_wrong wrong[PC_PRIORS]; /* [PC_FLUSHED]: the choice for cached on flushed memory, and so on */
};

void explain_print(const struct explanation *explanation);
json_t *explain_json(const struct explanation *explanation);

#endif
