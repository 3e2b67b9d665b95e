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
const struct sim_noise sim_noise_server = {
	.within = 0.04,
	.round = 0.025,
	.victim = 0.01,
	.between = 0.02,
	.crowd = 0.25,
	.drift = 0.025,
	.spikes = 0.0025,
	.switches = 0.005,
};
const struct sim_noise sim_noise_none = {0};

/* What the preparation of a sample takes (background: prototypes on one guest). */
static const double dirty_ns_per_kib = 75, flush_ns_per_kib = 30, call_ns = 300;

/* Bringing a crew to its common start, twice a sample. */
static const double start_ns = 20000;

struct sim_meter {
	struct meter meter;
	const struct sim_host *host;
	const struct sim_noise *noise;
	uint64_t seed, epoch;
	struct random random;
	double clock_ns;
	struct meter_room room;             /* what this epoch's mappings hold */
	uint64_t mapped_bytes;              /* the most in any epoch */
	double epoch_octaves, walk_octaves; /* the last-level cache's size, against what it says */
	double walked_ns;                   /* when it last walked */
	double round_normal;                /* what this round has in common, in standard deviations */
	bool stolen;
	unsigned calls_left; /* until samples fail */
	int error;
};

/* --- noise ------------------------------------------------------------------------------------------------------- */

static double normal(struct random *random)
{
	double radius = sqrt(-2 * log(random_unit(random)));

	return radius * cos(2 * M_PI * random_unit(random));
}

/* Several threads are noisier than one. */
static double spread(const struct sim_meter *sim, double alone, unsigned threads)
{
	return threads > 1 ? alone * (1 + sim->noise->crowd) : alone;
}

static void stir(struct random *random, uint64_t with)
{
	random->state = random_next(random) ^ with;
}

/* The same for the same cell and epoch, whenever it is asked for. */
static double between(const struct sim_meter *sim, enum phase phase, const struct meter_ask *ask)
{
	struct random random = {sim->seed ^ (sim->epoch * 0x100000001b3u) ^ ((uint64_t)phase << 48)};

	if (sim->noise->between <= 0)
		return 1;
	if (phase < PHASE_VICTIM_L1) {
		stir(&random, ask->bytes);
		stir(&random, pc_kernel_index(ask->kernel) << 8 | (unsigned)ask->prior);
		stir(&random, ask->chunk << 2 | (uint64_t)ask->backward << 1 | ask->base_pages);
		stir(&random, ask->threads > 1 ? ask->threads : 1);
	}
	return exp(spread(sim, sim->noise->between, ask->threads) * normal(&random));
}

static double drift(const struct sim_meter *sim)
{
	return exp(sim->noise->drift * sin(sim->clock_ns / 60e9 * 2 * M_PI));
}

static double disturbed(struct sim_meter *sim, double within, unsigned threads, double ns)
{
	double common = spread(sim, sim->noise->round, threads) * sim->round_normal;
	double factor = exp(common) * drift(sim) * (sim->stolen ? 1.5 : 1);

	if (within > 0)
		factor *= exp(spread(sim, within, threads) * normal(&sim->random));
	if (sim->noise->spikes > 0 && random_unit(&sim->random) < sim->noise->spikes)
		factor *= 10;
	return ns * factor;
}

/* --- the knee's walk --------------------------------------------------------------------------------------------- */

/* Further than that no neighbour takes or leaves a cache, and curves stay ascending. */
static double clamped(double octaves)
{
	return fmin(1.5, fmax(-1.5, octaves));
}

static void step_epoch(struct sim_meter *sim)
{
	if (sim->noise->knee > 0) /* of variance knee^2 in the long run */
		sim->epoch_octaves = sim->epoch_octaves / 2 + sqrt(0.75) * sim->noise->knee * normal(&sim->random);
}

/* Within an epoch: back by 1/e in ten seconds, a third of the epochs' spread in the long run. */
static void step_round(struct sim_meter *sim)
{
	double left;

	if (sim->noise->knee <= 0)
		return;
	left = exp((sim->walked_ns - sim->clock_ns) / 10e9);
	sim->walk_octaves =
		left * sim->walk_octaves + sqrt(1 - left * left) * sim->noise->knee / 3 * normal(&sim->random);
	sim->walked_ns = sim->clock_ns;
}

