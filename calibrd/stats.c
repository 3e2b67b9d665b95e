/*
 * Order statistics without allocation, so that nothing here can fail: a large input is first narrowed down to the
 * values around the wanted rank until they fit a small buffer on the stack.
 */
#include "calibrd/stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { BUFFER = 512 }; /* values; 4 KiB of stack */

/* What is ranked: x itself, or its distances from a centre. */
struct ranked {
	const double *x;
	size_t n;
	double centre;
	bool folded;
};

static double ranked_value(const struct ranked *r, size_t i)
{
	return r->folded ? fabs(r->x[i] - r->centre) : r->x[i];
}

/* Doubles and these integers have the same order, infinities included; -0.0 comes right before 0.0. */
static int64_t ordinal(double x)
{
	uint64_t bits;
	memcpy(&bits, &x, sizeof(bits));
	return (int64_t)(bits >> 63 ? ~(bits ^ (UINT64_C(1) << 63)) : bits);
}

/* Values whose ordinals lie in [low, high]; stores the first `room` of them. */
static size_t gather(const struct ranked *r, int64_t low, int64_t high, double *out, size_t room)
{
	size_t count = 0;
	for (size_t i = 0; i < r->n; i++) {
		double x = ranked_value(r, i);
		int64_t o = ordinal(x);
		if (o < low || o > high)
			continue;
		if (count < room)
			out[count] = x;
		count++;
	}
	return count;
}

/* Hoare's FIND: afterwards x[k] is the value of rank k. */
static double find_rank(double *x, size_t n, size_t k)
{
	ptrdiff_t low = 0, high = (ptrdiff_t)n - 1, rank = (ptrdiff_t)k;
	while (low < high) {
		double pivot = x[rank];
		ptrdiff_t i = low, j = high;
		do {
			while (x[i] < pivot)
				i++;
			while (pivot < x[j])
				j--;
			if (i <= j) {
				double swap = x[i];
				x[i++] = x[j];
				x[j--] = swap;
			}
		} while (i <= j);
		if (j < rank)
			low = i;
		if (rank < i)
			high = j;
	}
	return x[rank];
}

/* The value of rank k, from 0; k < n. Bisects on ordinals: at most 64 passes before the rest fits or is all equal. */
static double order_statistic(const struct ranked *r, size_t k)
{
	double near[BUFFER] = {0};
	int64_t low = INT64_MIN, high = INT64_MAX;
	size_t inside = r->n;
	while (inside > BUFFER && low < high) {
		int64_t middle = low + (int64_t)(((uint64_t)high - (uint64_t)low) / 2);
		size_t left = gather(r, low, middle, near, 0);
		if (k < left) {
			high = middle;
			inside = left;
		} else {
			low = middle + 1;
			inside -= left;
			k -= left;
		}
	}
	gather(r, low, high, near, BUFFER);
	return low == high ? near[0] : find_rank(near, inside, k);
}

static double median_of(const struct ranked *r)
{
	if (!r->n)
		return NAN;
	double upper = order_statistic(r, r->n / 2);
	return r->n % 2 ? upper : (order_statistic(r, r->n / 2 - 1) + upper) / 2;
}

double stats_median(const double *x, size_t n)
{
	return median_of(&(struct ranked){.x = x, .n = n});
}

double stats_mad(const double *x, size_t n)
{
	return median_of(&(struct ranked){.x = x, .n = n, .centre = stats_median(x, n), .folded = true});
}

double stats_quantile(const double *x, size_t n, double q)
{
	if (!n)
		return NAN;
	struct ranked r = {.x = x, .n = n};
	double place = fmin(fmax(q, 0), 1) * (double)(n - 1), part = place - floor(place);
	size_t k = (size_t)place;
	double low = order_statistic(&r, k);
	if (part <= 0)
		return low;
	return low + part * (order_statistic(&r, k + 1) - low);
}

double stats_binomial_half(size_t k, size_t n)
{
	if (k >= n)
		return 1;
	if (k > n / 2) /* the shorter tail has the fewer terms */
		return 1 - stats_binomial_half(n - k - 1, n);
	/* sum of C(n, i) over i <= k, kept in range as sum * 2^scale. */
	double term = 1, sum = 1;
	int scale = 0;
	for (size_t i = 1; i <= k; i++) {
		term *= (double)(n - i + 1) / (double)i;
		sum += term;
		if (sum > 0x1p512) {
			term *= 0x1p-512;
			sum *= 0x1p-512;
			scale += 512;
		}
	}
	return ldexp(sum, scale - (int)n);
}

struct interval stats_median_interval(const double *x, size_t n, double confidence)
{
	/* [x(k), x(n-1-k)] misses the median with probability 2 P(X <= k): the largest k for which that is still
	 * allowed. */
	double miss = (1 - confidence) / 2;
	if (!n || stats_binomial_half(0, n) > miss)
		return (struct interval){-INFINITY, INFINITY};
	size_t k = 0, beyond = (n + 1) / 2;
	while (k + 1 < beyond) {
		size_t middle = k + (beyond - k) / 2;
		if (stats_binomial_half(middle, n) <= miss)
			k = middle;
		else
			beyond = middle;
	}
	struct ranked r = {.x = x, .n = n};
	return (struct interval){order_statistic(&r, k), order_statistic(&r, n - 1 - k)};
}

double stats_sign_below(const double *x, size_t n, double bound)
{
	size_t below = 0, above = 0;
	for (size_t i = 0; i < n; i++) {
		below += x[i] < bound;
		above += x[i] > bound;
	}
	return stats_binomial_half(above, below + above);
}
