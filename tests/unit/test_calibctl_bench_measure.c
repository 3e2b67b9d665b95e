/* bench's loops on a meter that answers from the ask: what is asked for, what is kept, what is dropped. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "calibctl/bench_hugepage.h"
#include "calibctl/bench_table.h"
#include "calibctl/bench_xen.h"
#include "tests/unit/harness.h"

/* A kernel's row in nanoseconds a byte, half as much again when flushed; 100 ns of displacement a row. */
struct fake {
	struct meter meter;
	uint64_t now;
	unsigned epochs, rounds, open, asks;
	struct meter_room room;
	uint64_t place, places[64]; /* of the rounds; of the epochs, the first round's */
	unsigned taint_every;       /* every so many samples, 0: none */
	bool taint_rounds;          /* all of them */
	unsigned stop_after;        /* asks; 0: never */
	volatile sig_atomic_t stop;
	unsigned chunked, backward, base;
	int error;
};

static uint64_t fake_now(struct meter *meter)
{
	struct fake *fake = (struct fake *)meter;

	return fake->now += 1000;
}

static int fake_epoch(struct meter *meter, const struct meter_room *room)
{
	struct fake *fake = (struct fake *)meter;

	fake->epochs++;
	fake->room = *room;
	return 0;
}

static int fake_begin(struct meter *meter, uint64_t seed)
{
	struct fake *fake = (struct fake *)meter;

	fake->open++;
	fake->rounds++;
	fake->place = seed;
	if (fake->epochs < 64 && fake->places[fake->epochs] == 0)
		fake->places[fake->epochs] = seed;
	return 0;
}

static bool fake_end(struct meter *meter)
{
	struct fake *fake = (struct fake *)meter;

	fake->open--;
	return fake->taint_rounds;
}

static unsigned row_of(const struct meter_ask *ask)
{
	return ask->kernel == NULL ? 0 : 1 + pc_kernel_index(ask->kernel);
}

static int fake_sample(struct meter *meter, const struct meter_ask *ask, struct meter_sample *out)
{
	struct fake *fake = (struct fake *)meter;
	uint64_t room = ask->base_pages ? fake->room.base_bytes : fake->room.target_bytes;

	CU_ASSERT_EQUAL(fake->open, 1);
	if (ask->bytes > room || ask->victim_bytes > fake->room.victim_bytes)
		return -EINVAL;
	if (++fake->asks == fake->stop_after)
		fake->stop = SIGINT;
	fake->chunked += ask->chunk == 4096;
	fake->backward += ask->backward;
	fake->base += ask->base_pages;
	*out = (struct meter_sample){.tainted = fake->taint_every > 0 && fake->asks % fake->taint_every == 0};
	if (ask->phase == PHASE_CLEAR)
		out->ns = (double)ask->bytes * row_of(ask) * (ask->prior == PC_FLUSHED ? 1.5 : 1);
	else
		out->ns = (double)ask->victim_bytes / 64 * (2 + row_of(ask));
	if (out->tainted)
		out->ns *= 10;
	fake->now += (uint64_t)out->ns;
	return fake->error;
}

static const struct meter_ops fake_ops = {.now_ns = fake_now,
                                          .epoch = fake_epoch,
                                          .round_begin = fake_begin,
                                          .sample = fake_sample,
                                          .round_end = fake_end};

/* Kernels 0 and 1, which every build has but for those of one kernel. */
static void set_up(struct fake *fake, struct bench_stand *stand, enum bench_kind kind)
{
	*fake = (struct fake){.meter.ops = &fake_ops};
	*stand = (struct bench_stand){
		.request = {.kind = kind, .runs = 3, .priors = 1u << PC_CACHED | 1u << PC_FLUSHED},
		.meter = &fake->meter,
		.memory_bytes = UINT64_C(1) << 30,
		.kernels = 3,
		.random = {1},
		.stop = &fake->stop,
		.quiet = true,
	};
}

#define NEEDS_TWO                                                                                                      \
	do {                                                                                                           \
		if (pc_kernel_count < 2) {                                                                             \
			unit_skip("this build has one kernel");                                                        \
			return;                                                                                        \
		}                                                                                                      \
	} while (0)

/* --- table ------------------------------------------------------------------------------------------------------- */

