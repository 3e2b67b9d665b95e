/*
 * What spot checks say: whether a kernel does better in chunks, backward, or on base pages. Pure.
 *
 * They are measured at a few large sizes, in rounds of their own: the whole extent named as a chunk of its own size,
 * beside it chunks, each also backward, and on base pages the whole extent beside libc's. What becomes of it:
 * - chunk: a rule's, where it is proven to pay.
 * - pages: a program does not know what its memory lies on, so a rule must hold on both kinds. A kernel that loses to
 *   libc on base pages may not be chosen from there on, however good it is on huge ones.
 * - direction: nothing but words. Format 1 and struct pageclear_choice have no place for it.
 */
#ifndef CALIBRD_SPOT_H
#define CALIBRD_SPOT_H

#include <stddef.h>
#include <stdint.h>

#include "calibrd/costs.h"
#include "calibrd/grid.h"
#include "calibrd/samples.h"
#include "calibrd/stats.h"

/* The sizes in [from, to) at which spot checks were made, under the conditions of a table. */
struct spot_range {
	unsigned intent;     /* scrub: nothing was measured */
	enum pc_prior prior; /* PC_UNKNOWN: both */
	unsigned threads;
	uint64_t from, to; /* UINT64_MAX: to the end */
};

/* Cost of one way over that of another. */
struct spot_ratio {
	double ratio;             /* geometric mean over sizes and priors of what costs_centre() says */
	struct interval interval; /* 95 % of the median over all pairs */
	size_t pairs;
};

enum { SPOT_FROM = 2 << 20, SPOT_TO = 32 << 20 }; /* bytes: no spot check is smaller, few are larger */
enum { SPOT_CHUNKS = 2 };
extern const uint64_t spot_chunks[SPOT_CHUNKS]; /* what is tried, bytes */

/* A way's chunk of 0 is the whole extent. 0, 1 if no round holds both ways, -ENOMEM. */
int spot_compare(struct spot_ratio *out, const struct dataset *data, const struct spot_range *range,
                 const struct cost_way *way, const struct cost_way *other);

/* Backward over forward, chunk by chunk; chunk 0: of the smallest chunks, as the direction of one call is the kernel's
 * own. As spot_compare(). */
int spot_direction(struct spot_ratio *out, const struct dataset *data, const struct spot_range *range, unsigned kernel,
                   uint64_t chunk);

/* The chunk for a kernel that a rule has over that range, 0: whole. A chunk is taken only if, under the prior or both,
 * it is proven to cost over 3 % less than the whole extent: by a pooled sign test at 99.8 % and seven of eight epochs,
 * and surely more than 3 % worse at no size. Of several the one with the least mean. `old`, what the rule had before
 * (0: whole), stays unless it costs more, or is surely more than 3 % worse at a size. 0 or -ENOMEM. */
int spot_chunk(uint64_t *out, const struct dataset *data, const struct spot_range *range, unsigned kernel,
               uint64_t old);

/* Forbids a kernel at each size at which it surely loses more than 3 % to libc on base pages. Where that is surely more
 * than on the grid's own pages, the difference is added to its costs from there up to the next size at which it was
 * tried: cells that lose more than 3 % then are forbidden as well. (A kernel that loses at 8 MiB on either kind of page
 * may well win from 13 MiB on.) Unknown prior: as the grid's guard has it, 5 % under either prior; or 3 % under both.
 */
void spot_forbid(struct grid *grid, const struct dataset *data);

#endif
