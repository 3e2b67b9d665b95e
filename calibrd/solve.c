/* Dynamic programming over the grid; see solve.h. */
#include "calibrd/solve.h"

#include <math.h>
#include <stdlib.h>

#include "pageclear/policy.h"

const double solve_not_libc = 0.03;
static const double least_switch = 0.06;
static const double proof_margin = 0.03, level = 0.05;
static const double sure_loss = 0.1; /* no cell may lose more than this, surely, to a tie with its neighbours */

double solve_switch_cost(const struct grid *grid)
{
	return fmax(least_switch, grid->sigma / 2);
}

static bool may_stand(const struct cell *cell)
{
	return cell->measured && !cell->forbidden && !cell->doubtful && !cell->unproven;
}

static double cell_cost(const struct grid *grid, size_t size, unsigned kernel)
{
	const struct cell *cell = grid_cell(grid, size, kernel);

	if (!may_stand(cell))
		return INFINITY;
	return grid->width[size] * (cell->l + (kernel == 0 ? 0 : solve_not_libc));
}

/* best[k]: cheapest way to end at this size with kernel k; from[size][k]: the kernel it had one size before. */
void solve_grid(const struct grid *grid, double switch_cost, unsigned *choice)
{
	double best[PC_KERNEL_MAX], next[PC_KERNEL_MAX];
	unsigned from[GRID_SIZES][PC_KERNEL_MAX] = {{0}}, last = 0;

	for (unsigned k = 0; k < pc_kernel_count; k++)
		best[k] = k == 0 ? 0 : INFINITY; /* below the grid there is libc */
	for (size_t i = 0; i < grid->sizes; i++) {
		for (unsigned k = 0; k < pc_kernel_count; k++) {
			from[i][k] = k;
			for (unsigned j = 0; j < pc_kernel_count; j++)
				if (best[j] + (j == k ? 0 : switch_cost) <
				    best[from[i][k]] + (from[i][k] == k ? 0 : switch_cost))
					from[i][k] = j;
			next[k] = best[from[i][k]] + (from[i][k] == k ? 0 : switch_cost) + cell_cost(grid, i, k);
		}
		for (unsigned k = 0; k < pc_kernel_count; k++)
			best[k] = next[k];
	}
	for (unsigned k = 1; k < pc_kernel_count; k++)
		if (best[k] < best[last])
			last = k;
	for (size_t i = grid->sizes; i-- > 0; last = from[i][last])
		choice[i] = last;
}

size_t solve_segment_end(const struct grid *grid, const unsigned *choice, size_t first)
{
	size_t end = first;

	while (end + 1 < grid->sizes && choice[end + 1] == choice[first])
		end++;
	return end;
}

/* Two of three epochs must see a gain: pooled pairs alone would let one lucky epoch with many rounds decide. What an
 * epoch says of one size counts as e-fold at most: few rounds may hold a spike. */
static bool epochs_agree(const struct grid *grid, unsigned kernel, size_t first, size_t last)
{
	unsigned seen = 0, gains = 0;

	for (unsigned e = 0; e < grid->epochs; e++) {
		double sum = 0, width = 0;

		for (size_t i = first; i <= last; i++)
			if (!isnan(grid_cell(grid, i, kernel)->epoch[e]) && !grid_cell(grid, i, kernel)->interpolated) {
				sum += grid->width[i] * fmax(-1, fmin(1, grid_cell(grid, i, kernel)->epoch[e]));
				width += grid->width[i];
			}
		seen += width > 0;
		gains += width > 0 && sum < 0;
	}
	return 3 * gains >= 2 * seen;
}

/* A gain must be beyond chance. For scrub, beyond that of the best of so many sizes: the spread of its pairs is a
 * multiple of what counts as a gain, so that chance alone would find one somewhere; elsewhere the margin sees to that.
 */
static double proof_level(const struct grid *grid)
{
	return grid->intent == PAGECLEAR_SCRUB ? level / (double)grid->sizes : level;
}

