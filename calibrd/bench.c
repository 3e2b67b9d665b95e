/* The benchmark's loops; see bench.h. */
#include "calibrd/bench.h"

#include <errno.h>
#include <math.h>

#include "calibrd/bench_parts.h"
#include "calibrd/knee.h"
#include "calibrd/refine.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

enum {
	PROBE_REPEATS = 12,
	LEAST_EPOCHS = 3, /* however sure two epochs are: variance lives between them */
	CREW_LEAST = 2 << 20,
};

static uint64_t now(const struct bench *bench)
{
	return bench->meter->ops->now_ns(bench->meter);
}

bool bench_stopped(const struct bench *bench)
{
	return bench->config->stop != NULL && *bench->config->stop != 0;
}

static double budget_ns(const struct bench *bench)
{
	return bench->plan.limits.seconds * 1e9;
}

static double spent_ns(const struct bench *bench)
{
	return (double)(now(bench) - bench->started_ns);
}

static int progress(struct bench *bench)
{
	if (bench->sink->progress == NULL)
		return 0;
	return bench->sink->progress(bench->sink->context, bench->epoch, bench->plan.limits.epochs,
	                             fmin(1, spent_ns(bench) / budget_ns(bench)));
}

/* Threads, their CPUs or their memory cannot be had: a host, or a container, may say so only when they are needed. */
static bool is_crew_trouble(int r)
{
	return r == -EAGAIN || r == -ENOMEM || r == -EINVAL || r == -EPERM;
}

/* What one thread measures is worth having without the others. */
static int lose_crew(struct bench *bench, int r)
{
	plan_drop_threads(&bench->plan);
	return bench->sink->crew_lost != NULL ? bench->sink->crew_lost(bench->sink->context, r) : 0;
}

/* A block ends early when it has used up its time: the first rounds on an unknown host may cost far more than thought.
 */
static int run_block(struct bench *bench, struct block *block)
{
	double allotted = block->rounds * block->round_ns;
	uint64_t start = now(bench);
	unsigned done = 0;
	int r = 0;

	while (r == 0 && done < block->rounds && (done == 0 || (double)(now(bench) - start) < allotted))
		r = rounds_take(bench, block, done++);
	plan_spent(block, done, (double)(now(bench) - start));
	return block->threads > 1 && r < 0 && r == bench->sample_error && is_crew_trouble(r) ? lose_crew(bench, r) : r;
}

/* All blocks of the epoch that do (or do not) wait for the race, in shuffled order, as far as its time goes. */
static int run_blocks(struct bench *bench, bool waiting)
{
	unsigned order[PLAN_BLOCKS] = {0};
	int r = 0;

	for (unsigned i = 0; i < bench->plan.count; i++)
		order[i] = i;
	random_shuffle(&bench->random, order, bench->plan.count);
	for (size_t i = 0; i < bench->plan.count && r == 0; i++) {
		struct block *block = &bench->plan.blocks[order[i]];

		if ((block->field > FIELD_GIVEN) != waiting || block->kernels == 0)
			continue;
		if (spent_ns(bench) > bench->late_ns)
			break;
		r = run_block(bench, block);
		if (r == 0)
			r = progress(bench);
	}
	return r;
}

/* --- knee and probe ---------------------------------------------------------------------------------------------- */

/* Knee and probe stop early rather than leave nothing of the epoch: on an emulator each would take longer than that. */
static bool has_time(const struct bench *bench, double start_ns)
{
	return spent_ns(bench) - start_ns < bench->share_ns / 5;
}

/* Twice the reported cache, since reports lie in both directions never less than 64 MiB. */
uint64_t bench_knee_top(const struct bench *bench)
{
	uint64_t top = 2 * bench->config->llc_bytes;

	if (top < 64 * MIB)
		top = 64 * MIB;
	while (top > bench->plan.limits.most_bytes || top > bench->config->memory_bytes / 2)
		top /= 2;
	return top;
}

static int find_knee(struct bench *bench)
{
	struct knee_point curve[64];
	double start = spent_ns(bench);
	size_t count = 0;
	int r = 0;

	for (uint64_t bytes = 256 * KIB; bytes <= bench_knee_top(bench) && count + 1 < 64 && has_time(bench, start);
	     bytes *= 2)
		for (uint64_t size = bytes; size <= bytes / 2 * 3 && r == 0; size += bytes / 2) {
			curve[count].bytes = size;
			if (size <= bench_knee_top(bench))
				r = bench->meter->ops->latency(bench->meter, size, &curve[count++].ns);
			if (r == 0 && bench_stopped(bench))
				r = -ECANCELED;
		}
	if (r < 0)
		return r;
	bench->knee_bytes = knee_find(curve, count, bench->config->l2_bytes);
	if (bench->sink->knee != NULL)
		r = bench->sink->knee(bench->sink->context, bench->epoch, bench->knee_bytes);
	return r;
}

