/* Measures Xen's table; see bench_xen.h. */
#include "calibctl/bench_xen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "calibrd/sizes.h"

/* A block is one victim from one prior state in one run. */
enum { ROUNDS_LEAST = 4, ROUNDS_MOST = 20, PASSES = 3, LINE = 64, PAGE = 4096 };
static const uint64_t block_ns = 600000000;

/* --- victims ----------------------------------------------------------------------------------------------------- */

static uint64_t whole_pages(uint64_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static void add_cache(struct xen_table *table, const struct bench_stand *stand, const char *name, unsigned level,
                      uint64_t usual)
{
	struct xen_victim *victim = &table->victims[table->victim_count++];
	uint64_t bytes = topology_cache_bytes(stand->topology, level);

	snprintf(victim->name, sizeof(victim->name), "%s", name);
	victim->assumed = bytes == 0;
	victim->victim_bytes = whole_pages(bytes > 0 ? bytes : usual);
	victim->target_bytes = victim->victim_bytes / 2;
}

/* The sizes asked for are the targets'. */
static void choose_victims(struct xen_table *table, const struct bench_stand *stand)
{
	const struct bench_request *request = &stand->request;

	if (request->size_count == 0) {
		add_cache(table, stand, "L1D", 1, 32768);
		add_cache(table, stand, "L2", 2, 524288);
	}
	for (size_t i = 0; i < request->size_count; i++) {
		struct xen_victim *victim = &table->victims[table->victim_count++];

		size_format(request->sizes[i], victim->name, sizeof(victim->name));
		victim->target_bytes = request->sizes[i];
		victim->victim_bytes = whole_pages(2 * request->sizes[i]);
	}
}

/* --- rounds ------------------------------------------------------------------------------------------------------ */

struct block {
	size_t victim;
	enum pc_prior prior;
};

/* One kernel's figures of a round. */
struct taken {
	struct meter_sample clear, pre, post;
};

static int take_kernel(struct bench_stand *stand, const struct xen_victim *victim, enum pc_prior prior, unsigned kernel,
                       struct taken *out)
{
	struct meter *meter = stand->meter;
	struct meter_ask clear = {.kernel = &pc_kernels[kernel],
	                          .phase = PHASE_CLEAR,
	                          .prior = prior,
	                          .bytes = victim->target_bytes,
	                          .passes = PASSES,
	                          .exact = true};
	struct meter_ask read = {.phase = PHASE_VICTIM_L2, /* all victims are read alike: the size is what matters */
	                         .prior = prior,
	                         .bytes = victim->target_bytes,
	                         .victim_bytes = victim->victim_bytes,
	                         .passes = PASSES};
	int r = meter->ops->sample(meter, &read, &out->pre);

	if (r == 0)
		r = meter->ops->sample(meter, &clear, &out->clear);
	read.kernel = clear.kernel;
	return r < 0 ? r : meter->ops->sample(meter, &read, &out->post);
}

static int keep(struct xen_cell *cell, const struct xen_victim *victim, const struct taken *taken, bool tainted)
{
	double lines = (double)victim->victim_bytes / LINE;
	int r;

	cell->samples++;
	if (tainted || taken->clear.tainted || taken->pre.tainted || taken->post.tainted) {
		cell->tainted++;
		return 0;
	}
	r = bench_values_add(&cell->clear_ns, taken->clear.ns);
	if (r == 0)
		r = bench_values_add(&cell->pre_ns, taken->pre.ns / lines);
	if (r == 0)
		r = bench_values_add(&cell->post_ns, taken->post.ns / lines);
	return r < 0 ? r : bench_values_add(&cell->displaced_ns, (taken->post.ns - taken->pre.ns) / lines);
}

static int take_round(struct xen_table *table, struct bench_stand *stand, const struct block *block)
{
	const struct xen_victim *victim = &table->victims[block->victim];
	struct meter *meter = stand->meter;
	struct taken taken[PC_KERNEL_MAX] = {{.clear = {0}}};
	unsigned order[PC_KERNEL_MAX];
	size_t count = bench_stand_shuffle(stand, table->kernels, order);
	int r = meter->ops->round_begin(meter, random_next(&stand->random));
	bool tainted;

	for (size_t i = 0; i < count && r == 0; i++)
		r = take_kernel(stand, victim, block->prior, order[i], &taken[i]);
	tainted = meter->ops->round_end(meter);
	for (size_t i = 0; i < count && r == 0; i++)
		r = keep(xen_cell(table, block->victim, block->prior, order[i]), victim, &taken[i], tainted);
	return r;
}

static int take_block(struct xen_table *table, struct bench_stand *stand, const struct block *block)
{
	struct meter *meter = stand->meter;
	uint64_t start = meter->ops->now_ns(meter);
	int r = 0;

	for (unsigned round = 0; round < ROUNDS_MOST && r == 0 && !bench_stand_stopped(stand); round++) {
		if (round >= ROUNDS_LEAST && meter->ops->now_ns(meter) - start > block_ns)
			break;
		r = take_round(table, stand, block);
	}
	return r;
}

static struct meter_room room_of(const struct xen_table *table)
{
	struct meter_room room = {0};

	for (size_t i = 0; i < table->victim_count; i++) {
		if (table->victims[i].target_bytes > room.target_bytes)
			room.target_bytes = table->victims[i].target_bytes;
		if (table->victims[i].victim_bytes > room.victim_bytes)
			room.victim_bytes = table->victims[i].victim_bytes;
	}
	return room;
}

static int take_run(struct xen_table *table, struct bench_stand *stand)
{
	struct block blocks[PC_PRIORS * BENCH_SIZES];
	unsigned order[PC_PRIORS * BENCH_SIZES];
	struct meter_room room = room_of(table);
	size_t count = 0;
	int r = stand->meter->ops->epoch(stand->meter, &room);

	for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++)
		for (size_t victim = 0; victim < table->victim_count && (table->priors >> prior & 1) != 0; victim++) {
			order[count] = (unsigned)count;
			blocks[count++] = (struct block){victim, prior};
		}
	random_shuffle(&stand->random, order, count);
	for (size_t i = 0; i < count && r == 0 && !bench_stand_stopped(stand); i++) {
		bench_stand_progress(stand, table->runs,
		                     ((double)table->runs + (double)i / (double)count) / stand->request.runs);
		r = take_block(table, stand, &blocks[order[i]]);
	}
	table->runs++;
	return r;
}