static void table(void)
{
	struct fake fake;
	struct bench_stand stand;
	struct bench_grid grid;

	NEEDS_TWO;
	set_up(&fake, &stand, BENCH_TABLE);
	fake.taint_every = 7;
	CU_ASSERT_EQUAL_FATAL(bench_grid_measure(&grid, &stand), 0);
	CU_ASSERT_EQUAL(grid.size_count, 8);
	CU_ASSERT_EQUAL(grid.sizes[0], 4096);
	CU_ASSERT_EQUAL(grid.sizes[7], 64 << 20);
	CU_ASSERT_EQUAL(fake.epochs, 3);
	CU_ASSERT_EQUAL(fake.room.target_bytes, 64 << 20);
	for (size_t size = 0; size < grid.size_count; size++)
		for (unsigned kernel = 0; kernel < 2; kernel++) {
			const struct bench_cell *cell = bench_grid_cell(&grid, PC_FLUSHED, size, kernel);

			CU_ASSERT_EQUAL(cell->runs.count, 3);
			CU_ASSERT(cell->samples >= 9 && cell->tainted < cell->samples);
			CU_ASSERT_DOUBLE_EQUAL(bench_values_mean(&cell->runs), 1 / 1.5 / (1 + kernel), 1e-9);
			CU_ASSERT_DOUBLE_EQUAL(bench_values_stdev(&cell->runs), 0, 1e-9);
			CU_ASSERT_EQUAL(bench_grid_best(&grid, PC_CACHED, size), 0);
		}
	bench_grid_clear(&grid);
}

static void table_as_asked(void)
{
	struct fake fake;
	struct bench_stand stand;
	struct bench_grid grid;

	NEEDS_TWO;
	set_up(&fake, &stand, BENCH_TABLE);
	stand.request.size_count = 1;
	stand.request.sizes[0] = 100;
	stand.request.priors = 1u << PC_CACHED;
	stand.request.runs = 1;
	stand.kernels = 2;
	CU_ASSERT_EQUAL_FATAL(bench_grid_measure(&grid, &stand), 0);
	CU_ASSERT_EQUAL(grid.size_count, 1);
	CU_ASSERT_EQUAL(bench_grid_cell(&grid, PC_FLUSHED, 0, 1)->samples, 0);
	CU_ASSERT_EQUAL(bench_grid_cell(&grid, PC_CACHED, 0, 0)->samples, 0);
	CU_ASSERT_EQUAL(bench_grid_cell(&grid, PC_CACHED, 0, 1)->runs.count, 1);
	CU_ASSERT(isnan(bench_values_stdev(&bench_grid_cell(&grid, PC_CACHED, 0, 1)->runs)));
	CU_ASSERT_EQUAL(bench_grid_best(&grid, PC_CACHED, 0), 1);
	CU_ASSERT_EQUAL(bench_grid_best(&grid, PC_FLUSHED, 0), -1);
	bench_grid_clear(&grid);
}

static size_t warnings_told(const struct bench_grid *grid, const struct bench_stand *stand)
{
	json_t *json = bench_grid_json(grid, stand);
	size_t count = json_array_size(json_object_get(json, "warnings"));

	CU_ASSERT_TRUE(json_is_array(json_object_get(json, "warnings")));
	json_decref(json);
	return count;
}

/* What does not fit into memory is left out, and that is told. */
static void table_of_little_memory(void)
{
	struct topology topology = {.id = "aaaaaaaaaaaa"};
	struct fake fake;
	struct bench_stand stand;
	struct bench_grid grid;

	set_up(&fake, &stand, BENCH_TABLE);
	stand.kernels = 1;
	stand.topology = &topology;
	stand.memory_bytes = 1 << 20;
	CU_ASSERT_EQUAL_FATAL(bench_grid_measure(&grid, &stand), 0);
	CU_ASSERT_EQUAL(grid.size_count, 5);
	CU_ASSERT(grid.cut);
	CU_ASSERT_EQUAL(warnings_told(&grid, &stand), 1);
	grid.cut = false;
	CU_ASSERT_EQUAL(warnings_told(&grid, &stand), 0);
	CU_ASSERT_EQUAL(fake.room.target_bytes, 1 << 20);
	bench_grid_clear(&grid);
}

/* A host that is never quiet: no figure is made of disturbed samples. */
static void table_of_a_busy_host(void)
{
	struct fake fake;
	struct bench_stand stand;
	struct bench_grid grid;

	set_up(&fake, &stand, BENCH_TABLE);
	stand.kernels = 1;
	fake.taint_rounds = true;
	CU_ASSERT_EQUAL_FATAL(bench_grid_measure(&grid, &stand), 0);
	CU_ASSERT_EQUAL(bench_grid_best(&grid, PC_CACHED, 0), -1);
	CU_ASSERT_EQUAL(bench_grid_cell(&grid, PC_CACHED, 0, 0)->tainted,
	                bench_grid_cell(&grid, PC_CACHED, 0, 0)->samples);
	CU_ASSERT(bench_grid_cell(&grid, PC_CACHED, 0, 0)->samples > 0);
	bench_grid_clear(&grid);
}

