/*
 * Verifying simulated hosts, whose truth is known: a sound policy passes, a wrong one fails and the worst is named.
 */
#include "calibrd/verify.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libpolicy/policy.h"
#include "tests/sim/calibrate.h"
#include "tests/sim/hosts.h"
#include "tests/unit/harness.h"

#define MIB ((uint64_t)1 << 20)

enum { SEEDS = 5 };

static struct sim_host host;

/* A policy takes libc for kernels that do not run here, so the host's own must. */
static bool zen3(void)
{
	host_zen3(&host);
	for (unsigned k = 0; k < pc_kernel_count; k++)
		if ((host.kernels >> k & 1) != 0 && !pc_kernel_runs(&pc_kernels[k])) {
			unit_skip("%s, which the simulated host has, does not run here", pc_kernels[k].name);
			return false;
		}
	if (pc_kernel_find("clzero") != NULL)
		return true;
	unit_skip("the host is an x86 one");
	return false;
}

/* --- policies ---------------------------------------------------------------------------------------------------- */

static const struct pageclear_policy *policy_of(struct pc_table *tables, size_t count)
{
	struct pc_document document = {.tables = tables, .table_count = count};
	struct pageclear_policy *policy = NULL;
	struct pc_why lacking;

	CU_ASSERT_EQUAL_FATAL(pc_policy_build(&policy, &document, 0, &lacking), 0);
	CU_ASSERT_STRING_EQUAL(lacking.text, "");
	return policy;
}

static const struct pageclear_policy *calibrated(uint64_t seed)
{
	struct calibrated calibration;
	const struct pageclear_policy *policy;

	CU_ASSERT_EQUAL_FATAL(calibrate(&calibration, &host, &sim_noise_guest, EFFORT_STANDARD, seed), 0);
	policy = policy_of(calibration.decision.tables, calibration.decision.table_count);
	calibration_free(&calibration);
	return policy;
}

/* One kernel from a size on, whatever the intent and prior. */
static const struct pageclear_policy *everywhere(const char *kernel, uint64_t from, uint64_t chunk)
{
	struct pc_rule rules[2] = {{.kernel = "libc"}, {.from = from, .chunk = chunk}};
	struct pc_table tables[VERIFY_SERIES];

	snprintf(rules[1].kernel, sizeof(rules[1].kernel), "%s", kernel);
	for (unsigned i = 0; i < VERIFY_SERIES; i++)
		tables[i] = (struct pc_table){.intent = i / 2,
		                              .prior = i == 4       ? PC_UNKNOWN
		                                       : i % 2 == 0 ? PC_CACHED
		                                                    : PC_FLUSHED,
		                              .threads = 1,
		                              .rule_count = 2,
		                              .rules = rules};
	return policy_of(tables, VERIFY_SERIES);
}

/* --- a meter that keeps watch ------------------------------------------------------------------------------------ */

struct watch {
	struct meter meter, *inner;
	struct meter_room room; /* the largest asked for */
	unsigned epochs, rounds;
	bool chunked;
};

static uint64_t watch_now(struct meter *meter)
{
	struct watch *watch = (struct watch *)meter;

	return watch->inner->ops->now_ns(watch->inner);
}

static int watch_epoch(struct meter *meter, const struct meter_room *room)
{
	struct watch *watch = (struct watch *)meter;

	watch->epochs++;
	watch->room = *room;
	return watch->inner->ops->epoch(watch->inner, room);
}

static int watch_begin(struct meter *meter, uint64_t seed)
{
	struct watch *watch = (struct watch *)meter;

	watch->rounds++;
	return watch->inner->ops->round_begin(watch->inner, seed);
}

static int watch_sample(struct meter *meter, const struct meter_ask *ask, struct meter_sample *out)
{
	struct watch *watch = (struct watch *)meter;

	watch->chunked |= ask->chunk > 0;
	CU_ASSERT(ask->bytes <= watch->room.target_bytes && ask->victim_bytes <= watch->room.victim_bytes);
	return watch->inner->ops->sample(watch->inner, ask, out);
}

