/* The truth about a simulated host; see sim_host.h. */
#include "tests/sim/sim_host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- building ---------------------------------------------------------------------------------------------------- */

double sim_value(const struct sim_curve *curve, uint64_t bytes)
{
	size_t i = 0;
	double part;

	while (i < curve->count && curve->at[i].bytes < bytes)
		i++;
	if (i == 0)
		return curve->count > 0 ? curve->at[0].value : NAN;
	if (i == curve->count)
		return curve->at[i - 1].value;
	part = log((double)bytes / (double)curve->at[i - 1].bytes) /
	       log((double)curve->at[i].bytes / (double)curve->at[i - 1].bytes);
	return curve->at[i - 1].value * pow(curve->at[i].value / curve->at[i - 1].value, part);
}

void sim_point(struct sim_curve *curve, uint64_t bytes, double value)
{
	if (curve->count == SIM_POINTS)
		abort(); /* a test's table is larger than this simulator's */
	curve->at[curve->count].bytes = bytes;
	curve->at[curve->count++].value = value;
}

unsigned sim_kernel(struct sim_host *host, const char *name)
{
	const struct pc_kernel *kernel = pc_kernel_find(name);

	if (kernel == NULL)
		return pc_kernel_count;
	host->kernels |= 1u << pc_kernel_index(kernel);
	return pc_kernel_index(kernel);
}

struct sim_crowd *sim_crowd(struct sim_host *host, unsigned threads)
{
	size_t at = 0;

	while (at < host->crowds && host->crowd[at].threads < threads)
		at++;
	if (at < host->crowds && host->crowd[at].threads == threads)
		return &host->crowd[at];
	if (host->crowds == SIM_CROWDS)
		abort(); /* as in sim_point() */
	memmove(&host->crowd[at + 1], &host->crowd[at], (host->crowds++ - at) * sizeof(host->crowd[0]));
	host->crowd[at] = (struct sim_crowd){.threads = threads};
	return &host->crowd[at];
}

/* --- the truth --------------------------------------------------------------------------------------------------- */

double sim_slowness(const struct sim_host *host)
{
	return host->slower > 0 ? host->slower : 1;
}

/* The size that `bytes` behaves like. Private caches do not move: from a sixteenth of the last-level cache on the shift
 * sets in, from a quarter on it is full. Ascending as long as |octaves| < 2. */
static uint64_t shifted(const struct sim_host *host, uint64_t bytes, double octaves)
{
	double part = (log2((double)bytes / (double)host->llc_bytes) + 4) / 2;

	return octaves == 0 ? bytes : (uint64_t)fmax(1, (double)bytes * exp2(-octaves * fmin(1, fmax(0, part))));
}

/* The fewest threads from those asked for up, else the most; NULL for one thread, and where only one's is known. */
static const struct sim_crowd *crowd_for(const struct sim_host *host, unsigned threads)
{
	size_t at = 0;

	if (threads <= 1 || host->crowds == 0)
		return NULL;
	while (at + 1 < host->crowds && host->crowd[at].threads < threads)
		at++;
	return &host->crowd[at];
}

static const struct sim_curve *speeds(const struct sim_host *host, const struct meter_ask *ask)
{
	unsigned kernel = pc_kernel_index(ask->kernel);
	const struct sim_crowd *crowd = crowd_for(host, ask->threads);

	if (ask->phase == PHASE_SINGLE && host->kernel[kernel].single_gb_per_s.count > 0)
		return &host->kernel[kernel].single_gb_per_s;
	if (crowd != NULL && crowd->gb_per_s[kernel][ask->prior].count > 0)
		return &crowd->gb_per_s[kernel][ask->prior];
	return &host->kernel[kernel].gb_per_s[ask->prior];
}

/* One chunk has no order. */
static double way_factor(const struct sim_kernel *kernel, const struct meter_ask *ask)
{
	bool chunked = ask->chunk > 0 && ask->chunk < ask->bytes;
	double factor = 1;

	if (chunked && kernel->by_chunk.count > 0)
		factor *= sim_value(&kernel->by_chunk, ask->bytes) / sim_value(&kernel->by_chunk, ask->chunk);
	if (chunked && ask->backward && kernel->backward > 0)
		factor *= kernel->backward;
	if (ask->base_pages && page_usual(ask->bytes) == PAGE_HUGE && kernel->base_pages > 0)
		factor *= kernel->base_pages;
	return factor;
}