static double octaves(const struct sim_meter *sim)
{
	return clamped(sim->noise->shift + sim->epoch_octaves + sim->walk_octaves);
}

/* --- the meter --------------------------------------------------------------------------------------------------- */

static uint64_t sim_now(struct meter *meter)
{
	return (uint64_t)((struct sim_meter *)meter)->clock_ns;
}

static uint64_t mapped(const struct sim_host *host, const struct meter_room *room)
{
	uint64_t others = host->cpus > 1 ? host->cpus - 1 : 0;

	return room->target_bytes + room->base_bytes + room->victim_bytes + others * room->crew_bytes;
}

static int sim_epoch(struct meter *meter, const struct meter_room *room)
{
	struct sim_meter *sim = (struct sim_meter *)meter;
	uint64_t own = room->target_bytes + room->base_bytes + room->victim_bytes;

	sim->epoch++;
	step_epoch(sim);
	sim->room = *room;
	if (mapped(sim->host, room) > sim->mapped_bytes)
		sim->mapped_bytes = mapped(sim->host, room);
	/* Fresh mappings are written once, by all threads at the same time. */
	sim->clock_ns +=
		sim_slowness(sim->host) * fmax((double)own, (double)room->crew_bytes) / 1024 * 2 * dirty_ns_per_kib;
	return 0;
}

static int sim_latency(struct meter *meter, uint64_t bytes, double *ns)
{
	struct sim_meter *sim = (struct sim_meter *)meter;
	double loads = fmin((double)bytes / 64, 200000);

	if (bytes > sim->room.target_bytes)
		return -EINVAL;
	*ns = disturbed(sim, sim->noise->victim, 1, sim_latency_ns(sim->host, bytes, octaves(sim)));
	sim->clock_ns += loads * *ns + sim_slowness(sim->host) * (double)bytes / 1024 * dirty_ns_per_kib;
	return 0;
}

static int sim_round_begin(struct meter *meter, uint64_t seed)
{
	struct sim_meter *sim = (struct sim_meter *)meter;

	(void)seed; /* no place is better than another */
	step_round(sim);
	sim->round_normal = sim->noise->round > 0 ? normal(&sim->random) : 0;
	sim->stolen = sim->noise->steal > 0 && random_unit(&sim->random) < sim->noise->steal;
	sim->clock_ns += call_ns;
	return 0;
}

static bool sim_round_end(struct meter *meter)
{
	struct sim_meter *sim = (struct sim_meter *)meter;
	bool stolen = sim->stolen;

	sim->round_normal = 0;
	sim->stolen = false;
	return stolen;
}

/* Prepares a target as the real meter does; of several threads each its own, at the same time. */
static void prepare(struct sim_meter *sim, uint64_t bytes, enum pc_prior prior, unsigned passes, unsigned threads)
{
	double kib = (double)bytes / 1024, dirty = dirty_ns_per_kib * (prior == PC_CACHED ? passes : 1);

	sim->clock_ns +=
		sim_slowness(sim->host) *
		(call_ns + kib * (dirty + (prior == PC_FLUSHED ? flush_ns_per_kib : 0)) + (threads > 1 ? start_ns : 0));
}

static void sample_clear(struct sim_meter *sim, const struct meter_ask *ask, struct meter_sample *out)
{
	double within = sim->noise->within, ns = sim_ask_clear_ns(sim->host, ask, octaves(sim));

	prepare(sim, ask->bytes, ask->prior, ask->passes, ask->threads);
	out->ns = disturbed(sim, within, ask->threads, ns * between(sim, ask->phase, ask));
	if (ask->read) {
		ns = sim_ask_read_ns(sim->host, ask, octaves(sim));
		out->read_ns = disturbed(sim, within, ask->threads, ns * between(sim, PHASE_READ, ask));
	}
	/* The real meter repeats small ones under its timer. */
	sim->clock_ns += (out->ns + out->read_ns) * fmax(1, 65536 / (double)ask->bytes);
}

