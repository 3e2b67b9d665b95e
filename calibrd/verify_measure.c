/*
 * Fresh sizes, measured as a calibration measures; see verify.h. In every epoch the rounds go where they tell most for
 * their time: to n rounds that cost c each fall n ~ 1 / sqrt(c), so that the sum of variances is least.
 */
#include <errno.h>
#include <math.h>
#include <pageclear/policy.h>
#include <stdlib.h>
#include <string.h>

#include "calibrd/random.h"
#include "calibrd/verify_parts.h"
#include "kernels/kernels.h"

enum {
	CONTROL = VERIFY_ENTRANTS,
	TRIES = 4,       /* of a disturbed sample */
	ROUND_TRIES = 3, /* of a disturbed round */
};

/* Share of an epoch that one visit to a size may take for tries alone: on a busy host every long sample is disturbed.
 */
static const double patience = 1.0 / 16;

struct verifier {
	struct meter *meter;
	const struct verify_config *config;
	const struct verify_effort *effort;
	struct verify_data *data;
	struct verify_plan plan;
	struct random random;
	uint64_t started_ns;
	unsigned epoch;
	double share_ns;    /* of this epoch */
	double patience_ns; /* since the start; by then nothing is tried again that was disturbed */
	double *round_ns;   /* of each point: what its last round took; 0: none yet */
	unsigned *taken;    /* of each point: rounds in this epoch, those that were dropped included */
};

/* --- whose code runs -------------------- */

/* A kernel has no argument that could tell a policy, so the process has one unhinted call at a time. */
static const struct pageclear_policy *unhinted_policy;
static unsigned unhinted_intent;

static void unhinted_zero(void *dst, size_t len)
{
	pageclear_policy_zero(unhinted_policy, dst, len, unhinted_intent);
}

static const struct pc_kernel unhinted = {.name = "unhinted", .body = unhinted_zero, .clear = unhinted_zero};

static const struct pc_kernel *kernel_of(const struct verify_config *config, const struct verify_entrant *entrant)
{
	switch (entrant->kind) {
	case VERIFY_KERNEL:
		return &pc_kernels[entrant->way.kernel];
	case VERIFY_UNHINTED:
		unhinted_policy = entrant->policy;
		unhinted_intent = entrant->intent;
		return &unhinted;
	case VERIFY_AGAINST:
		return config->against;
	default:
		return &pc_kernels[0];
	}
}

/* --- samples ----------------------------------------------------------------------------------------------------- */

static double spent_ns(const struct verifier *verifier)
{
	return (double)(verifier->meter->ops->now_ns(verifier->meter) - verifier->started_ns);
}

/* Long samples are seldom undisturbed on a shared host. NaN where all tries were disturbed. */
static int sample(struct verifier *verifier, const struct meter_ask *ask, struct meter_sample *out)
{
	int r = 0;

	for (int i = 0; i == 0 || (i < TRIES && spent_ns(verifier) < verifier->patience_ns); i++) {
		r = verifier->meter->ops->sample(verifier->meter, ask, out);
		if (r < 0 || !out->tainted)
			return r;
	}
	*out = (struct meter_sample){.ns = NAN, .read_ns = NAN};
	return r;
}

/* As calibrd/rounds.c: three passes bring memory into the caches up to twice the knee, beyond that nothing does. */
static unsigned passes(const struct verifier *verifier, uint64_t bytes)
{
	return bytes <= 2 * verifier->plan.knee_bytes ? 3 : 1;
}

/* A call without a hint is one intent's: cold's is not read after, hot's not asked for alone. */
static bool is_only_for(const struct verify_entrant *entrant, unsigned intent)
{
	return entrant->kind == VERIFY_UNHINTED && entrant->intent == intent;
}

static int sample_clear(struct verifier *verifier, const struct verify_point *point,
                        const struct verify_entrant *entrant, struct verify_cost *out)
{
	struct meter_ask ask = {
		.kernel = kernel_of(verifier->config, entrant),
		.phase = PHASE_CLEAR,
		.prior = point->shape == VERIFY_CACHED ? PC_CACHED : PC_FLUSHED,
		.bytes = point->bytes,
		.chunk = entrant->kind == VERIFY_KERNEL ? entrant->way.chunk : 0,
		.passes = passes(verifier, point->bytes),
		.read = point->shape != VERIFY_SCRUB && !is_only_for(entrant, PAGECLEAR_COLD),
		.exact = true,
	};
	struct meter_sample taken = {0};
	int r = sample(verifier, &ask, &taken);

	out->clear = (float)taken.ns;
	if (ask.read)
		out->read = (float)taken.read_ns;
	return r;
}

