/*
 * Never a rule against a loss that was measured: thousands of small random datasets, with curves of any shape, gaps,
 * noise within and between epochs, spot checks and old policies.
 */
#include <string.h>

#include "calibrd/solve.h"
#include "calibrd/spot.h"
#include "tests/unit/decisions.h"

enum { DATASETS = 2500, KERNELS = 5, SIZES = 9, AGAIN = 3 };

static double normal(struct random *random)
{
	return sqrt(-2 * log(random_unit(random))) * cos(2 * M_PI * random_unit(random));
}

/* What a host is like: the curves stay while it is measured again and again. */
struct host {
	size_t sizes;
	uint64_t bytes[SIZES];
	double l[KERNELS][PC_PRIORS][SIZES]; /* over libc; NaN: not measured there */
	double within, between;
	unsigned epochs, rounds;
	bool spots;
	double base[KERNELS], chunk[KERNELS]; /* how much dearer on base pages, and in chunks */
};

/* A walk over the sizes, or nothing but chance: curves that cross libc's more than once. */
static void random_curve(struct host *host, struct random *random, unsigned kernel, enum pc_prior prior)
{
	double at = uniform(random, -0.6, 0.6);
	bool walks = random_below(random, 2) == 0;

	for (size_t i = 0; i < host->sizes; i++) {
		at = walks ? at + uniform(random, -0.4, 0.4) : uniform(random, -0.6, 0.6);
		host->l[kernel][prior][i] = random_below(random, 6) == 0 ? NAN : at;
	}
}

static void random_host(struct host *host, struct random *random)
{
	double octaves = uniform(random, 12, 21);

	*host = (struct host){
		.sizes = 2 + random_below(random, SIZES - 1),
		.within = uniform(random, 0, 0.15),
		.between = uniform(random, 0, 0.1),
		.epochs = 2 + (unsigned)random_below(random, 4),
		.rounds = 1 + (unsigned)random_below(random, 8),
		.spots = random_below(random, 2) == 0,
	};
	for (size_t i = 0; i < host->sizes; i++) {
		host->bytes[i] = (uint64_t)exp2(octaves);
		octaves += random_below(random, 2) == 0 ? 1 : uniform(random, 0.05, 0.5);
	}
	for (unsigned k = 1; k < KERNELS; k++) {
		for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++)
			random_curve(host, random, k, prior);
		host->base[k] = uniform(random, -0.1, 0.6);
		host->chunk[k] = uniform(random, -0.2, 0.2);
	}
}

static void measure(struct dataset *data, struct random *random, const struct host *host, struct series_key key,
                    double l)
{
	for (unsigned e = 0; e < host->epochs; e++) {
		double epoch = host->between * normal(random);

		for (unsigned round = 0; round < host->rounds; round++)
			put_key(data, &key, e, round, 1000 * exp(l + epoch + host->within * normal(random)));
	}
}

/* The whole extent, a chunk, and base pages; both phases, so that hot is decided as well. */
static void measure_spots(struct dataset *data, struct random *random, const struct host *host, struct series_key key,
                          double l)
{
	key.page = (uint8_t)page_usual(key.bytes);
	key.chunk = key.bytes;
	measure(data, random, host, key, l);
	key.chunk = 65536;
	measure(data, random, host, key, l + host->chunk[key.kernel]);
	key.chunk = key.bytes;
	if (key.page != PAGE_BASE) {
		key.page = PAGE_BASE;
		measure(data, random, host, key, l + host->base[key.kernel]);
	}
}

static void measure_host(struct dataset *data, struct random *random, const struct host *host)
{
	for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++)
		for (unsigned k = 0; k < KERNELS; k++)
			for (size_t i = 0; i < host->sizes; i++)
				for (enum phase phase = PHASE_CLEAR; phase <= PHASE_READ; phase++) {
					double l = host->l[k][prior][i];
					struct series_key key =
						plain_key((struct where){phase, prior, host->bytes[i]}, k);

					if (isnan(l))
						continue;
					measure(data, random, host, key, l);
					if (host->spots && host->bytes[i] >= 1 << 20)
						measure_spots(data, random, host, key, l);
				}
	for (unsigned k = 0; k < KERNELS; k++)
		for (size_t i = 0; i < host->sizes; i++)
			for (enum phase phase = PHASE_VICTIM_L1; phase <= PHASE_VICTIM_L2; phase++)
				measure(data, random, host,
				        plain_key((struct where){phase, PC_FLUSHED, host->bytes[i]}, k),
				        isnan(host->l[k][PC_FLUSHED][i]) ? 0 : host->l[k][PC_FLUSHED][i]);
}

