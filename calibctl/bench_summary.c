/* What the huge page's figures say in words: Deacon's questions answered; see bench_hugepage.h. Pure. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "calibctl/bench_hugepage.h"
#include "calibctl/words.h"
#include "calibrd/stats.h"

static void add_shares(double sums[VARIANCE_PARTS], const double share[VARIANCE_PARTS])
{
	for (enum variance_part part = 0; part < VARIANCE_PARTS; part++)
		sums[part] += isnan(share[part]) ? 0 : share[part];
}

void hugepage_summarise(struct hugepage_summary *out, const struct hugepage_table *table, bool base_pages)
{
	double deviations[HUGEPAGE_WAYS], clean[HUGEPAGE_WAYS];
	size_t clean_count = 0;

	*out = (struct hugepage_summary){0};
	for (size_t i = 0; i < table->count; i++) {
		const struct variance *variance = &table->ways[i].variance;

		if (table->ways[i].base_pages != base_pages || isnan(variance->share[VARIANCE_REST]))
			continue;
		deviations[out->count++] = variance->stdev / variance->mean;
		if (!isnan(variance->clean_stdev))
			clean[clean_count++] = variance->clean_stdev / variance->clean_mean;
		add_shares(out->share, variance->share);
	}
	for (enum variance_part part = 0; part < VARIANCE_PARTS; part++)
		out->share[part] = out->count > 0 ? out->share[part] / (double)out->count : NAN;
	out->relative_stdev = stats_median(deviations, out->count);
	out->clean_relative_stdev = stats_median(clean, clean_count);
}

/* --- words ------------------------------------------------------------------------------------------------------- */

static void say(char out[HUGEPAGE_WORDS], const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(char out[HUGEPAGE_WORDS], const char *format, ...)
{
	size_t used = strlen(out);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(out + used, HUGEPAGE_WORDS - used, format, arguments);
	va_end(arguments);
}

/* The largest share that is not told yet. */
static enum variance_part next_part(const struct hugepage_summary *summary, const bool told[VARIANCE_PARTS])
{
	enum variance_part most = VARIANCE_REST;

	for (enum variance_part part = VARIANCE_WARM_UP; part < VARIANCE_PARTS; part++)
		if (!told[part] && (told[most] || summary->share[part] > summary->share[most]))
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
		say(out, "the deviation cannot be taken apart: too few samples");
	words_percent(summary->share[VARIANCE_TAINT], share);
	if (summary->count > 0 && tainted)
		say(out, "%s of the variance %s; of the variance without them, ", share,
		    variance_part_words(VARIANCE_TAINT));
	for (unsigned i = 0; i + 1 < VARIANCE_PARTS && summary->count > 0; i++) {
		enum variance_part part = next_part(summary, told);

		told[part] = true;
		if (summary->share[part] < least)
			break;
		words_percent(summary->share[part], share);
		say(out, "%s%s%s %s", i > 0 ? "; " : "", share, i > 0 || tainted ? "" : " of the variance",
		    variance_part_words(part));
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
