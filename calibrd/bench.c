/* The benchmark's loops; see bench.h. */
#include "calibrd/bench.h"

#include <errno.h>
#include <math.h>

#include "calibrd/knee.h"
#include "calibrd/random.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

enum { CONTROL = PC_KERNEL_MAX, PROBE_REPEATS = 12 };

struct bench {
	struct meter *meter;
	const struct bench_config *config;
	struct dataset *data;
	const struct bench_sink *sink;
	struct plan plan;
	struct random random;
	uint64_t started_ns;
	double share_ns; /* of this epoch, mappings, knee and probe included */
	double late_ns;  /* since the start; what this epoch has not begun by then is left out */
	unsigned epoch;
	uint64_t knee_bytes; /* of this epoch; 0: not seen */
};

/* What one round holds before it is known whether the round counts. */
struct held {
	struct series_key key;
	double ns;
	bool tainted;
};

struct round {
	size_t count;
	struct held held[2 * PC_KERNEL_MAX * 3];
};

static uint64_t now(const struct bench *bench)
{
	return bench->meter->ops->now_ns(bench->meter);
}

static bool stopped(const struct bench *bench)
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

/* --- rounds ------------------------------------------------------------------------------------------------------ */

static void hold(struct round *round, const struct block *block, unsigned kernel, enum phase phase, double ns,
                 bool tainted)
{
	round->held[round->count++] = (struct held){
		.key = {.bytes = block->bytes,
	                .threads = 1,
	                .kernel = (uint8_t)kernel,
	                .prior = (uint8_t)block->prior,
	                .phase = (uint8_t)phase,
	                .page = (uint8_t)page_usual(block->bytes)},
		.ns = ns,
		.tainted = tainted,
	};
}

static int emit(struct bench *bench, const struct round *round, unsigned number, bool tainted)
{
	int r = 0;

	for (size_t i = 0; i < round->count && r == 0; i++) {
		const struct held *held = &round->held[i];
		struct round_value value = {(float)held->ns, (uint16_t)number, (uint8_t)bench->epoch};

		r = dataset_add(bench->data, &held->key, &value, tainted || held->tainted);
		if (r == 0 && bench->sink->sample != NULL)
			r = bench->sink->sample(bench->sink->context, &held->key, &value, tainted || held->tainted);
	}
	return r;
}

static size_t shuffled_kernels(struct bench *bench, uint32_t mask, unsigned *order)
{
	size_t count = 0;

	for (unsigned k = 0; k < pc_kernel_count; k++)
		if ((mask >> k & 1) != 0)
			order[count++] = k;
	random_shuffle(&bench->random, order, count);
	return count;
}

/* Three passes bring memory into the caches up to twice the knee; beyond that nothing does, and one is enough. */
static unsigned passes(const struct bench *bench, uint64_t bytes)
{
	return bytes <= 2 * (bench->knee_bytes > 0 ? bench->knee_bytes : 8 * MIB) ? 3 : 1;
}

static int clear_round(struct bench *bench, const struct block *block, struct round *round)
{
	unsigned order[PC_KERNEL_MAX];
	size_t count = shuffled_kernels(bench, block->kernels, order);
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++) {
		struct meter_sample sample;
		struct meter_ask ask = {
			.kernel = &pc_kernels[order[i]],
			.phase = block->kind == BLOCK_SINGLE ? PHASE_SINGLE : PHASE_CLEAR,
			.prior = block->prior,
			.bytes = block->bytes,
			.passes = passes(bench, block->bytes),
			.read = block->kind == BLOCK_CLEAR,
		};

		r = bench->meter->ops->sample(bench->meter, &ask, &sample);
		if (r < 0)
			break;
		hold(round, block, order[i], ask.phase, sample.ns, sample.tainted);
		if (ask.read)
			hold(round, block, order[i], PHASE_READ, sample.read_ns, sample.tainted);
	}
	return r;
}

/* Largest array that the knee is looked for with. Twice the reported cache, since reports lie in both
 * directions never less than 64 MiB. */
static uint64_t knee_top(const struct bench *bench)
{
	uint64_t top = 2 * bench->config->llc_bytes;

	if (top < 64 * MIB)
		top = 64 * MIB;
	while (top > bench->plan.limits.most_bytes || top > bench->config->memory_bytes / 2)
		top /= 2;
	return top;
}

static uint64_t victim_bytes(const struct bench *bench, enum phase phase)
{
	const struct bench_config *config = bench->config;
	uint64_t bytes = phase == PHASE_VICTIM_L1   ? (config->l1_bytes > 0 ? config->l1_bytes : 32 * KIB)
	                 : phase == PHASE_VICTIM_L2 ? (config->l2_bytes > 0 ? config->l2_bytes : 512 * KIB)
	                 : bench->knee_bytes > 0    ? bench->knee_bytes / 2
	                                            : 4 * MIB;

	if (phase == PHASE_VICTIM_LLC && bytes > knee_top(bench) / 2)
		bytes = knee_top(bench) / 2; /* little memory */
	return bytes / 4096 * 4096;
}

