/*
 * The cheapest sequence of kernels over a grid, with every segment's gain proven. Pure.
 */
#ifndef CALIBRD_SOLVE_H
#define CALIBRD_SOLVE_H

#include <stdbool.h>
#include <stddef.h>

#include "calibrd/grid.h"

/* What any other kernel must earn for not being the default, in nats per octave. */
extern const double solve_not_libc;

/* What a switch must earn, in nats times octaves: 6 % over an octave, more where epochs disagree. */
double solve_switch_cost(const struct grid *grid);

/* Minimises sum width (l + 0.03 [not libc]) + cost per switch by dynamic programming; libc holds below the grid.
 * choice[sizes]. Ties go to the earlier kernel. */
void solve_grid(const struct grid *grid, double switch_cost, unsigned *choice);

/* solve_grid, again and again, each time without the worst cell (marked unproven in the grid) of every segment whose
 * gain fails the pooled sign test: 95 % sure that the median pair is beyond 3 %, and most epochs agree. Neighbouring
 * segments whose kernels tie become one, with the simpler kernel. */
void solve_proven(struct grid *grid, unsigned *choice);

/* True if the cells first..last of a kernel pass that test. */
bool solve_is_proven(const struct grid *grid, unsigned kernel, size_t first, size_t last);

/* End of the segment that begins at `first`: the index of its last size. */
size_t solve_segment_end(const struct grid *grid, const unsigned *choice, size_t first);

#endif
