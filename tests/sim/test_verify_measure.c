/*
 * What a verification asks a simulated host's meter: which sizes, how often, in how much time and memory.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "tests/sim/verify_host.h"

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

/* Design section 6: small flushed sizes in two ways, by everybody; nothing else. */
static void test_small_flushed_sizes_are_asked_for_alone(void)
{
	struct verify_config config;
	struct verify_data data;
	unsigned small = 0;

	if (!zen3())
		return;
	config = config_of(EFFORT_QUICK, 1, NULL, 0);
	data = measured(&config, &sim_noise_guest, NULL);
	for (size_t i = 0; i < data.count; i++) {
		const struct verify_point *point = &data.points[i];
		bool alone = point->shape == VERIFY_FLUSHED && point->bytes <= 16 << 10;

		CU_ASSERT(point->rounds > 0);
		for (size_t c = 0; c < point->rounds * point->entrant_count; c++)
			CU_ASSERT_EQUAL(isnan(point->costs[c].alone), !alone);
		small += alone ? 1 : 0;
	}
	CU_ASSERT(small > 0);
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
	{"sizes are fresh and seeded", test_sizes_are_fresh_and_seeded},
	{"the budget is kept", test_the_budget_is_kept},
	{"rounds are spread over epochs", test_rounds_are_spread_over_epochs},
	{"small flushed sizes are asked for alone", test_small_flushed_sizes_are_asked_for_alone},
	{"memory is capped", test_memory_is_capped},
	{"choices in chunks take part", test_choices_in_chunks_take_part},
	{"errors are passed up", test_errors_are_passed_up},
	{"a host that is always disturbed", test_a_host_that_is_always_disturbed},
};

UNIT_MAIN("verify_measure-sim", tests)
