/* What truth.c, the costs, tells truth_known.c, what could be known of them. */
#ifndef TESTS_TRUTH_PARTS_H
#define TESTS_TRUTH_PARTS_H

#include "tests/sim/truth.h"

/* As truth_l() with the last-level cache so many octaves larger than it says. */
double truth_shifted_l(const struct truth *truth, unsigned kernel, uint64_t bytes, double octaves);

/* Whether the 5 % guard of the unknown prior applies, and how far inside it a kernel's worse prior is; negative:
 * outside. */
bool truth_is_guarded(const struct truth *truth);
double truth_inside_guard(const struct truth *truth, unsigned kernel, uint64_t bytes);

/* Of a scrub: the private victims' sizes, how many victims an extent is asked about, what l is in units of. */
uint64_t truth_victim_bytes(const struct sim_host *host, unsigned victim);
unsigned truth_victims(const struct truth *truth, uint64_t bytes);
double truth_scrub_scale(const struct truth *truth, uint64_t bytes);

#endif
