/* The simulated meter; see meter_sim.h. */
#include "tests/sim/meter_sim.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "calibrd/random.h"

const struct sim_noise sim_noise_guest = {
	.within = 0.08,
	.round = 0.05,
	.victim = 0.02,
	.between = 0.04,
	.drift = 0.05,
	.spikes = 0.005,
	.steal = 0.02,
	.switches = 0.01,
};
const struct sim_noise sim_noise_none = {0};

/* What the preparation of a sample takes (background: prototypes on one guest). */
static const double dirty_ns_per_kib = 75, flush_ns_per_kib = 30, call_ns = 300;

struct sim_meter {
	struct meter meter;
	const struct sim_host *host;
	const struct sim_noise *noise;
	uint64_t seed, epoch;
	struct random random;
	double clock_ns;
	uint64_t target_bytes, victim_bytes; /* what this epoch's mappings hold */
	double round_factor;
	bool stolen;
	unsigned calls_left; /* until samples fail */
	int error;
};

/* --- the truth --------------------------------------------------------------------------------------------------- */

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

static double slowness(const struct sim_host *host)
{
	return host->slower > 0 ? host->slower : 1;
}

double sim_clear_ns(const struct sim_host *host, unsigned kernel, enum pc_prior prior, uint64_t bytes)
{
	return slowness(host) * (double)bytes / sim_value(&host->kernel[kernel].gb_per_s[prior], bytes);
}

static double single_ns(const struct sim_host *host, unsigned kernel, uint64_t bytes)
{
	const struct sim_kernel *of = &host->kernel[kernel];

	if (of->single_gb_per_s.count > 0)
		return slowness(host) * (double)bytes / sim_value(&of->single_gb_per_s, bytes);
	return sim_clear_ns(host, kernel, PC_FLUSHED, bytes) + slowness(host) * of->single_ns;
}

static bool goes_round_caches(unsigned kernel)
{
	return pc_kernels[kernel].family == PC_NONTEMPORAL || pc_kernels[kernel].family == PC_LINE;
}

/* A clear with ordinary stores leaves a cacheful behind; a forward read of more than two of them finds nothing of it.
 */
double sim_read_ns(const struct sim_host *host, unsigned kernel, enum pc_prior prior, uint64_t bytes)
{
	double octaves = log2((double)bytes / (double)host->llc_bytes), cached = fmin(1, fmax(0, 1 - octaves));

	(void)prior; /* what a clear leaves does not depend on what it found */
	if (goes_round_caches(kernel))
		cached = 0;
	return slowness(host) * (double)bytes *
	       (cached / host->read_gb_per_s[PC_CACHED] + (1 - cached) / host->read_gb_per_s[PC_FLUSHED]);
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
	return slowness(host) * of->displaces[victim].ns * (double)bytes / (double)of->displaces[victim].bytes;
}

/* --- noise ------------------------------------------------------------------------------------------------------- */

static double normal(struct random *random)
{
	double radius = sqrt(-2 * log(random_unit(random)));

	return radius * cos(2 * M_PI * random_unit(random));
}

/* The same for the same cell and epoch, whenever it is asked for. */
static double between(const struct sim_meter *sim, enum phase phase, const struct meter_ask *ask)
{
	struct random random = {sim->seed ^ (sim->epoch * 0x100000001b3u) ^ ((uint64_t)phase << 48)};

	if (phase < PHASE_VICTIM_L1)
		random.state ^=
			((uint64_t)pc_kernel_index(ask->kernel) << 56) ^ ((uint64_t)ask->prior << 52) ^ ask->bytes;
	if (sim->noise->between <= 0)
		return 1;
	random_next(&random);
	return exp(sim->noise->between * normal(&random));
}

static double drift(const struct sim_meter *sim)
{
	return exp(sim->noise->drift * sin(sim->clock_ns / 60e9 * 2 * M_PI));
}

