/* What the huge page's figures say in words: Deacon's questions answered; see bench_hugepage.h. Pure. */
#include <math.h>

#include "calibctl/bench_hugepage.h"
#include "calibctl/words.h"
#include "calibrd/stats.h"

/* What cannot be told of a way says nothing of the others: it is not 0. */
static void add_shares(double sums[VARIANCE_PARTS], size_t known[VARIANCE_PARTS], const double share[VARIANCE_PARTS])
{
	for (enum variance_part part = 0; part < VARIANCE_PARTS; part++)
		if (!isnan(share[part])) {
			sums[part] += share[part];
			known[part]++;
		}
}

void hugepage_summarise(struct hugepage_summary *out, const struct hugepage_table *table, bool base_pages)
{
	double deviations[HUGEPAGE_WAYS], clean[HUGEPAGE_WAYS];
	size_t clean_count = 0, known[VARIANCE_PARTS] = {0};

	*out = (struct hugepage_summary){0};
	for (size_t i = 0; i < table->count; i++) {
		const struct variance *variance = &table->ways[i].variance;

		if (table->ways[i].base_pages != base_pages || isnan(variance->share[VARIANCE_REST]))
			continue;
		deviations[out->count++] = variance->stdev / variance->mean;
		if (!isnan(variance->clean_stdev))
			clean[clean_count++] = variance->clean_stdev / variance->clean_mean;
		add_shares(out->share, known, variance->share);
	}
	for (enum variance_part part = 0; part < VARIANCE_PARTS; part++)
		out->share[part] = known[part] > 0 ? out->share[part] / (double)known[part] : NAN;
	out->relative_stdev = stats_median(deviations, out->count);
	out->clean_relative_stdev = stats_median(clean, clean_count);
}

/* --- words ------------------------------------------------------------------------------------------------------- */

/* The largest share from `least` up that is not told yet; VARIANCE_PARTS: none. */
static enum variance_part next_part(const struct hugepage_summary *summary, double least,
                                    const bool told[VARIANCE_PARTS])
{
	enum variance_part most = VARIANCE_PARTS;

	for (enum variance_part part = VARIANCE_WARM_UP; part < VARIANCE_PARTS; part++)
		if (!told[part] && summary->share[part] >= least &&
		    (most == VARIANCE_PARTS || summary->share[part] > summary->share[most]))
			most = part;
	return most;
}

void hugepage_words(const struct hugepage_summary *summary, char out[HUGEPAGE_WORDS])
{
	const double least = 0.05; /* what is less is no answer to why */
	bool told[VARIANCE_PARTS] = {false}, tainted = summary->share[VARIANCE_TAINT] >= least;
	char share[WORDS_SHORT];

	out[0] = '\0';
	if (summary->count == 0)
		words_append(out, HUGEPAGE_WORDS, "the deviation cannot be taken apart: too few samples");
	words_percent(summary->share[VARIANCE_TAINT], share);
	if (summary->count > 0 && tainted)
		words_append(out, HUGEPAGE_WORDS, "%s of the variance %s; of the variance without them, ", share,
		             variance_part_words(VARIANCE_TAINT));
	for (unsigned i = 0; summary->count > 0; i++) {
		enum variance_part part = next_part(summary, least, told);

		if (part == VARIANCE_PARTS)
			break;
		told[part] = true;
		words_percent(summary->share[part], share);
		words_append(out, HUGEPAGE_WORDS, "%s%s%s %s", i > 0 ? "; " : "", share,
		             i > 0 || tainted ? "" : " of the variance", variance_part_words(part));
	}
}

/* --- comparisons ------------------------------------------------------------------------------------------------- */

static const struct hugepage_way *find_way(const struct hugepage_table *table, const struct hugepage_way *like)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct hugepage_way *way = &table->ways[i];

		if (way->kernel == like->kernel && way->chunk == like->chunk && way->backward == like->backward &&
		    way->base_pages == like->base_pages)
			return way;
	}
	return NULL;
}

static bool compare(struct hugepage_ratio *out, const struct hugepage_way *way, const struct hugepage_way *with)
{
	double ratio = with != NULL ? way->variance.median / with->variance.median : NAN;

	if (!isfinite(ratio))
		return false;
	out->least = fmin(out->least, ratio);
	out->most = fmax(out->most, ratio);
	return true;
}

bool hugepage_chunk_ratio(struct hugepage_ratio *out, const struct hugepage_table *table, uint64_t chunk,
                          bool base_pages)
{
	bool found = false;

	*out = (struct hugepage_ratio){INFINITY, -INFINITY};
	for (size_t i = 0; i < table->count; i++) {
		const struct hugepage_way *way = &table->ways[i];
		struct hugepage_way whole = *way;

		whole.chunk = HUGEPAGE_BYTES;
		if (way->chunk == chunk && !way->backward && way->base_pages == base_pages)
			found |= compare(out, way, find_way(table, &whole));
	}
	return found;
}

bool hugepage_backward_ratio(struct hugepage_ratio *out, const struct hugepage_table *table, bool base_pages)
{
	bool found = false;

	*out = (struct hugepage_ratio){INFINITY, -INFINITY};
	for (size_t i = 0; i < table->count; i++) {
		const struct hugepage_way *way = &table->ways[i];
		struct hugepage_way forward = *way;

		forward.backward = false;
		if (way->backward && way->base_pages == base_pages)
			found |= compare(out, way, find_way(table, &forward));
	}
	return found;
}