static void stopped(void)
{
	struct fake fake;
	struct bench_stand stand;
	struct bench_grid grid;

	set_up(&fake, &stand, BENCH_TABLE);
	stand.kernels = 1;
	fake.stop_after = 5;
	CU_ASSERT_EQUAL_FATAL(bench_grid_measure(&grid, &stand), 0);
	CU_ASSERT_EQUAL(fake.asks, 5);
	CU_ASSERT_EQUAL(fake.open, 0);
	CU_ASSERT_EQUAL(bench_grid_best(&grid, PC_CACHED, 0), -1);
	bench_grid_clear(&grid);
}

static void errors_are_passed_up(void)
{
	struct fake fake;
	struct bench_stand stand;
	struct bench_grid grid;
	struct xen_table xen;
	struct hugepage_table pages;

	set_up(&fake, &stand, BENCH_TABLE);
	fake.error = -ENOMEM;
	stand.request.size_count = 1;
	stand.request.sizes[0] = 4096;
	CU_ASSERT_EQUAL(bench_grid_measure(&grid, &stand), -ENOMEM);
	CU_ASSERT_EQUAL(xen_measure(&xen, &stand), -ENOMEM);
	CU_ASSERT_EQUAL(hugepage_measure(&pages, &stand), -ENOMEM);
	CU_ASSERT_EQUAL(fake.open, 0);
	bench_grid_clear(&grid);
	xen_clear(&xen);
	hugepage_clear(&pages);
}

/* --- xen --------------------------------------------------------------------------------------------------------- */

static void xen(void)
{
	struct topology topology = {.cache_count = 1,
	                            .caches = {{.level = 1, .type = 'D', .bytes = 49152, .line = 64}}};
	struct fake fake;
	struct bench_stand stand;
	struct xen_table found;

	NEEDS_TWO;
	set_up(&fake, &stand, BENCH_XEN);
	stand.topology = &topology;
	CU_ASSERT_EQUAL_FATAL(xen_measure(&found, &stand), 0);
	CU_ASSERT_EQUAL_FATAL(found.victim_count, 2);
	CU_ASSERT_STRING_EQUAL(found.victims[0].name, "L1D");
	CU_ASSERT_EQUAL(found.victims[0].victim_bytes, 49152);
	CU_ASSERT_EQUAL(found.victims[0].target_bytes, 24576);
	CU_ASSERT_FALSE(found.victims[0].assumed);
	CU_ASSERT(found.victims[1].assumed);
	CU_ASSERT_EQUAL(fake.epochs, 3);
	for (size_t victim = 0; victim < 2; victim++)
		for (unsigned kernel = 0; kernel < 2; kernel++) {
			const struct xen_cell *cell = xen_cell(&found, victim, PC_FLUSHED, kernel);
			double bytes = (double)found.victims[victim].target_bytes;

			CU_ASSERT(cell->samples > 10 && cell->tainted == 0);
			CU_ASSERT_DOUBLE_EQUAL(bench_values_median(&cell->clear_ns), bytes * (1 + kernel) * 1.5, 1e-6);
			CU_ASSERT_DOUBLE_EQUAL(bench_values_median(&cell->pre_ns), 2, 1e-9);
			CU_ASSERT_DOUBLE_EQUAL(bench_values_median(&cell->post_ns), 3 + kernel, 1e-9);
			CU_ASSERT_DOUBLE_EQUAL(bench_values_median(&cell->displaced_ns), 1 + kernel, 1e-9);
		}
	xen_clear(&found);
}

/* A round counts only as a whole: its three samples are compared. */
static void xen_taint(void)
{
	struct fake fake;
	struct bench_stand stand;
	struct xen_table found;

	set_up(&fake, &stand, BENCH_XEN);
	stand.kernels = 1;
	stand.request.size_count = 1;
	stand.request.sizes[0] = 5000;
	fake.taint_every = 6; /* every other round's third */
	CU_ASSERT_EQUAL_FATAL(xen_measure(&found, &stand), 0);
	CU_ASSERT_EQUAL(found.victims[0].victim_bytes, 12288); /* whole pages */
	for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++) {
		const struct xen_cell *cell = xen_cell(&found, 0, prior, 0);

		CU_ASSERT_EQUAL(cell->tainted, cell->samples / 2);
		CU_ASSERT_EQUAL(cell->clear_ns.count, cell->samples - cell->tainted);
		CU_ASSERT_EQUAL(cell->displaced_ns.count, cell->clear_ns.count);
		CU_ASSERT_DOUBLE_EQUAL(bench_values_median(&cell->displaced_ns), 1, 1e-9);
	}
	xen_clear(&found);
}