/* What is there and what was displaced are one reading, so disturbed alike. */
static void sample_victim(struct sim_meter *sim, const struct meter_ask *ask, struct meter_sample *out)
{
	double there = sim->host->victim_ns[ask->phase - PHASE_VICTIM_L1], ns, least;

	if (there <= 0)
		there = (double)ask->victim_bytes / 64 * sim_value(&sim->host->latency_ns, ask->victim_bytes);
	ns = sim_slowness(sim->host) * there;
	least = ns / 10; /* however much faster a table says it gets */

	prepare(sim, ask->bytes, PC_FLUSHED, 1, ask->threads);
	if (ask->kernel != NULL) {
		ns += sim_ask_displaced_ns(sim->host, ask);
		sim->clock_ns += sim_ask_clear_ns(sim->host, ask, octaves(sim));
	}
	out->ns = disturbed(sim, sim->noise->victim, ask->threads, fmax(ns, least) * between(sim, ask->phase, ask));
	sim->clock_ns += 3 * out->ns;
}

/* Whether the mappings hold it: of several threads each one's, small extents on base pages in any case. */
static bool has_room(const struct sim_meter *sim, const struct meter_ask *ask)
{
	return ask->bytes > 0 && ask->bytes <= sim->room.target_bytes && ask->victim_bytes <= sim->room.victim_bytes &&
	       (ask->threads <= 1 || ask->bytes <= sim->room.crew_bytes) &&
	       (!ask->base_pages || page_usual(ask->bytes) == PAGE_BASE || ask->bytes <= sim->room.base_bytes);
}

static bool makes_sense(const struct sim_meter *sim, const struct meter_ask *ask)
{
	if (ask->prior != PC_CACHED && ask->prior != PC_FLUSHED)
		return false;
	if (ask->threads > 1 && (ask->phase == PHASE_SINGLE || (sim->host->cpus > 0 && ask->threads > sim->host->cpus)))
		return false;
	return ask->kernel != NULL ? (sim->host->kernels >> pc_kernel_index(ask->kernel) & 1) != 0
	                           : ask->phase >= PHASE_VICTIM_L1;
}

static int sim_sample(struct meter *meter, const struct meter_ask *ask, struct meter_sample *out)
{
	struct sim_meter *sim = (struct sim_meter *)meter;

	*out = (struct meter_sample){0};
	if (sim->error != 0 && sim->calls_left == 0)
		return sim->error;
	if (sim->calls_left > 0)
		sim->calls_left--;
	if (!makes_sense(sim, ask) || !has_room(sim, ask))
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

static int sim_probe(struct meter *meter, uint64_t bytes, enum pc_prior prior, unsigned lines, double *looks,
                     double *whole_ns)
{
	struct sim_meter *sim = (struct sim_meter *)meter;

	if (bytes > sim->room.target_bytes)
		return -EINVAL;
	prepare(sim, bytes, prior, 3, 1);
	*whole_ns = 20;
	/* A look takes as long as its slowest load; the first alone says "cached". */
	for (unsigned look = 0; look < PC_PROBE_LOOKS; look++) {
		looks[look] = 0;
		for (unsigned i = 0; i < pc_probe_share(lines, look); i++)
			looks[look] = fmax(looks[look], disturbed(sim, sim->noise->within, 1,
			                                          sim_slowness(sim->host) * sim->host->load_ns[prior]));
		*whole_ns += prior == PC_CACHED && look > 0 ? 0 : looks[look];
	}
	sim->clock_ns += *whole_ns;
	return 0;
}

static void sim_rest(struct meter *meter, uint64_t ns)
{
	((struct sim_meter *)meter)->clock_ns += (double)ns;
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
	.rest = sim_rest,
	.free = sim_free,
};

void meter_sim_fail(struct meter *meter, unsigned calls, int error)
{
	struct sim_meter *sim = (struct sim_meter *)meter;

	sim->calls_left = calls;
	sim->error = error;
}

uint64_t meter_sim_mapped(const struct meter *meter)
{
	return ((const struct sim_meter *)meter)->mapped_bytes;
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
	*out = &sim->meter;
	return 0;
}