static bool watch_end(struct meter *meter)
{
	struct watch *watch = (struct watch *)meter;

	return watch->inner->ops->round_end(watch->inner);
}

static const struct meter_ops watch_ops = {.now_ns = watch_now,
                                           .epoch = watch_epoch,
                                           .round_begin = watch_begin,
                                           .sample = watch_sample,
                                           .round_end = watch_end};

/* --- measuring --------------------------------------------------------------------------------------------------- */

static struct verify_config config_of(enum effort effort, uint64_t seed, const struct pageclear_policy **policies,
                                      size_t count)
{
	return (struct verify_config){.effort = effort,
	                              .kernels = host.kernels,
	                              .memory_bytes = 1024 * MIB,
	                              .l1_bytes = host.l1_bytes,
	                              .l2_bytes = host.l2_bytes,
	                              .knee_bytes = host.llc_bytes,
	                              .seed = seed,
	                              .policies = policies,
	                              .policy_count = count};
}

static struct verify_data measured(const struct verify_config *config, const struct sim_noise *noise,
                                   struct watch *watch)
{
	struct verify_data data = {0};
	struct watch unwatched;
	struct pc_why why = {""};

	watch = watch != NULL ? watch : &unwatched;
	*watch = (struct watch){.meter.ops = &watch_ops};
	CU_ASSERT_EQUAL_FATAL(meter_sim_new(&watch->inner, &host, noise, config->seed), 0);
	CU_ASSERT_EQUAL(verify_measure(&watch->meter, config, &data, &why), 0);
	if (why.text[0] != '\0')
		printf("%s\n", why.text);
	meter_free(watch->inner);
	return data;
}

static struct verify_report judged(const struct verify_data *data, const struct pageclear_policy *policy)
{
	struct verify_report report = {0};
	struct pc_why why = {""};

	CU_ASSERT_EQUAL(verify_judge(data, policy, VERIFY_TOLERANCE / 100.0, &report, &why), 0);
	return report;
}

static const struct verify_series *series_of(const struct verify_report *report, unsigned intent, enum pc_prior prior)
{
	for (size_t i = 0; i < report->count; i++)
		if (report->series[i].told.intent == intent && report->series[i].told.prior == prior)
			return &report->series[i];
	CU_FAIL_FATAL("no such series");
	return NULL;
}

static void print_report(const struct verify_report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		const struct verify_series *s = &report->series[i];

		printf("\n  %s %s: mean %.3f p95 %.3f worst %.3f at %llu, %s for %s; floor %.3f %.3f; %s",
		       pc_intent_name(s->told.intent), pc_prior_name(s->told.prior), s->told.mean, s->told.p95,
		       s->told.worst, (unsigned long long)s->told.worst_bytes, pc_kernels[s->chosen.kernel].name,
		       pc_kernels[s->better.kernel].name, s->told.floor, s->told.floor_p95,
		       s->told.passed ? "passed" : "failed");
	}
	printf("\n");
}

/* --- tests ------------------------------------------------------------------------------------------------------- */

static void test_what_was_calibrated_passes(void)
{
	if (!zen3())
		return;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		const struct pageclear_policy *policy = calibrated(seed);
		struct verify_config config = config_of(EFFORT_STANDARD, seed + 100, &policy, 1);
		struct verify_data data = measured(&config, &sim_noise_guest, NULL);
		struct verify_report report = judged(&data, policy);

		CU_ASSERT(report.passed);
		if (!report.passed)
			print_report(&report);
		/* Clearing flushed memory is what this host's own kernel gains most at. */
		CU_ASSERT(series_of(&report, PAGECLEAR_COLD, PC_FLUSHED)->told.gain > 1.5);
		verify_data_free(&data);
		pageclear_policy_close(policy);
	}
}

/* On this host avxnt costs seven times as much as libc where small memory is cached, and about the least where large
 * memory is not. */
