/* Measures the arm64 thread's experiment; see bench_hugepage.h. */
#include "calibctl/bench_hugepage.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibctl/bench_values.h"
#include "calibctl/words.h"

enum {
	TURNS = 25,       /* samples of each way in one mapping */
	RACE_ROUNDS = 15, /* of every kernel, before the best of each family is taken */
	PLACES = 16,      /* huge pages mapped, of which a run uses one: the OS likes to give the last one back */
	PASSES = 3,
	REFERENCE = 8000, /* dependent multiplications: some 10 us */
};

/* --- who takes part ---------------------------------------------------------------------------------------------- */

static struct meter_room room_of(void)
{
	return (struct meter_room){.target_bytes = (uint64_t)PLACES * HUGEPAGE_BYTES, .base_bytes = HUGEPAGE_BYTES};
}

static int race_round(struct bench_stand *stand, enum pc_prior prior, struct bench_values times[PC_KERNEL_MAX])
{
	struct meter *meter = stand->meter;
	unsigned order[PC_KERNEL_MAX];
	size_t count = bench_stand_shuffle(stand, stand->kernels, order);
	int r = meter->ops->round_begin(meter, random_next(&stand->random));

	for (size_t i = 0; i < count && r == 0; i++) {
		struct meter_sample sample;
		struct meter_ask ask = {.kernel = &pc_kernels[order[i]],
		                        .phase = PHASE_CLEAR,
		                        .prior = prior,
		                        .bytes = HUGEPAGE_BYTES,
		                        .passes = PASSES};

		r = meter->ops->sample(meter, &ask, &sample);
		if (r == 0)
			r = bench_values_add(&times[order[i]], sample.ns);
	}
	meter->ops->round_end(meter); /* medians of a few suffice to choose by: the figures come later */
	return r;
}

/* String instructions, non-temporal stores, and whole lines such as DC ZVA; libc is its own. Ordinary stores are libc's
 * way already. */
static uint32_t best_of_families(uint32_t kernels, const struct bench_values times[PC_KERNEL_MAX])
{
	static const enum pc_family families[] = {PC_LIBC, PC_REP, PC_NONTEMPORAL, PC_LINE};
	uint32_t chosen = 0;

	for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
		int best = -1;
		double least = INFINITY;

		for (unsigned kernel = 0; kernel < pc_kernel_count; kernel++) {
			double median = bench_values_median(&times[kernel]);

			if ((kernels >> kernel & 1) == 0 || pc_kernels[kernel].family != families[f] ||
			    !(median < least))
				continue;
			least = median;
			best = (int)kernel;
		}
		if (best >= 0)
			chosen |= 1u << best;
	}
	return chosen;
}

static int race(struct hugepage_table *table, struct bench_stand *stand, enum pc_prior prior)
{
	struct bench_values times[PC_KERNEL_MAX] = {{0}};
	struct meter_room room = room_of();
	int r = stand->meter->ops->epoch(stand->meter, &room);

	for (unsigned i = 0; i < RACE_ROUNDS && r == 0 && !bench_stand_stopped(stand); i++)
		r = race_round(stand, prior, times);
	table->kernels = best_of_families(stand->kernels, times);
	table->raced = true;
	for (unsigned kernel = 0; kernel < pc_kernel_count; kernel++)
		bench_values_clear(&times[kernel]);
	return r;
}

/* --- ways -------------------------------------------------------------------------------------------------------- */

static void add_way(struct hugepage_table *table, const struct hugepage_way *way)
{
	table->ways[table->count] = *way;
	table->ways[table->count++].samples = NULL;
}

static void list_ways(struct hugepage_table *table, enum pc_prior prior)
{
	static const uint64_t chunks[] = {4096, 65536, HUGEPAGE_BYTES};

	for (int base = 0; base < 2; base++)
		for (unsigned kernel = 0; kernel < pc_kernel_count; kernel++)
			for (size_t c = 0; c < 3 && (table->kernels >> kernel & 1) != 0; c++)
				for (int back = 0; back < (chunks[c] < HUGEPAGE_BYTES ? 2 : 1); back++)
					add_way(table, &(struct hugepage_way){.kernel = kernel,
					                                      .prior = prior,
					                                      .chunk = chunks[c],
					                                      .backward = back != 0,
					                                      .base_pages = base != 0});
}

static int keep(struct hugepage_way *way, const struct variance_sample *sample)
{
	if (way->count == way->room) {
		size_t room = way->room > 0 ? way->room * 2 : 64;
		struct variance_sample *grown = reallocarray(way->samples, room, sizeof(*grown));

		if (grown == NULL)
			return -ENOMEM;
		way->samples = grown;
		way->room = room;
	}
	way->samples[way->count++] = *sample;
	return 0;
}

/* --- samples ----------------------------------------------------------------------------------------------------- */

/* Its time moves with the clock speed alone. */
static double reference_ns(struct meter *meter)
{
	static uint64_t kept;
	uint64_t x = kept | 1, start = meter->ops->now_ns(meter);

	for (int i = 0; i < REFERENCE; i++) {
		x = x * 0x9e3779b97f4a7c15u + 1;
		__asm__ volatile("" : "+r"(x)); /* all of them, one after the other */
	}
	kept = x;
	return (double)(meter->ops->now_ns(meter) - start);
}