/* In one piece whatever the way, as calibrations ask: no small extent is worth chunks. */
static int sample_alone(struct verifier *verifier, const struct verify_point *point,
                        const struct verify_entrant *entrant, struct verify_cost *out)
{
	struct meter_ask ask = {
		.kernel = kernel_of(verifier->config, entrant),
		.phase = PHASE_SINGLE,
		.prior = PC_FLUSHED,
		.bytes = point->bytes,
	};
	struct meter_sample taken = {0};
	int r = 0;

	if (is_only_for(entrant, PAGECLEAR_HOT))
		return 0;
	r = sample(verifier, &ask, &taken);
	out->alone = (float)taken.ns;
	return r;
}

static size_t shuffled(struct verifier *verifier, unsigned *order, size_t count, bool control)
{
	for (unsigned e = 0; e < count; e++)
		order[e] = e;
	if (control)
		order[count++] = CONTROL;
	random_shuffle(&verifier->random, order, count);
	return count;
}

typedef int sampler(struct verifier *verifier, const struct verify_point *point, const struct verify_entrant *entrant,
                    struct verify_cost *out);

/* Every entrant once. */
static int round_of(sampler *take, struct verifier *verifier, const struct verify_point *point,
                    struct verify_cost *costs)
{
	unsigned order[VERIFY_ENTRANTS + 1];
	size_t count = shuffled(verifier, order, point->entrant_count, false);
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++)
		r = take(verifier, point, &point->entrants[order[i]], &costs[order[i]]);
	return r;
}

/* One victim: every entrant and the control once; what is added is the difference from the control. */
static int victim_round(struct verifier *verifier, const struct verify_point *point, unsigned part,
                        struct verify_cost *costs)
{
	unsigned order[VERIFY_ENTRANTS + 1];
	size_t count = shuffled(verifier, order, point->entrant_count, true);
	double control = NAN;
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++) {
		const struct verify_entrant *entrant = order[i] == CONTROL ? NULL : &point->entrants[order[i]];
		struct meter_ask ask = {
			.kernel = entrant == NULL ? NULL : kernel_of(verifier->config, entrant),
			.phase = PHASE_VICTIM_L1 + part,
			.prior = PC_FLUSHED,
			.bytes = point->bytes,
			.chunk = entrant != NULL && entrant->kind == VERIFY_KERNEL ? entrant->way.chunk : 0,
			.victim_bytes = verifier->plan.victim_bytes[part],
		};
		struct meter_sample taken = {0};

		r = sample(verifier, &ask, &taken);
		if (entrant == NULL)
			control = taken.ns;
		else
			costs[order[i]].displaced += (float)taken.ns;
	}
	for (size_t e = 0; e < point->entrant_count; e++)
		costs[e].displaced -= (float)control;
	return r;
}

/* An extent that the private caches hold displaces nothing beyond them. */
static int victim_rounds(struct verifier *verifier, const struct verify_point *point, struct verify_cost *costs)
{
	unsigned parts = point->bytes >= verifier->plan.victim_bytes[1] ? VERIFY_VICTIMS : VERIFY_VICTIMS - 1;
	int r = 0;

	for (size_t e = 0; e < point->entrant_count; e++)
		costs[e].displaced = 0;
	for (unsigned part = 0; part < parts && r == 0; part++)
		r = victim_round(verifier, point, part, costs);
	return r;
}

/* --- rounds ------------------------------------------------------------------------------------------------------ */

/* 0 kept, 1 disturbed. */
static int one_round(struct verifier *verifier, struct verify_point *point)
{
	struct verify_cost costs[VERIFY_ENTRANTS];
	int r = verifier->meter->ops->round_begin(verifier->meter, random_next(&verifier->random));
	bool tainted;

	for (size_t e = 0; e < VERIFY_ENTRANTS; e++)
		costs[e] = (struct verify_cost){NAN, NAN, NAN, NAN};
	if (r == 0)
		r = round_of(sample_clear, verifier, point, costs);
	if (r == 0 && verify_point_alone(point, PAGECLEAR_COLD))
		r = round_of(sample_alone, verifier, point, costs);
	if (r == 0 && point->shape == VERIFY_SCRUB)
		r = victim_rounds(verifier, point, costs);
	tainted = verifier->meter->ops->round_end(verifier->meter);
	if (r < 0)
		return r;
	return tainted ? 1 : verify_point_add(point, verifier->epoch, costs);
}