static void test_a_wrong_policy_fails_and_is_named(void)
{
	const struct pageclear_policy *wrong[2];

	if (!zen3())
		return;
	wrong[0] = everywhere("avxnt", 1, 0);
	wrong[1] = everywhere("movnti", 1, 0);
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct verify_config config = config_of(EFFORT_QUICK, seed, wrong, 2);
		struct verify_data data = measured(&config, &sim_noise_guest, NULL);

		for (unsigned i = 0; i < 2; i++) {
			struct verify_report report = judged(&data, wrong[i]);
			const struct verify_series *cold = series_of(&report, PAGECLEAR_COLD, PC_CACHED);

			CU_ASSERT_FALSE(report.passed);
			CU_ASSERT_FALSE(cold->told.passed);
			CU_ASSERT_FALSE(series_of(&report, PAGECLEAR_HOT, PC_CACHED)->told.passed);
			CU_ASSERT(cold->told.mean > 1 && cold->told.worst > 4);
			CU_ASSERT(cold->told.worst_bytes < 128 << 10);
			CU_ASSERT_STRING_EQUAL(pc_kernels[cold->chosen.kernel].name, i == 0 ? "avxnt" : "movnti");
			CU_ASSERT_EQUAL(cold->better.kernel, 0);
			CU_ASSERT(cold->told.gain < 0.7 && cold->told.best_gain >= 0.95);
		}
		verify_data_free(&data);
	}
	pageclear_policy_close(wrong[0]);
	pageclear_policy_close(wrong[1]);
}

static void test_without_noise_figures_are_the_tables(void)
{
	const struct pageclear_policy *policy;
	struct verify_config config;
	struct verify_data data;
	unsigned clzero;

	if (!zen3())
		return;
	policy = everywhere("clzero", 32 << 10, 0);
	config = config_of(EFFORT_QUICK, 3, &policy, 1);
	data = measured(&config, &sim_noise_none, NULL);
	clzero = pc_kernel_index(pc_kernel_find("clzero"));
	for (size_t i = 0; i < data.count; i++) {
		const struct verify_point *point = &data.points[i];
		enum pc_prior prior = point->shape == VERIFY_CACHED ? PC_CACHED : PC_FLUSHED;
		unsigned kernel = point->bytes < 32 << 10 ? 0 : clzero;
		struct verify_outcome out;
		double libc = sim_clear_ns(&host, 0, prior, point->bytes),
		       own = sim_clear_ns(&host, kernel, prior, point->bytes);

		if (point->shape == VERIFY_SCRUB)
			continue;
		CU_ASSERT(verify_point_judge(point, PAGECLEAR_COLD, policy, &out));
		CU_ASSERT_EQUAL(out.floor, 0);
		CU_ASSERT_DOUBLE_EQUAL(out.own, log(own / libc), 1e-4);
		libc += sim_read_ns(&host, 0, prior, point->bytes);
		own += sim_read_ns(&host, kernel, prior, point->bytes);
		CU_ASSERT(verify_point_judge(point, PAGECLEAR_HOT, policy, &out));
		CU_ASSERT_DOUBLE_EQUAL(out.own, log(own / libc), 1e-4);
	}
	verify_data_free(&data);
	pageclear_policy_close(policy);
}

static bool is_on_a_grid(uint64_t bytes)
{
	while (bytes % 2 == 0)
		bytes /= 2;
	return bytes == 1 || bytes == 3;
}

static void check_sizes(const struct verify_data *data, uint64_t most)
{
	uint64_t last[VERIFY_SHAPES] = {0};

	for (size_t i = 0; i < data->count; i++) {
		const struct verify_point *point = &data->points[i];

		CU_ASSERT(point->bytes % 16 == 0 && point->bytes >= 1024 && point->bytes <= most);
		CU_ASSERT_FALSE(is_on_a_grid(point->bytes));
		CU_ASSERT(point->bytes > last[point->shape]); /* one in each step */
		last[point->shape] = point->bytes;
		if (point->shape == VERIFY_SCRUB)
			CU_ASSERT(point->bytes >= 16 << 10 && point->bytes <= 16 * MIB);
	}
	for (unsigned shape = 0; shape < VERIFY_SHAPES; shape++)
		CU_ASSERT(last[shape] > (most < 16 * MIB ? most : 16 * MIB) / 4);
}

