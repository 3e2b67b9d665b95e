/*
 * What the spot checks say of a rule: its kernel in pieces, backward, and on base pages. Pure: from a dataset.
 */
#ifndef CALIBCTL_EXPLAIN_SPOT_H
#define CALIBCTL_EXPLAIN_SPOT_H

#include <jansson.h>

#include "calibrd/spot.h"
#include "libpolicy/document.h"

/* pairs 0: not checked. */
struct explain_spot {
	unsigned kernel;
	struct spot_ratio chunks[SPOT_CHUNKS]; /* cost of pieces of spot_chunks[] over that of the whole extent */
	struct spot_ratio backward;            /* ... of pieces in descending order over that of ascending ones */
	struct spot_ratio base_pages;          /* ... on base pages, over that of libc there */
};

/* Over the sizes of a rule that `kernel` runs for. 0 or -ENOMEM. */
int explain_spot(struct explain_spot *out, const struct dataset *data, const struct pc_table *table, size_t rule,
                 unsigned kernel);

void explain_spot_print(const struct explain_spot *spot);
json_t *explain_spot_json(const struct explain_spot *spot);

#endif