static int measure_point(struct verifier *verifier, size_t i)
{
	double start = spent_ns(verifier);
	int r = 1;

	verifier->patience_ns = start + verifier->share_ns * patience;
	for (int n = 0; n == 0 || (r == 1 && n < ROUND_TRIES && spent_ns(verifier) < verifier->patience_ns); n++)
		r = one_round(verifier, &verifier->data->points[i]);
	verifier->round_ns[i] = fmax(1, spent_ns(verifier) - start);
	verifier->taken[i]++;
	return r < 0 ? r : 0;
}

/* --- epochs ------------------------------------------------------------------------------------------------------ */

/* Where the next round goes: to the point with the least rounds times root of cost, among those that can be done
 * within left_ns. A point that has had none in this epoch comes first, from a random one on. The number of points if
 * nothing is left to do. */
static size_t next_point(struct verifier *verifier, double left_ns)
{
	size_t count = verifier->data->count, first = random_below(&verifier->random, count), best = count;
	double least = INFINITY;

	for (size_t n = 0; n < count; n++) {
		size_t i = (first + n) % count;
		double so_far = verifier->taken[i] * sqrt(verifier->round_ns[i]);

		if (verifier->taken[i] >= verifier->effort->rounds || so_far >= least ||
		    (verifier->taken[i] > 0 && verifier->round_ns[i] > left_ns))
			continue;
		least = so_far;
		best = i;
	}
	return best;
}

static int progress(const struct verifier *verifier)
{
	const struct verify_config *config = verifier->config;

	if (config->progress == NULL)
		return 0;
	return config->progress(config->context, verifier->epoch, verifier->effort->epochs,
	                        fmin(1, spent_ns(verifier) / 1e9 / verifier->effort->seconds));
}

/* What is left of the time is shared by the epochs that are left, so one that took longer is made good for. */
static int run_epoch(struct verifier *verifier)
{
	double left = verifier->effort->seconds * 1e9 - spent_ns(verifier);
	double due;
	int r;

	verifier->share_ns = left / (verifier->effort->epochs - verifier->epoch);
	due = spent_ns(verifier) + verifier->share_ns;
	if (left <= 0)
		return 0;
	r = verifier->meter->ops->epoch(verifier->meter, &verifier->plan.room);
	memset(verifier->taken, 0, verifier->data->count * sizeof(*verifier->taken));
	while (r == 0) {
		double now = spent_ns(verifier);
		size_t i = next_point(verifier, due - now);

		if (now > due || i == verifier->data->count)
			break;
		r = measure_point(verifier, i);
		if (r == 0)
			r = progress(verifier);
	}
	return r;
}

/* --- all of it --------------------------------------------------------------------------------------------------- */

static int run(struct verifier *verifier, struct pc_why *why)
{
	int r = 0;

	verifier->round_ns = calloc(verifier->data->count, sizeof(double));
	verifier->taken = calloc(verifier->data->count, sizeof(unsigned));
	if (verifier->round_ns == NULL || verifier->taken == NULL)
		return pc_why(why, -ENOMEM, "out of memory");
	verifier->started_ns = verifier->meter->ops->now_ns(verifier->meter);
	for (; verifier->epoch < verifier->effort->epochs && r == 0; verifier->epoch++) {
		r = progress(verifier);
		if (r == 0)
			r = run_epoch(verifier);
	}
	return r < 0 ? pc_why(why, r, "measuring failed: %s", strerror(-r)) : 0;
}

int verify_measure(struct meter *meter, const struct verify_config *config, struct verify_data *out, struct pc_why *why)
{
	struct verify_data data;
	struct verifier verifier = {.meter = meter,
	                            .config = config,
	                            .effort = &verify_efforts[config->effort],
	                            .data = &data,
	                            .random = {~config->seed}};
	int r = verify_plan(config, &data, &verifier.plan, why);

	if (r == 0)
		r = run(&verifier, why);
	free(verifier.round_ns);
	free(verifier.taken);
	if (r < 0)
		verify_data_free(&data);
	else
		*out = data;
	return r;
}