static bool same_sizes(const struct verify_data *a, const struct verify_data *b)
{
	bool same = a->count == b->count;

	for (size_t i = 0; i < a->count && same; i++)
		same = a->points[i].bytes == b->points[i].bytes;
	return same;
}

static void test_sizes_are_fresh_and_seeded(void)
{
	struct verify_config config;
	struct verify_data first, again, other;

	if (!zen3())
		return;
	config = config_of(EFFORT_QUICK, 1, NULL, 0);
	first = measured(&config, &sim_noise_guest, NULL);
	again = measured(&config, &sim_noise_guest, NULL);
	config.seed = 2;
	other = measured(&config, &sim_noise_guest, NULL);
	check_sizes(&first, 64 * MIB);
	CU_ASSERT(same_sizes(&first, &again));
	CU_ASSERT_FALSE(same_sizes(&first, &other));
	for (size_t i = 0; i < first.count; i++) {
		CU_ASSERT_EQUAL_FATAL(first.points[i].rounds, again.points[i].rounds);
		CU_ASSERT_EQUAL(
			memcmp(first.points[i].costs, again.points[i].costs,
		               first.points[i].rounds * first.points[i].entrant_count * sizeof(struct verify_cost)),
			0);
	}
	verify_data_free(&first);
	verify_data_free(&again);
	verify_data_free(&other);
}

/* On a host a fifth as slow and on one fifty times as slow; the fast one may run out of rounds before. */
static void test_the_budget_is_kept(void)
{
	static const double slower[] = {0.2, 1, 50};

	if (!zen3())
		return;
	for (unsigned i = 0; i < 3; i++)
		for (enum effort effort = EFFORT_QUICK; effort < EFFORTS; effort++) {
			struct verify_config config = config_of(effort, 1, NULL, 0);
			struct meter *meter;
			struct verify_data data;
			struct pc_why why;
			double seconds;

			host.slower = slower[i];
			CU_ASSERT_EQUAL_FATAL(meter_sim_new(&meter, &host, &sim_noise_guest, 1), 0);
			CU_ASSERT_EQUAL_FATAL(verify_measure(meter, &config, &data, &why), 0);
			seconds = (double)meter->ops->now_ns(meter) / 1e9;
			CU_ASSERT(seconds <= 1.2 * verify_seconds(effort));
			CU_ASSERT(slower[i] < 1 || seconds >= 0.8 * verify_seconds(effort));
			if (seconds > 1.2 * verify_seconds(effort))
				printf("\n  %g times as slow, effort %d: %.1f s", slower[i], effort, seconds);
			verify_data_free(&data);
			meter_free(meter);
		}
}

static void test_rounds_are_spread_over_epochs(void)
{
	struct verify_config config;
	struct verify_data data;
	struct watch watch;

	if (!zen3())
		return;
	config = config_of(EFFORT_QUICK, 1, NULL, 0);
	data = measured(&config, &sim_noise_guest, &watch);
	CU_ASSERT(watch.epochs >= 3 && watch.epochs % 2 == 0);
	for (size_t i = 0; i < data.count; i++) {
		unsigned seen = 0;

		for (size_t r = 0; r < data.points[i].rounds; r++)
			seen |= 1u << data.points[i].epoch[r];
		CU_ASSERT_EQUAL(seen, (1u << watch.epochs) - 1);
	}
	verify_data_free(&data);
}

static void test_memory_is_capped(void)
{
	struct verify_config config;
	struct verify_data data;
	struct watch watch;

	if (!zen3())
		return;
	config = config_of(EFFORT_QUICK, 1, NULL, 0);
	config.memory_bytes = 24 * MIB;
	config.knee_bytes = 512 * MIB;
	data = measured(&config, &sim_noise_none, &watch);
	CU_ASSERT(watch.room.target_bytes + watch.room.victim_bytes <= config.memory_bytes);
	CU_ASSERT(watch.room.target_bytes >= 16 * MIB);
	check_sizes(&data, 12 * MIB);
	verify_data_free(&data);
}