static double disturbed(struct sim_meter *sim, double within, double ns)
{
	double factor = sim->round_factor * drift(sim) * (sim->stolen ? 1.5 : 1);

	if (within > 0)
		factor *= exp(within * normal(&sim->random));
	if (sim->noise->spikes > 0 && random_unit(&sim->random) < sim->noise->spikes)
		factor *= 10;
	return ns * factor;
}

/* --- the meter --------------------------------------------------------------------------------------------------- */

static uint64_t sim_now(struct meter *meter)
{
	return (uint64_t)((struct sim_meter *)meter)->clock_ns;
}

static int sim_epoch(struct meter *meter, const struct meter_room *room)
{
	struct sim_meter *sim = (struct sim_meter *)meter;

	sim->epoch++;
	sim->target_bytes = room->target_bytes;
	sim->victim_bytes = room->victim_bytes;
	/* Fresh mappings are written once. */
	sim->clock_ns +=
		slowness(sim->host) * (double)(room->target_bytes + room->victim_bytes) / 1024 * 2 * dirty_ns_per_kib;
	return 0;
}

static int sim_latency(struct meter *meter, uint64_t bytes, double *ns)
{
	struct sim_meter *sim = (struct sim_meter *)meter;
	double loads = fmin((double)bytes / 64, 200000);

	if (bytes > sim->target_bytes)
		return -EINVAL;
	*ns = disturbed(sim, sim->noise->victim, slowness(sim->host) * sim_value(&sim->host->latency_ns, bytes));
	sim->clock_ns += loads * *ns + slowness(sim->host) * (double)bytes / 1024 * dirty_ns_per_kib;
	return 0;
}

static int sim_round_begin(struct meter *meter, uint64_t seed)
{
	struct sim_meter *sim = (struct sim_meter *)meter;

	(void)seed; /* no place is better than another */
	sim->round_factor = sim->noise->round > 0 ? exp(sim->noise->round * normal(&sim->random)) : 1;
	sim->stolen = sim->noise->steal > 0 && random_unit(&sim->random) < sim->noise->steal;
	sim->clock_ns += call_ns;
	return 0;
}

static bool sim_round_end(struct meter *meter)
{
	struct sim_meter *sim = (struct sim_meter *)meter;
	bool stolen = sim->stolen;

	sim->round_factor = 1;
	sim->stolen = false;
	return stolen;
}

/* Prepares a target as the real meter does. */
static void prepare(struct sim_meter *sim, uint64_t bytes, enum pc_prior prior, unsigned passes)
{
	double kib = (double)bytes / 1024, dirty = dirty_ns_per_kib * (prior == PC_CACHED ? passes : 1);

	sim->clock_ns += slowness(sim->host) * (call_ns + kib * (dirty + (prior == PC_FLUSHED ? flush_ns_per_kib : 0)));
}

static void sample_clear(struct sim_meter *sim, const struct meter_ask *ask, struct meter_sample *out)
{
	unsigned kernel = pc_kernel_index(ask->kernel);
	double ns = ask->phase == PHASE_SINGLE ? single_ns(sim->host, kernel, ask->bytes)
	                                       : sim_clear_ns(sim->host, kernel, ask->prior, ask->bytes);

	prepare(sim, ask->bytes, ask->prior, ask->passes);
	out->ns = disturbed(sim, sim->noise->within, ns * between(sim, ask->phase, ask));
	if (ask->read) {
		ns = sim_read_ns(sim->host, kernel, ask->prior, ask->bytes);
		out->read_ns = disturbed(sim, sim->noise->within, ns * between(sim, PHASE_READ, ask));
	}
	/* The real meter repeats small ones under its timer. */
	sim->clock_ns += (out->ns + out->read_ns) * fmax(1, 65536 / (double)ask->bytes);
}