/* --- hugepage ---------------------------------------------------------------------------------------------------- */

static void hugepage(void)
{
	struct fake fake;
	struct bench_stand stand;
	struct hugepage_table found;

	NEEDS_TWO;
	set_up(&fake, &stand, BENCH_HUGEPAGE);
	stand.request.kernels = 3;
	stand.request.priors = 1u << PC_FLUSHED;
	CU_ASSERT_EQUAL_FATAL(hugepage_measure(&found, &stand), 0);
	CU_ASSERT_FALSE(found.raced);
	CU_ASSERT_EQUAL_FATAL(found.count, 20); /* pages x kernels x (two chunks both ways, the whole one) */
	CU_ASSERT_EQUAL(fake.asks, 3 * 25 * 20);
	CU_ASSERT_EQUAL(fake.chunked, 3 * 25 * 8);
	CU_ASSERT_EQUAL(fake.backward, 3 * 25 * 8);
	CU_ASSERT_EQUAL(fake.base, 3 * 25 * 10);
	CU_ASSERT_EQUAL(fake.epochs, 3);
	CU_ASSERT_NOT_EQUAL(fake.places[1], fake.places[2]);
	for (size_t i = 0; i < found.count; i++) {
		const struct hugepage_way *way = &found.ways[i];

		CU_ASSERT_EQUAL(way->variance.count, 75);
		CU_ASSERT_EQUAL(way->variance.mappings, 3);
		CU_ASSERT_DOUBLE_EQUAL(way->variance.mean, HUGEPAGE_BYTES * 1.5 * (1 + way->kernel), 1e-3);
		CU_ASSERT_EQUAL(way->samples[0].turn, 0);
		CU_ASSERT_EQUAL(way->samples[74].turn, 24);
		CU_ASSERT_EQUAL(way->samples[74].mapping, 2);
		CU_ASSERT(way->samples[0].reference > 0);
	}
	hugepage_clear(&found);
}

/* Taint of a sample is its own, and kept beside its value. */
static void hugepage_taint(void)
{
	struct fake fake;
	struct bench_stand stand;
	struct hugepage_table found;

	set_up(&fake, &stand, BENCH_HUGEPAGE);
	stand.request.kernels = stand.kernels = 1;
	stand.request.priors = 1u << PC_CACHED;
	fake.taint_every = 13;
	CU_ASSERT_EQUAL_FATAL(hugepage_measure(&found, &stand), 0);
	for (size_t i = 0; i < found.count; i++) {
		CU_ASSERT(found.ways[i].variance.tainted > 0);
		CU_ASSERT_DOUBLE_EQUAL(found.ways[i].variance.share[VARIANCE_TAINT], 1, 1e-6);
		CU_ASSERT_DOUBLE_EQUAL(found.ways[i].variance.clean_mean, HUGEPAGE_BYTES, 1e-3);
	}
	hugepage_clear(&found);
}

/* Without a list: libc, and of every other family the fastest. On this meter that is the first of its family. */
static void hugepage_race(void)
{
	struct fake fake;
	struct bench_stand stand;
	struct hugepage_table found;
	uint32_t expected = 0, families = 0;

	set_up(&fake, &stand, BENCH_HUGEPAGE);
	stand.kernels = (uint32_t)((UINT64_C(1) << pc_kernel_count) - 1);
	for (unsigned kernel = 0; kernel < pc_kernel_count; kernel++) {
		enum pc_family family = pc_kernels[kernel].family;

		if (family != PC_TEMPORAL && (families >> family & 1) == 0)
			expected |= 1u << kernel;
		families |= 1u << family;
	}
	stand.request.priors = 1u << PC_FLUSHED;
	stand.request.runs = 1;
	CU_ASSERT_EQUAL_FATAL(hugepage_measure(&found, &stand), 0);
	CU_ASSERT(found.raced);
	CU_ASSERT_EQUAL(found.kernels, expected);
	hugepage_clear(&found);
}

static const struct unit_test tests[] = {
	{"table", table},
	{"table_as_asked", table_as_asked},
	{"table_of_little_memory", table_of_little_memory},
	{"table_of_a_busy_host", table_of_a_busy_host},
	{"stopped", stopped},
	{"errors_are_passed_up", errors_are_passed_up},
	{"xen", xen},
	{"xen_taint", xen_taint},
	{"hugepage", hugepage},
	{"hugepage_taint", hugepage_taint},
	{"hugepage_race", hugepage_race},
};

UNIT_MAIN("calibctl_bench_measure", tests)