double sim_ask_clear_ns(const struct sim_host *host, const struct meter_ask *ask, double octaves)
{
	const struct sim_kernel *kernel = &host->kernel[pc_kernel_index(ask->kernel)];
	double ns = (double)ask->bytes / sim_value(speeds(host, ask), shifted(host, ask->bytes, octaves));

	if (ask->phase == PHASE_SINGLE && kernel->single_gb_per_s.count == 0)
		ns += kernel->single_ns;
	return sim_slowness(host) * ns * way_factor(kernel, ask);
}

static bool goes_round_caches(const struct pc_kernel *kernel)
{
	return kernel->family == PC_NONTEMPORAL || kernel->family == PC_LINE;
}

static double read_speed(const struct sim_host *host, unsigned threads, enum pc_prior prior)
{
	const struct sim_crowd *crowd = crowd_for(host, threads);

	return crowd != NULL && crowd->read_gb_per_s[prior] > 0 ? crowd->read_gb_per_s[prior]
	                                                        : host->read_gb_per_s[prior];
}

/* A clear with ordinary stores leaves a cacheful behind, of several threads each its share; a forward read of more than
 * two of them finds nothing of it. What it found before does not matter. */
double sim_ask_read_ns(const struct sim_host *host, const struct meter_ask *ask, double octaves)
{
	double share = (double)host->llc_bytes / (ask->threads > 1 ? ask->threads : 1);
	double beyond = log2((double)ask->bytes / share) - octaves, cached = fmin(1, fmax(0, 1 - beyond));

	if (goes_round_caches(ask->kernel))
		cached = 0;
	return sim_slowness(host) * (double)ask->bytes *
	       (cached / read_speed(host, ask->threads, PC_CACHED) +
	        (1 - cached) / read_speed(host, ask->threads, PC_FLUSHED));
}

double sim_clear_ns(const struct sim_host *host, unsigned kernel, enum pc_prior prior, uint64_t bytes)
{
	return sim_ask_clear_ns(host,
	                        &(struct meter_ask){.kernel = &pc_kernels[kernel], .prior = prior, .bytes = bytes}, 0);
}

double sim_read_ns(const struct sim_host *host, unsigned kernel, enum pc_prior prior, uint64_t bytes)
{
	return sim_ask_read_ns(host, &(struct meter_ask){.kernel = &pc_kernels[kernel], .prior = prior, .bytes = bytes},
	                       0);
}

static uint64_t victim_size(const struct sim_host *host, unsigned victim)
{
	return victim == 0 ? host->l1_bytes : victim == 1 ? host->l2_bytes : host->llc_bytes / 2;
}

double sim_displaced_ns(const struct sim_host *host, unsigned kernel, unsigned victim, uint64_t bytes)
{
	const struct sim_kernel *of = &host->kernel[kernel];
	uint64_t most = victim_size(host, victim);

	if (of->displaces[victim].bytes == 0)
		return 0;
	if (bytes > most)
		bytes = most;
	return sim_slowness(host) * of->displaces[victim].ns * (double)bytes / (double)of->displaces[victim].bytes;
}

/* Of the shared cache all threads displace; the private ones only know their own. */
double sim_ask_displaced_ns(const struct sim_host *host, const struct meter_ask *ask)
{
	unsigned victim = (unsigned)(ask->phase - PHASE_VICTIM_L1);
	uint64_t threads = ask->phase == PHASE_VICTIM_LLC && ask->threads > 1 ? ask->threads : 1;

	return sim_displaced_ns(host, pc_kernel_index(ask->kernel), victim, threads * ask->bytes);
}

double sim_latency_ns(const struct sim_host *host, uint64_t bytes, double octaves)
{
	return sim_slowness(host) * sim_value(&host->latency_ns, shifted(host, bytes, octaves));
}
