/* One round of each kind of block; see bench_parts.h. */
#include <errno.h>

#include "calibrd/bench_parts.h"
#include "calibrd/spot.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

enum { CONTROL = PC_KERNEL_MAX, ENTRANTS_MOST = 6 * PC_KERNEL_MAX + 1 };

/* A kernel and how it goes over the extent, as in struct series_key. */
struct entrant {
	unsigned kernel;
	uint64_t chunk;
	bool backward, base_pages;
};

struct field {
	size_t count;
	struct entrant at[ENTRANTS_MOST];
};

/* What one round holds before it is known whether the round counts. */
struct held {
	struct series_key key;
	double ns;
	bool tainted;
};

struct round {
	size_t count;
	struct held held[2 * ENTRANTS_MOST];
};

/* --- who takes part ---------------------------------------------------------------------------------------------- */

static void enter(struct field *field, struct entrant entrant)
{
	field->at[field->count++] = entrant;
}

static void enter_kernels(struct field *field, uint32_t mask)
{
	for (unsigned k = 0; k < pc_kernel_count; k++)
		if ((mask >> k & 1) != 0)
			enter(field, (struct entrant){.kernel = k});
}

/* Whole is a chunk of the extent's own size here: see samples.h. On base pages libc is there to be compared with. */
static void enter_ways(struct field *field, uint32_t mask, uint64_t bytes)
{
	for (unsigned k = 0; k < pc_kernel_count; k++) {
		if ((mask >> k & 1) == 0 && k != 0)
			continue;
		enter(field, (struct entrant){.kernel = k, .chunk = bytes, .base_pages = true});
		if ((mask >> k & 1) == 0)
			continue;
		enter(field, (struct entrant){.kernel = k, .chunk = bytes});
		for (size_t c = 0; c < SPOT_CHUNKS && spot_chunks[c] < bytes; c++) {
			enter(field, (struct entrant){.kernel = k, .chunk = spot_chunks[c]});
			enter(field, (struct entrant){.kernel = k, .chunk = spot_chunks[c], .backward = true});
		}
	}
}

static void shuffle(struct bench *bench, struct field *field)
{
	for (size_t i = field->count; i > 1; i--) {
		size_t j = random_below(&bench->random, i);
		struct entrant kept = field->at[i - 1];

		field->at[i - 1] = field->at[j];
		field->at[j] = kept;
	}
}

/* --- samples ----------------------------------------------------------------------------------------------------- */

static void hold(struct round *round, const struct block *block, const struct entrant *entrant, enum phase phase,
                 double ns, bool tainted)
{
	round->held[round->count++] = (struct held){
		.key = {.bytes = block->bytes,
	                .chunk = entrant->chunk,
	                .threads = (uint16_t)block->threads,
	                .kernel = (uint8_t)entrant->kernel,
	                .prior = (uint8_t)block->prior,
	                .phase = (uint8_t)phase,
	                .page = (uint8_t)(entrant->base_pages ? PAGE_BASE : page_usual(block->bytes)),
	                .backward = entrant->backward},
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

/* Three passes bring memory into the caches up to twice the knee; beyond that nothing does, and one is enough. */
static unsigned passes(const struct bench *bench, uint64_t bytes)
{
	return bytes <= 2 * (bench->knee_bytes > 0 ? bench->knee_bytes : 8 * MIB) ? 3 : 1;
}

static int clear_round(struct bench *bench, const struct block *block, struct round *round)
{
	struct field field = {.count = 0};
	int r = 0;

	if (block->kind == BLOCK_SPOT)
		enter_ways(&field, block->kernels, block->bytes);
	else
		enter_kernels(&field, block->kernels);
	shuffle(bench, &field);
	for (size_t i = 0; i < field.count; i++) {
		const struct entrant *entrant = &field.at[i];
		struct meter_sample sample;
		struct meter_ask ask = {
			.kernel = &pc_kernels[entrant->kernel],
			.phase = block->kind == BLOCK_SINGLE ? PHASE_SINGLE : PHASE_CLEAR,
			.prior = block->prior,
			.bytes = block->bytes,
			.chunk = entrant->chunk,
			.threads = block->threads,
			.passes = passes(bench, block->threads * block->bytes),
			.read = block->kind != BLOCK_SINGLE,
			.backward = entrant->backward,
			.base_pages = entrant->base_pages,
		};

		r = bench->sample_error = bench->meter->ops->sample(bench->meter, &ask, &sample);
		if (r < 0)
			break;
		hold(round, block, entrant, ask.phase, sample.ns, sample.tainted);
		if (ask.read)
			hold(round, block, entrant, PHASE_READ, sample.read_ns, sample.tainted);
	}
	return r;
}

/* --- victims ----------------------------------------------------------------------------------------------------- */

uint64_t rounds_victim_bytes(const struct bench *bench, enum phase phase)
{
	uint64_t most = bench_knee_top(bench) / 2, bytes;

	if (phase == PHASE_VICTIM_L1)
		bytes = meter_private_cache(1, bench->config->l1_bytes);
	else if (phase == PHASE_VICTIM_L2)
		bytes = meter_private_cache(2, bench->config->l2_bytes);
	else
		bytes = bench->knee_bytes > 0 ? bench->knee_bytes / 2 : 4 * MIB;
	return (bytes < most ? bytes : most) / 4096 * 4096; /* little memory, little victims */
}

/* One victim: every kernel and the control once, in shuffled order; what is kept is the difference from the control. */
static int victim_round(struct bench *bench, const struct block *block, enum phase phase, struct round *round)
{
	struct field field = {.count = 0};
	size_t first = round->count;
	double control = 0;
	bool control_tainted = false;
	int r = 0;

	enter_kernels(&field, block->kernels);
	enter(&field, (struct entrant){.kernel = CONTROL});
	shuffle(bench, &field);
	for (size_t i = 0; i < field.count && r == 0; i++) {
		struct meter_sample sample = {0};
		struct meter_ask ask = {
			.kernel = field.at[i].kernel == CONTROL ? NULL : &pc_kernels[field.at[i].kernel],
			.phase = phase,
			.prior = block->prior,
			.bytes = block->bytes,
			.threads = block->threads,
			.victim_bytes = rounds_victim_bytes(bench, phase),
		};

		r = bench->sample_error = bench->meter->ops->sample(bench->meter, &ask, &sample);
		if (field.at[i].kernel != CONTROL) {
			hold(round, block, &field.at[i], phase, sample.ns, sample.tainted);
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
	bool leaves_l2 = block->bytes >= rounds_victim_bytes(bench, PHASE_VICTIM_L2);
	enum phase last = leaves_l2 ? PHASE_VICTIM_LLC : PHASE_VICTIM_L2;
	int r = 0;

	for (enum phase phase = PHASE_VICTIM_L1; phase <= last && r == 0; phase++)
		r = victim_round(bench, block, phase, round);
	return r;
}

/* --- a round ----------------------------------------------------------------------------------------------------- */

int rounds_take(struct bench *bench, const struct block *block, unsigned number)
{
	struct round round = {.count = 0};
	int r = bench->meter->ops->round_begin(bench->meter, random_next(&bench->random)), e;
	bool tainted;

	if (r == 0)
		r = block->kind == BLOCK_SCRUB ? scrub_round(bench, block, &round) : clear_round(bench, block, &round);
	tainted = bench->meter->ops->round_end(bench->meter);
	e = r == 0 ? emit(bench, &round, number, tainted) : r;
	return e == 0 && bench_stopped(bench) ? -ECANCELED : e;
}