/* A round of its own, so that its taint is its own. The seed picks the place: one a mapping. */
static int take_sample(struct bench_stand *stand, struct hugepage_way *way, uint64_t place, unsigned turn,
                       unsigned mapping)
{
	struct meter *meter = stand->meter;
	struct meter_ask ask = {.kernel = &pc_kernels[way->kernel],
	                        .phase = PHASE_CLEAR,
	                        .prior = way->prior,
	                        .bytes = HUGEPAGE_BYTES,
	                        .chunk = way->chunk,
	                        .passes = PASSES,
	                        .backward = way->backward,
	                        .base_pages = way->base_pages};
	struct variance_sample sample = {.turn = turn, .mapping = mapping, .reference = reference_ns(meter)};
	struct meter_sample taken = {0};
	int r = meter->ops->round_begin(meter, place);

	if (r == 0)
		r = meter->ops->sample(meter, &ask, &taken);
	sample.tainted = meter->ops->round_end(meter);
	if (r < 0)
		return r;
	sample.tainted |= taken.tainted;
	sample.value = taken.ns;
	sample.reference = fmin(sample.reference, reference_ns(meter)); /* one slow loop is an interrupt inside it */
	return keep(way, &sample);
}

/* Bytes of huge pages that this process has; -1: the OS does not tell (before Linux 4.14, or no /proc). */
static int64_t huge_bytes(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "re");
	long long kib = -1;
	char line[256];

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "AnonHugePages: %lld kB", &kib) == 1)
			break;
	if (file != NULL)
		fclose(file);
	return kib < 0 ? -1 : (int64_t)kib * 1024;
}

static void note_pages(struct hugepage_table *table, uint64_t wanted)
{
	int64_t bytes = huge_bytes();

	table->knows_huge = bytes >= 0;
	table->runs_huge += bytes >= (int64_t)wanted;
}

static int take_run(struct hugepage_table *table, struct bench_stand *stand)
{
	uint64_t place = random_next(&stand->random);
	unsigned order[HUGEPAGE_WAYS];
	struct meter_room room = room_of();
	int r = stand->meter->ops->epoch(stand->meter, &room);

	note_pages(table, room.target_bytes);
	for (unsigned turn = 0; turn < TURNS && r == 0 && !bench_stand_stopped(stand); turn++) {
		bench_stand_progress(stand, table->runs,
		                     ((double)table->runs + (double)turn / TURNS) / stand->request.runs);
		for (unsigned i = 0; i < table->count; i++)
			order[i] = i;
		random_shuffle(&stand->random, order, table->count);
		for (size_t i = 0; i < table->count && r == 0; i++)
			r = take_sample(stand, &table->ways[order[i]], place, turn, table->runs);
	}
	table->runs++;
	return r;
}

static int find_variances(struct hugepage_table *table)
{
	int r = 0;

	for (size_t i = 0; i < table->count && r == 0; i++)
		r = variance_find(&table->ways[i].variance, table->ways[i].samples, table->ways[i].count);
	return r;
}

int hugepage_measure(struct hugepage_table *out, struct bench_stand *stand)
{
	enum pc_prior prior = (stand->request.priors >> PC_CACHED & 1) != 0 ? PC_CACHED : PC_FLUSHED;
	int r = 0;

	*out = (struct hugepage_table){.kernels = stand->kernels};
	out->ways = calloc(HUGEPAGE_WAYS, sizeof(out->ways[0]));
	if (out->ways == NULL)
		return -ENOMEM;
	if (stand->request.kernels == 0 && stand->kernels != 0)
		r = race(out, stand, prior);
	list_ways(out, prior);
	while (out->runs < stand->request.runs && out->count > 0 && r == 0 && !bench_stand_stopped(stand))
		r = take_run(out, stand);
	bench_stand_progress(stand, out->runs, 1);
	return r < 0 ? r : find_variances(out);
}

void hugepage_clear(struct hugepage_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		free(table->ways[i].samples);
	free(table->ways);
	*table = (struct hugepage_table){0};
}

/* ----------------------------------------------------------------------------------------------------------------- */

static int print(const struct hugepage_table *table, const struct bench_stand *stand)
{
	if (stand->request.format == BENCH_CSV) {
		hugepage_csv(table, stand, stdout);
		return 0;
	}
	if (stand->request.format == BENCH_JSON)
		return bench_json_print(hugepage_json(table, stand));
	return hugepage_print(table, stand);
}

int bench_hugepage(struct bench_stand *stand, struct pc_why *why)
{
	struct hugepage_table table;
	struct meter_room room = room_of();
	char size[WORDS_SHORT];
	int r;

	words_size(room.target_bytes + room.base_bytes + METER_OVERHEAD, size);
	if (room.target_bytes + room.base_bytes > stand->memory_bytes)
		return pc_why(why, -ENOMEM,
		              "hugepage takes %s: more than a quarter of the memory that is available here", size);
	r = hugepage_measure(&table, stand);
	bool measured = r == 0;
	if (r == 0 && bench_stand_stopped(stand) && (table.count == 0 || table.ways[0].count == 0))
		r = -ECANCELED;
	else if (r == 0)
		r = print(&table, stand);
	if (r < 0 && r != -ECANCELED)
		pc_why_say(why, "cannot %s the huge page: %s", measured ? "print" : "measure", strerror(-r));
	hugepage_clear(&table);
	return r;
}
