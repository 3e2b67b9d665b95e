/* Reads the knee off a latency curve; see knee.h. */
#include "calibrd/knee.h"

#include <math.h>

#include "calibrd/stats.h"

static const double rise = 1.5; /* memory must be this much slower than the cache, else there is no knee to see */

/* Median with both neighbours: leaves a rising curve as it is and takes a single spike out of it. */
static double latency_at(const struct knee_point *points, size_t count, size_t i)
{
	if (i == 0 || i + 1 == count)
		return points[i].ns;
	return stats_median((double[]){points[i - 1].ns, points[i].ns, points[i + 1].ns}, 3);
}

/* Between cache and memory; 0 where they do not differ. The first size beyond the private caches shows what the shared
 * one costs when it holds everything. Without it the smallest size, perhaps in a private cache, says only whether there
 * is a cache at all. */
static double threshold_ns(const struct knee_point *points, size_t count, uint64_t inner_bytes)
{
	double memory = points[count - 1].ns, plateau;
	size_t i = 0;

	while (i + 1 < count && points[i].bytes <= inner_bytes)
		i++;
	plateau = latency_at(points, count, i);
	if (memory < plateau * rise)
		return 0;
	return inner_bytes > 0 ? sqrt(plateau * memory) : memory / 2;
}

uint64_t knee_find(const struct knee_point *points, size_t count, uint64_t inner_bytes)
{
	double threshold;
	uint64_t knee = 0;

	if (count < 3)
		return 0;
	threshold = threshold_ns(points, count, inner_bytes);
	for (size_t i = 0; i < count && latency_at(points, count, i) < threshold; i++)
		knee = points[i].bytes;
	return knee;
}