static void test_choices_in_chunks_take_part(void)
{
	const struct pageclear_policy *policies[2];
	struct verify_config config;
	struct verify_data data;
	struct watch watch;

	if (!zen3())
		return;
	policies[0] = policies[1] = everywhere("clzero", 4 << 20, 65536);
	config = config_of(EFFORT_QUICK, 1, policies, 2);
	data = measured(&config, &sim_noise_none, &watch);
	CU_ASSERT(watch.chunked);
	for (size_t i = 0; i < data.count; i++) {
		struct verify_outcome out;
		const struct verify_point *point = &data.points[i];
		unsigned intent = point->shape == VERIFY_SCRUB ? 2 : 1, chunked = 0;

		for (size_t e = 0; e < point->entrant_count; e++)
			chunked += point->entrants[e].way.chunk > 0;
		/* Once, however many intents and policies ask for it. */
		CU_ASSERT_EQUAL(chunked, point->bytes >= 4 << 20);
		CU_ASSERT(verify_point_judge(point, intent, policies[0], &out));
		CU_ASSERT_EQUAL(out.chosen.chunk, point->bytes >= 4 << 20 ? 65536 : 0);
	}
	verify_data_free(&data);
	pageclear_policy_close(policies[0]);
}

static int end_at(void *context, unsigned epoch, unsigned epochs, double share)
{
	double *most = context;

	CU_ASSERT(epoch < epochs && share >= 0 && share <= 1);
	return share > *most ? -ECANCELED : 0;
}

static void test_errors_are_passed_up(void)
{
	struct verify_data data;
	struct verify_config config;
	struct meter *meter;
	struct pc_why why = {""};
	double most = 0.3;

	if (!zen3())
		return;
	config = config_of(EFFORT_QUICK, 1, NULL, 0);
	CU_ASSERT_EQUAL_FATAL(meter_sim_new(&meter, &host, &sim_noise_none, 1), 0);
	meter_sim_fail(meter, 1000, -EIO);
	CU_ASSERT_EQUAL(verify_measure(meter, &config, &data, &why), -EIO);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "Input/output error"));
	meter_free(meter);

	CU_ASSERT_EQUAL_FATAL(meter_sim_new(&meter, &host, &sim_noise_none, 1), 0);
	config.progress = end_at;
	config.context = &most;
	CU_ASSERT_EQUAL(verify_measure(meter, &config, &data, &why), -ECANCELED);
	meter_free(meter);
}

/* Where time is always stolen nothing can be told, and that is what is said. */
static void test_a_host_that_is_always_disturbed(void)
{
	static const struct sim_noise stolen = {.steal = 1};
	const struct pageclear_policy *policy;
	struct verify_config config;
	struct verify_report report;
	struct verify_data data;
	struct pc_why why = {""};

	if (!zen3())
		return;
	policy = everywhere("clzero", 65536, 0);
	config = config_of(EFFORT_QUICK, 1, &policy, 1);
	data = measured(&config, &stolen, NULL);
	CU_ASSERT_EQUAL(verify_judge(&data, policy, 0.02, &report, &why), -ENODATA);
	verify_data_free(&data);
	pageclear_policy_close(policy);
}

static const struct unit_test tests[] = {
	{"what was calibrated passes", test_what_was_calibrated_passes},
	{"a wrong policy fails and is named", test_a_wrong_policy_fails_and_is_named},
	{"without noise figures are the tables'", test_without_noise_figures_are_the_tables},
	{"sizes are fresh and seeded", test_sizes_are_fresh_and_seeded},
	{"the budget is kept", test_the_budget_is_kept},
	{"rounds are spread over epochs", test_rounds_are_spread_over_epochs},
	{"memory is capped", test_memory_is_capped},
	{"choices in chunks take part", test_choices_in_chunks_take_part},
	{"errors are passed up", test_errors_are_passed_up},
	{"a host that is always disturbed", test_a_host_that_is_always_disturbed},
};

UNIT_MAIN("verify-sim", tests)