/* What is there and what was displaced are one reading, so disturbed alike. */
static void sample_victim(struct sim_meter *sim, const struct meter_ask *ask, struct meter_sample *out)
{
	unsigned victim = (unsigned)(ask->phase - PHASE_VICTIM_L1);
	double there = sim->host->victim_ns[victim], ns, least;

	if (there <= 0)
		there = (double)ask->victim_bytes / 64 * sim_value(&sim->host->latency_ns, ask->victim_bytes);
	ns = slowness(sim->host) * there;
	least = ns / 10; /* however much faster a table says it gets */

	prepare(sim, ask->bytes, PC_FLUSHED, 1);
	if (ask->kernel != NULL) {
		ns += sim_displaced_ns(sim->host, pc_kernel_index(ask->kernel), victim, ask->bytes);
		sim->clock_ns += sim_clear_ns(sim->host, pc_kernel_index(ask->kernel), PC_FLUSHED, ask->bytes);
	}
	out->ns = disturbed(sim, sim->noise->victim, fmax(ns, least) * between(sim, ask->phase, ask));
	sim->clock_ns += 3 * out->ns;
}

static bool can_ask(const struct sim_meter *sim, const struct meter_ask *ask)
{
	return (ask->prior == PC_CACHED || ask->prior == PC_FLUSHED) && ask->bytes > 0 &&
	       ask->bytes <= sim->target_bytes && ask->victim_bytes <= sim->victim_bytes &&
	       (ask->kernel != NULL ? (sim->host->kernels >> pc_kernel_index(ask->kernel) & 1) != 0
	                            : ask->phase >= PHASE_VICTIM_L1);
}

static int sim_sample(struct meter *meter, const struct meter_ask *ask, struct meter_sample *out)
{
	struct sim_meter *sim = (struct sim_meter *)meter;

	*out = (struct meter_sample){0};
	if (sim->error != 0 && sim->calls_left == 0)
		return sim->error;
	if (sim->calls_left > 0)
		sim->calls_left--;
	if (!can_ask(sim, ask))
		return -EINVAL;
	if (ask->phase >= PHASE_VICTIM_L1)
		sample_victim(sim, ask, out);
	else
		sample_clear(sim, ask, out);
	out->tainted = sim->noise->switches > 0 && random_unit(&sim->random) < sim->noise->switches;
	if (out->tainted)
		out->ns *= 1.5;
	return 0;
}

static int sim_probe(struct meter *meter, uint64_t bytes, enum pc_prior prior, unsigned lines, double *loads,
                     double *whole_ns)
{
	struct sim_meter *sim = (struct sim_meter *)meter;

	if (bytes > sim->target_bytes)
		return -EINVAL;
	prepare(sim, bytes, prior, 3);
	*whole_ns = 20;
	for (unsigned i = 0; i < lines; i++) {
		loads[i] = disturbed(sim, sim->noise->within, slowness(sim->host) * sim->host->load_ns[prior]);
		*whole_ns += loads[i];
	}
	sim->clock_ns += *whole_ns;
	return 0;
}

static void sim_free(struct meter *meter)
{
	free(meter);
}

static const struct meter_ops sim_ops = {
	.now_ns = sim_now,
	.epoch = sim_epoch,
	.latency = sim_latency,
	.round_begin = sim_round_begin,
	.sample = sim_sample,
	.round_end = sim_round_end,
	.probe = sim_probe,
	.free = sim_free,
};

void meter_sim_fail(struct meter *meter, unsigned calls, int error)
{
	struct sim_meter *sim = (struct sim_meter *)meter;

	sim->calls_left = calls;
	sim->error = error;
}

int meter_sim_new(struct meter **out, const struct sim_host *host, const struct sim_noise *noise, uint64_t seed)
{
	struct sim_meter *sim = calloc(1, sizeof(*sim));

	if (sim == NULL)
		return -ENOMEM;
	sim->meter.ops = &sim_ops;
	sim->host = host;
	sim->noise = noise;
	sim->seed = seed * 0x9e3779b97f4a7c15u;
	sim->random.state = seed;
	sim->round_factor = 1;
	*out = &sim->meter;
	return 0;
}
