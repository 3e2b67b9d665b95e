/*
 * Where more measuring could still change what is decided: which blocks are settled, and which sizes are worth adding
 * inside a crossover's bracket. Pure.
 */
#ifndef CALIBRD_REFINE_H
#define CALIBRD_REFINE_H

#include <stdbool.h>

#include "calibrd/plan.h"
#include "calibrd/samples.h"

/* Marks the plan's blocks as settled or not, and adds blocks of sizes inside brackets. 0 or -ENOMEM. */
int refine(struct plan *plan, const struct dataset *data, double scrub_weight);

/* True if no block has anything left to say. */
bool refine_is_settled(const struct plan *plan);

#endif