static int probe_once(struct bench *bench, uint64_t bytes, enum pc_prior prior)
{
	struct bench_probe probe = {.bytes = bytes, .prior = prior};
	int r = bench->meter->ops->round_begin(bench->meter, random_next(&bench->random));
	bool tainted;

	if (r == 0)
		r = bench->meter->ops->probe(bench->meter, bytes, prior, BENCH_PROBE_LINES, probe.looks,
		                             &probe.whole_ns);
	tainted = bench->meter->ops->round_end(bench->meter);
	if (r == 0 && !tainted && bench->sink->probe != NULL)
		r = bench->sink->probe(bench->sink->context, &probe);
	return r == 0 && bench_stopped(bench) ? -ECANCELED : r;
}

static int run_probe(struct bench *bench)
{
	uint64_t most = 16 * MIB < bench->plan.limits.most_bytes ? 16 * MIB : bench->plan.limits.most_bytes;
	double start = spent_ns(bench);
	int r = 0;

	if (most > bench->config->memory_bytes / 2)
		most = bench->config->memory_bytes / 2;
	for (uint64_t bytes = 16 * KIB; bytes <= most && r == 0 && has_time(bench, start); bytes *= 2)
		for (unsigned i = 0; i < PROBE_REPEATS && r == 0; i++) {
			r = probe_once(bench, bytes, PC_CACHED);
			if (r == 0)
				r = probe_once(bench, bytes, PC_FLUSHED);
		}
	return r;
}

/* --- epochs ------------------------------------------------------------------------------------------------------ */

static uint64_t most_target(const struct bench *bench)
{
	uint64_t most = 0;

	for (size_t i = 0; i < bench->plan.count; i++)
		if (bench->plan.blocks[i].bytes > most)
			most = bench->plan.blocks[i].bytes;
	return most > bench_knee_top(bench) ? most : bench_knee_top(bench);
}

/* Half of the memory is for the caller's targets, a quarter for the victims, an eighth each for the other threads and
 * for base pages. Mappings are whole huge pages: a crew that could not have one each takes no part. */
static struct plan_means means(const struct bench_config *config)
{
	uint64_t crew_bytes = config->threads > 1 ? config->memory_bytes / 8 / (config->threads - 1) : 0;

	crew_bytes -= crew_bytes < METER_OVERHEAD_THREAD ? crew_bytes : METER_OVERHEAD_THREAD;
	return (struct plan_means){.kernels = config->kernels,
	                           .memory_bytes = config->memory_bytes / 2,
	                           .base_bytes = config->memory_bytes / 8,
	                           .threads = crew_bytes >= CREW_LEAST ? config->threads : 0,
	                           .crew_bytes = crew_bytes};
}

static struct meter_room room(const struct bench *bench)
{
	struct meter_room room = {.target_bytes = most_target(bench), .victim_bytes = bench_knee_top(bench) / 2};

	for (size_t i = 0; i < bench->plan.count; i++) {
		const struct block *block = &bench->plan.blocks[i];

		if (block->kind == BLOCK_SPOT && block->bytes > room.base_bytes)
			room.base_bytes = block->bytes;
		if (block->threads > 1 && block->bytes > room.crew_bytes)
			room.crew_bytes = block->bytes;
	}
	return room;
}

static int run_epoch(struct bench *bench)
{
	unsigned left = bench->plan.limits.epochs - bench->epoch;
	struct meter_room mappings = room(bench);
	double due;
	int r;

	bench->share_ns = (budget_ns(bench) - spent_ns(bench)) / left;
	due = spent_ns(bench) + bench->share_ns;
	bench->late_ns = due + bench->share_ns / 4; /* the next epochs make good for it */
	r = bench->meter->ops->epoch(bench->meter, &mappings);
	if (r == 0)
		r = find_knee(bench);
	if (r == 0)
		r = run_probe(bench);
	if (r < 0)
		return r;
	plan_epoch(&bench->plan, fmax(0, due - spent_ns(bench)));
	r = run_blocks(bench, false);
	if (r == 0)
		plan_race(&bench->plan, bench->data);
	return r == 0 ? run_blocks(bench, true) : r;
}

/* From the second epoch on: what is settled, and where a size more would tell. 1: nothing is open any more. */
static int look_back(struct bench *bench)
{
	int r = bench->epoch > 0 ? refine(&bench->plan, bench->data, bench->config->scrub_weight) : 0;

	return r == 0 && bench->epoch >= LEAST_EPOCHS && refine_is_settled(&bench->plan) ? 1 : r;
}

int bench_run(struct meter *meter, const struct bench_config *config, struct dataset *data,
              const struct bench_sink *sink)
{
	static const struct bench_sink nobody;
	struct bench bench = {
		.meter = meter,
		.config = config,
		.data = data,
		.sink = sink != NULL ? sink : &nobody,
		.random = {config->seed},
	};
	struct plan_means allowed = means(config);
	int r = 0;

	bench.started_ns = now(&bench);
	plan_build(&bench.plan, config->effort, &allowed);
	bench.plan.keep = config->keep;
	for (bench.epoch = 0; bench.epoch < bench.plan.limits.epochs && r == 0; bench.epoch++) {
		if (spent_ns(&bench) >= budget_ns(&bench))
			break;
		r = progress(&bench);
		if (r == 0)
			r = look_back(&bench);
		if (r == 0)
			r = run_epoch(&bench);
	}
	return r < 0 ? r : 0;
}