struct tally {
	unsigned tables, rules, kept, forbidden, interpolated, chunks;
};

/* No rule of a table names a kernel for a size at which the same data forbid it. */
static void check_table(const struct decide_input *input, const struct pc_table *table, struct tally *tally)
{
	struct grid grid;

	if (grid_build(&grid, input->data, table->intent, table->prior, table->threads, input->kernels,
	               input->scrub_weight) != 0)
		return;
	spot_forbid(&grid, input->data);
	CU_ASSERT_PTR_NULL(decide_against(table, &grid));
	for (size_t i = 0; i < grid.sizes; i++)
		for (unsigned k = 1; k < KERNELS; k++) {
			const struct cell *cell = grid_cell(&grid, i, k);

			tally->forbidden += cell->forbidden;
			tally->interpolated += cell->interpolated;
			/* What decide_against() says, by hand. */
			CU_ASSERT(!cell->forbidden ||
			          strcmp(pc_table_rule(table, grid.bytes[i])->kernel, name(k)) != 0);
		}
	grid_free(&grid);
}

static void check_decision(const struct decide_input *input, const struct decision *decision, struct tally *tally)
{
	for (size_t i = 0; i < decision->table_count; i++) {
		const struct pc_table *table = &decision->tables[i];

		CU_ASSERT_FALSE(decision->refused[i]);
		for (size_t j = 1; j < table->rule_count; j++) {
			CU_ASSERT(table->rules[j].from > table->rules[j - 1].from);
			tally->chunks += table->rules[j].chunk != 0;
		}
		check_table(input, table, tally);
		tally->tables++;
		tally->rules += (unsigned)table->rule_count - 1;
		tally->kept += decision->kept[i];
	}
}

/* Rules of nobody's making: they may stay only if the data allow it. */
static void spoil(struct decision *decision, struct random *random)
{
	for (size_t i = 0; i < decision->table_count; i++)
		for (size_t j = 0; j < decision->tables[i].rule_count; j++)
			if (random_below(random, 4) == 0)
				strcpy(decision->tables[i].rules[j].kernel,
				       name((unsigned)random_below(random, KERNELS)));
}

static void calibrate_again_and_again(struct random *random, struct tally *tally)
{
	struct decision before = {.table_count = 0};
	struct host host;

	random_host(&host, random);
	for (unsigned n = 0; n < AGAIN; n++) {
		struct pc_document old = {.table_count = before.table_count, .tables = before.tables};
		struct dataset data = {0};
		struct decide_input input = {
			.data = &data, .kernels = (1u << KERNELS) - 1, .scrub_weight = 0.1, .old = n > 0 ? &old : NULL};
		struct decision decision;

		measure_host(&data, random, &host);
		CU_ASSERT_EQUAL_FATAL(decide(&input, &decision), 0);
		check_decision(&input, &decision, tally);
		dataset_clear(&data);
		decision_free(&before);
		before = decision;
		if (random_below(random, 2) == 0)
			spoil(&before, random);
	}
	decision_free(&before);
}

static void test_no_rule_against_a_measured_loss(void)
{
	struct tally tally = {0};
	struct random random = {2026};

	NEEDS_KERNELS(KERNELS);
	for (unsigned n = 0; n < DATASETS / AGAIN; n++)
		calibrate_again_and_again(&random, &tally);
	printf("\n  %u tables, %u rules beside libc's first, %u kept, %u in chunks; %u cells forbidden, %u "
	       "interpolated ",
	       tally.tables, tally.rules, tally.kept, tally.chunks, tally.forbidden, tally.interpolated);
	/* There was something to get wrong. */
	CU_ASSERT(tally.rules > tally.tables / 2 && tally.kept > tally.tables / 10);
	CU_ASSERT(tally.forbidden > 10 * tally.tables / 2 && tally.interpolated > tally.tables / 2 &&
	          tally.chunks > 10);
}

static const struct unit_test tests[] = {
	{"no rule against a measured loss", test_no_rule_against_a_measured_loss},
};

UNIT_MAIN("decide_losses", tests)
