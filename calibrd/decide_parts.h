/*
 * What decide.c and its parts share: decide.c asks the questions and sets the pins, decide_old.c weighs old answers,
 * decide_rules.c turns choices over a grid into rules.
 */
#ifndef CALIBRD_DECIDE_PARTS_H
#define CALIBRD_DECIDE_PARTS_H

#include "calibrd/decide.h"

/* The old table of that question, if its kernels may still be chosen and nothing in it was pinned; else NULL. */
const struct pc_table *decide_old_table(const struct decide_input *input, unsigned intent, enum pc_prior prior,
                                        unsigned threads);

/* What becomes of old rules: they stay, or stay but for sizes that the data forbid them, which libc gets (where a
 * kernel begins to win on a cliff no two calibrations see its edge at the same place), or they lose to the new choice.
 */
enum decide_fate { DECIDE_KEPT, DECIDE_MENDED, DECIDE_LOST };

/* Fills a table, with room for PC_RULES_MAX rules, with the old ones; undefined if they are lost. */
enum decide_fate decide_keep(struct pc_table *table, const struct grid *grid, const unsigned *choice,
                             const struct pc_table *old, double doubt);

/* How many standard errors of its epochs a loss must exceed to be sure: of rules in force, which nobody likes to see
 * change; of one thread's rules for several, which nobody has yet. */
#define DECIDE_DOUBT_OLD 5
#define DECIDE_DOUBT_ALONE 2.5

/*
 * Epochs of so many calibrations differ by what this host is like from day to day, so that they need less caution than
 * those of one minute: half of them place a crossover instead of three of four, and old rules go that cost more than
 * one switch (instead of two), with the doubt below. On a simulated guest whose knee wanders by a third that takes a
 * tenth from the regret; with the caution of before rules that one calibration had chosen would stand within it for
 * ever.
 */
#define DECIDE_MANY 3
#define DECIDE_DOUBT_MANY 2.5

/* Where epochs disagree about a crossover the simpler kernel has the benefit of the doubt. */
void decide_cautiously(const struct grid *grid, unsigned *choice);

/* Geometric mean over the measured sizes of [from, to), by the octaves that each speaks for, of libc's cost over the
 * kernel's; 0 where none was measured. */
double decide_gain(const struct grid *grid, unsigned kernel, uint64_t from, uint64_t to);

/* Gives each rule its chunk: what the spot checks prove, else what it or the old table (may be NULL) had. A rule that
 * begins below the sizes that are checked is split there: what is not worth a chunk for libc is not worth a slower way
 * through the library. *changed is set if a rule came out other than it came in. 0 or -ENOMEM. */
int decide_chunks(struct pc_table *table, const struct grid *grid, const struct dataset *data,
                  const struct pc_table *old, bool *changed);

/* Writes a kernel's name into a rule. */
void decide_name(struct pc_rule *rule, unsigned kernel);

#endif