/* One victim: every kernel and the control once, in shuffled order; what is kept is the difference from the control. */
static int victim_round(struct bench *bench, const struct block *block, enum phase phase, struct round *round)
{
	unsigned order[PC_KERNEL_MAX + 1];
	size_t count = shuffled_kernels(bench, block->kernels, order), first = round->count;
	double control = 0;
	bool control_tainted = false;
	int r = 0;

	order[count++] = CONTROL;
	random_shuffle(&bench->random, order, count);
	for (size_t i = 0; i < count && r == 0; i++) {
		struct meter_sample sample = {0};
		struct meter_ask ask = {
			.kernel = order[i] == CONTROL ? NULL : &pc_kernels[order[i]],
			.phase = phase,
			.prior = block->prior,
			.bytes = block->bytes,
			.victim_bytes = victim_bytes(bench, phase),
		};

		r = bench->meter->ops->sample(bench->meter, &ask, &sample);
		if (order[i] != CONTROL) {
			hold(round, block, order[i], phase, sample.ns, sample.tainted);
			continue;
		}
		control = sample.ns;
		control_tainted = sample.tainted;
	}
	for (size_t i = first; i < round->count; i++) {
		round->held[i].ns -= control;
		round->held[i].tainted |= control_tainted;
	}
	return r;
}

/* An extent that the private caches hold does not displace what lies beyond them: reading millions of lines again would
 * only add their noise. */
static int scrub_round(struct bench *bench, const struct block *block, struct round *round)
{
	enum phase last = block->bytes >= victim_bytes(bench, PHASE_VICTIM_L2) ? PHASE_VICTIM_LLC : PHASE_VICTIM_L2;
	int r = 0;

	for (enum phase phase = PHASE_VICTIM_L1; phase <= last && r == 0; phase++)
		r = victim_round(bench, block, phase, round);
	return r;
}

static int one_round(struct bench *bench, const struct block *block, unsigned number)
{
	struct round round = {.count = 0};
	int r = bench->meter->ops->round_begin(bench->meter, random_next(&bench->random)), e;
	bool tainted;

	if (r == 0)
		r = block->kind == BLOCK_SCRUB ? scrub_round(bench, block, &round) : clear_round(bench, block, &round);
	tainted = bench->meter->ops->round_end(bench->meter);
	e = r == 0 ? emit(bench, &round, number, tainted) : r;
	return e == 0 && stopped(bench) ? -ECANCELED : e;
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
		r = one_round(bench, block, done++);
	plan_spent(block, done, (double)(now(bench) - start));
	return r;
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

		if ((block->field != FIELD_ALL) != waiting || block->kernels == 0)
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

static int find_knee(struct bench *bench)
{
	struct knee_point curve[64];
	double start = spent_ns(bench);
	size_t count = 0;
	int r = 0;

	for (uint64_t bytes = 256 * KIB; bytes <= knee_top(bench) && count + 1 < 64 && has_time(bench, start);
	     bytes *= 2)
		for (uint64_t size = bytes; size <= bytes / 2 * 3 && r == 0; size += bytes / 2) {
			curve[count].bytes = size;
			if (size <= knee_top(bench))
				r = bench->meter->ops->latency(bench->meter, size, &curve[count++].ns);
			if (r == 0 && stopped(bench))
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
		r = bench->meter->ops->probe(bench->meter, bytes, prior, BENCH_PROBE_LINES, probe.loads,
		                             &probe.whole_ns);
	tainted = bench->meter->ops->round_end(bench->meter);
	if (r == 0 && !tainted && bench->sink->probe != NULL)
		r = bench->sink->probe(bench->sink->context, &probe);
	return r == 0 && stopped(bench) ? -ECANCELED : r;
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
	return most > knee_top(bench) ? most : knee_top(bench);
}

static uint64_t most_victim(const struct bench *bench)
{
	uint64_t most = victim_bytes(bench, PHASE_VICTIM_L2);

	return most > knee_top(bench) / 2 ? most : knee_top(bench) / 2;
}

static int run_epoch(struct bench *bench)
{
	unsigned left = bench->plan.limits.epochs - bench->epoch;
	double due;
	int r;

	bench->share_ns = (budget_ns(bench) - spent_ns(bench)) / left;
	due = spent_ns(bench) + bench->share_ns;
	bench->late_ns = due + bench->share_ns / 4; /* the next epochs make good for it */
	r = bench->meter->ops->epoch(bench->meter, &(struct meter_room){.target_bytes = most_target(bench),
	                                                                .victim_bytes = most_victim(bench)});
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
	int r = 0;

	bench.started_ns = now(&bench);
	plan_build(&bench.plan, config->effort, config->kernels, config->memory_bytes / 2);
	bench.plan.keep = config->keep;
	for (bench.epoch = 0; bench.epoch < bench.plan.limits.epochs && r == 0; bench.epoch++) {
		if (spent_ns(&bench) >= budget_ns(&bench))
			break;
		r = progress(&bench);
		if (r == 0)
			r = run_epoch(&bench);
	}
	return r;
}