int xen_measure(struct xen_table *out, struct bench_stand *stand)
{
	int r = 0;

	*out = (struct xen_table){.priors = stand->request.priors, .kernels = stand->kernels};
	choose_victims(out, stand);
	out->cells = calloc(out->victim_count * PC_PRIORS * PC_KERNEL_MAX, sizeof(out->cells[0]));
	if (out->cells == NULL)
		return -ENOMEM;
	while (out->runs < stand->request.runs && out->kernels != 0 && r == 0 && !bench_stand_stopped(stand))
		r = take_run(out, stand);
	bench_stand_progress(stand, out->runs, 1);
	return r;
}

void xen_clear(struct xen_table *table)
{
	for (size_t i = 0; table->cells != NULL && i < table->victim_count * PC_PRIORS * PC_KERNEL_MAX; i++) {
		bench_values_clear(&table->cells[i].clear_ns);
		bench_values_clear(&table->cells[i].pre_ns);
		bench_values_clear(&table->cells[i].post_ns);
		bench_values_clear(&table->cells[i].displaced_ns);
	}
	free(table->cells);
	*table = (struct xen_table){0};
}

/* ----------------------------------------------------------------------------------------------------------------- */

static bool has_figures(const struct xen_table *table)
{
	for (size_t i = 0; i < table->victim_count * PC_PRIORS * PC_KERNEL_MAX; i++)
		if (table->cells[i].clear_ns.count > 0)
			return true;
	return false;
}

static int print(const struct xen_table *table, const struct bench_stand *stand)
{
	if (stand->request.format == BENCH_CSV) {
		xen_csv(table, stand, stdout);
		return 0;
	}
	if (stand->request.format == BENCH_JSON)
		return bench_json_print(xen_json(table, stand));
	return xen_print(table, stand);
}

int bench_xen(struct bench_stand *stand, struct pc_why *why)
{
	struct xen_table table;
	int r = xen_measure(&table, stand);
	bool measured = r == 0;

	if (r == 0 && bench_stand_stopped(stand) && !has_figures(&table))
		r = -ECANCELED;
	else if (r == 0)
		r = print(&table, stand);
	if (r < 0 && r != -ECANCELED)
		pc_why_say(why, "cannot %s Xen's table: %s", measured ? "print" : "measure", strerror(-r));
	xen_clear(&table);
	return r;
}