bool solve_is_proven(const struct grid *grid, unsigned kernel, size_t first, size_t last)
{
	size_t count = 0, at = 0;
	double *pool, p;

	for (size_t i = first; i <= last; i++)
		count += grid_cell(grid, i, kernel)->count;
	pool = malloc((count + 1) * sizeof(*pool));
	if (pool == NULL)
		return false; /* nothing proven: libc stays */
	for (size_t i = first; i <= last; i++)
		for (size_t j = 0; j < grid_cell(grid, i, kernel)->count; j++)
			pool[at++] = grid_cell(grid, i, kernel)->pairs[j];
	p = stats_sign_below(pool, count, -proof_margin);
	free(pool);
	return p < proof_level(grid) && epochs_agree(grid, kernel, first, last);
}

/* --- ties -------------------------------------------------------------------------------------------------------- */

/* What `kernel` costs more than the chosen ones over first..last, in nats per octave; infinite where it may not take
 * their place: not allowed, a sure loss in one cell, or more in all than two switches cost. (One switch would be no
 * bound at all: what costs less than that the dynamic programme has joined already.) */
static double excess(const struct grid *grid, const unsigned *choice, unsigned kernel, size_t first, size_t last)
{
	double sum = 0, width = 0;

	for (size_t i = first; i <= last; i++) {
		const struct cell *cell = grid_cell(grid, i, kernel), *chosen = grid_cell(grid, i, choice[i]);

		if (!may_stand(cell) || cell->interval.low > chosen->interval.high + sure_loss)
			return INFINITY;
		sum += grid->width[i] * (cell->l - chosen->l);
		width += grid->width[i];
	}
	return sum < 2 * solve_switch_cost(grid) ? sum / width : INFINITY;
}

/* One kernel for two neighbouring segments if the other one is no better by more than a win that counts, or the noise.
 */
static bool join(const struct grid *grid, unsigned *choice, size_t first, size_t middle, size_t last)
{
	double tie = fmax(solve_not_libc, grid->sigma / 2);
	unsigned left = choice[first], right = choice[middle], one;
	double left_costs = excess(grid, choice, left, middle, last);
	double right_costs = excess(grid, choice, right, first, middle - 1);

	if (left_costs < tie && right_costs < tie)
		one = left < right ? left : right;
	else if (left_costs < tie || right_costs < tie)
		one = left_costs < right_costs ? left : right;
	else
		return false;
	if (!solve_is_proven(grid, one, first, last))
		return false;
	for (size_t i = first; i <= last; i++)
		choice[i] = one;
	return true;
}

static void join_ties(const struct grid *grid, unsigned *choice)
{
	size_t first = 0;

	while (first < grid->sizes) {
		size_t middle = solve_segment_end(grid, choice, first) + 1;

		if (middle < grid->sizes && choice[first] != 0 && choice[middle] != 0 &&
		    join(grid, choice, first, middle, solve_segment_end(grid, choice, middle)))
			first = 0; /* the joined segment may tie with the one before it */
		else
			first = middle;
	}
}

/* The cell of a segment that speaks worst for its kernel: without it the rest may be proven yet. */
static struct cell *worst_cell(const struct grid *grid, unsigned kernel, size_t first, size_t last)
{
	struct cell *worst = grid_cell(grid, first, kernel);

	for (size_t i = first + 1; i <= last; i++)
		if (grid_cell(grid, i, kernel)->l > worst->l)
			worst = grid_cell(grid, i, kernel);
	return worst;
}

void solve_proven(struct grid *grid, unsigned *choice)
{
	double switch_cost = solve_switch_cost(grid);
	bool again = true;

	while (again) { /* ends: every turn but the last marks another cell, and never one of libc's */
		again = false;
		solve_grid(grid, switch_cost, choice);
		for (size_t first = 0, end; first < grid->sizes; first = end + 1) {
			end = solve_segment_end(grid, choice, first);
			if (choice[first] == 0 || solve_is_proven(grid, choice[first], first, end))
				continue;
			worst_cell(grid, choice[first], first, end)->unproven = true;
			again = true;
		}
	}
	join_ties(grid, choice);
}
