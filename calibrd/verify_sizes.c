/* What a verification measures: fresh sizes, who takes part at each, and in how much memory. See verify_parts.h. */
#include <errno.h>
#include <math.h>
#include <pageclear/policy.h>
#include <stdlib.h>
#include <string.h>

#include "calibrd/random.h"
#include "calibrd/verify_parts.h"
#include "kernels/kernels.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

static const uint64_t least_bytes[VERIFY_SHAPES] = {KIB, KIB, 16 * KIB};
static const uint64_t most_bytes[VERIFY_SHAPES] = {64 * MIB, 64 * MIB, 16 * MIB};
static const uint64_t usual_knee = 8 * MIB;

const struct verify_effort verify_efforts[EFFORTS] = {
	[EFFORT_QUICK] = {15, 4, {12, 12, 8}, 24},
	[EFFORT_STANDARD] = {60, 4, {20, 20, 12}, 48},
	[EFFORT_THOROUGH] = {300, 6, {32, 32, 20}, 40},
};

_Static_assert(4 * 48 <= VERIFY_ROUNDS && 6 * 40 <= VERIFY_ROUNDS, "every epoch's rounds have a place");

double verify_seconds(enum effort effort)
{
	return verify_efforts[effort].seconds;
}

/* --- measurements ------------------------------------------------------------------------------------------------ */

int verify_point_add(struct verify_point *point, unsigned epoch, const struct verify_cost *costs)
{
	size_t row = point->entrant_count * sizeof(*costs);

	if (point->costs == NULL)
		point->costs = calloc(VERIFY_ROUNDS, row);
	if (point->costs == NULL)
		return -ENOMEM;
	if (point->rounds == VERIFY_ROUNDS)
		return -E2BIG;
	point->epoch[point->rounds] = (uint8_t)epoch;
	memcpy(&point->costs[point->rounds++ * point->entrant_count], costs, row);
	return 0;
}

void verify_data_free(struct verify_data *data)
{
	for (size_t i = 0; i < data->count; i++)
		free(data->points[i].costs);
	free(data->points);
	*data = (struct verify_data){0};
}

/* --- entrants -------------------- */

static void enter(struct verify_point *point, struct verify_entrant entrant)
{
	point->entrants[point->entrant_count++] = entrant;
}

/* A choice in chunks is an entrant of its own, once. */
static void enter_choice(struct verify_point *point, const struct pageclear_policy *policy, unsigned intent)
{
	struct verify_way way = verify_choice(policy, point->shape, point->bytes, intent);

	for (size_t e = 0; e < point->entrant_count; e++)
		if (point->entrants[e].kind == VERIFY_KERNEL && point->entrants[e].way.kernel == way.kernel &&
		    point->entrants[e].way.chunk == way.chunk)
			return;
	enter(point, (struct verify_entrant){.kind = VERIFY_KERNEL, .way = way});
}

static void enter_policy(struct verify_point *point, const struct verify_config *config,
                         const struct pageclear_policy *policy)
{
	for (unsigned intent = PAGECLEAR_HOT; intent <= PAGECLEAR_SCRUB; intent++) {
		if (!verify_point_serves(point, intent))
			continue;
		enter_choice(point, policy, intent);
		if (config->unhinted && point->shape != VERIFY_SCRUB)
			enter(point,
			      (struct verify_entrant){.kind = VERIFY_UNHINTED, .policy = policy, .intent = intent});
	}
}

static void enter_all(struct verify_point *point, const struct verify_config *config)
{
	for (unsigned k = 0; k < pc_kernel_count; k++)
		if (k == 0 || (config->kernels >> k & 1) != 0)
			enter(point, (struct verify_entrant){.kind = VERIFY_KERNEL, .way = {.kernel = k}});
	enter(point, (struct verify_entrant){.kind = VERIFY_AGAIN});
	if (config->against != NULL)
		enter(point, (struct verify_entrant){.kind = VERIFY_AGAINST});
	for (size_t i = 0; i < config->policy_count; i++)
		enter_policy(point, config, config->policies[i]);
}

_Static_assert(PC_KERNEL_MAX + 2 + 4 * VERIFY_POLICIES <= VERIFY_ENTRANTS,
               "kernels, libc again, another library, and of each policy two choices and two calls without a hint");

/* --- sizes ------------------------------------------------------------------------------------------------------- */

static bool is_power(uint64_t bytes)
{
	return (bytes & (bytes - 1)) == 0;
}

/* One random size in step `i` of `steps` equal ones of the logarithm, in whole 16 bytes, and none that a grid of two
 * sizes an octave has. */
static uint64_t draw(struct random *random, uint64_t least, uint64_t most, unsigned i, unsigned steps)
{
	double octaves = log2((double)most / (double)least);
	uint64_t bytes = (uint64_t)((double)least * exp2(octaves * (i + random_unit(random)) / steps)) / 16 * 16;

	return is_power(bytes) || (bytes % 3 == 0 && is_power(bytes / 3)) ? bytes + 16 : bytes;
}

static int lay_out(const struct verify_config *config, uint64_t most, struct verify_data *data)
{
	const unsigned *sizes = verify_efforts[config->effort].sizes;
	struct random random = {config->seed};

	data->points =
		calloc(sizes[VERIFY_CACHED] + sizes[VERIFY_FLUSHED] + sizes[VERIFY_SCRUB], sizeof(*data->points));
	if (data->points == NULL)
		return -ENOMEM;
	for (unsigned shape = 0; shape < VERIFY_SHAPES; shape++)
		for (unsigned i = 0; i < sizes[shape]; i++) {
			struct verify_point *point = &data->points[data->count++];
			uint64_t end = most < most_bytes[shape] ? most : most_bytes[shape];

			point->shape = shape;
			point->bytes = draw(&random, least_bytes[shape], end, i, sizes[shape]);
			enter_all(point, config);
		}
	return 0;
}

/* --- whom the policies name -------------------------------------------------------------------------------------- */

uint32_t verify_named(const struct pageclear_policy *policy)
{
	static const unsigned hints[PC_PRIORS] = {0, PAGECLEAR_CACHED, PAGECLEAR_FLUSHED};
	uint32_t named = 0;

	for (unsigned intent = PAGECLEAR_HOT; intent <= PAGECLEAR_SCRUB; intent++)
		for (unsigned prior = 0; prior < PC_PRIORS; prior++) {
			struct pageclear_choice choice = {.size = sizeof(choice)};

			while (choice.to != SIZE_MAX) {
				struct pageclear_query query = {.size = sizeof(query),
				                                .len = choice.to,
				                                .intent = intent | hints[prior],
				                                .threads = 1};

				pageclear_policy_choose(policy, &query, &choice);
				named |= 1u << pc_kernel_index(pc_kernel_find(choice.kernel));
			}
		}
	return named;
}

/* A policy may name what its own calibration found sound and this one finds broken. */
static int check_named(const struct verify_config *config, struct pc_why *why)
{
	for (size_t i = 0; i < config->policy_count; i++) {
		uint32_t lacking = verify_named(config->policies[i]) & ~(config->kernels | 1u);

		if (lacking != 0)
			return pc_why(why, -ENOEXEC, "the policy chooses %s, which failed its trial on this host",
			              pc_kernels[__builtin_ctz(lacking)].name);
	}
	return 0;
}

/* --- the plan ---------------------------------------------------------------------------------------------------- */

static uint64_t victim_bytes(const struct verify_config *config, const struct verify_plan *plan, unsigned victim)
{
	uint64_t bytes = victim == 0   ? meter_private_cache(1, config->l1_bytes)
	                 : victim == 1 ? meter_private_cache(2, config->l2_bytes)
	                               : plan->knee_bytes / 2;

	return (bytes < config->memory_bytes / 4 ? bytes : config->memory_bytes / 4) / 4096 * 4096;
}

/* Victims take a quarter of the memory at most, targets the rest: twice the largest extent, so that rounds find
 * different places. */
static int plan_memory(const struct verify_config *config, struct verify_plan *plan, uint64_t *most)
{
	uint64_t victims = 0;

	*plan = (struct verify_plan){.knee_bytes = config->knee_bytes > 0 ? config->knee_bytes : usual_knee};
	for (unsigned victim = 0; victim < VERIFY_VICTIMS; victim++) {
		plan->victim_bytes[victim] = victim_bytes(config, plan, victim);
		if (plan->victim_bytes[victim] > victims)
			victims = plan->victim_bytes[victim];
	}
	*most = (config->memory_bytes - victims) / 2;
	if (*most > most_bytes[VERIFY_CACHED])
		*most = most_bytes[VERIFY_CACHED];
	plan->room = (struct meter_room){.target_bytes = 2 * *most, .victim_bytes = victims};
	return *most < MIB ? -ENOMEM : 0;
}

int verify_plan(const struct verify_config *config, struct verify_data *data, struct verify_plan *plan,
                struct pc_why *why)
{
	uint64_t most;
	int r;

	*data = (struct verify_data){0};
	if (config->policy_count > VERIFY_POLICIES)
		return pc_why(why, -E2BIG, "more than %d policies at once", VERIFY_POLICIES);
	r = check_named(config, why);
	if (r < 0)
		return r;
	if (plan_memory(config, plan, &most) < 0)
		return pc_why(why, -ENOMEM, "too little memory to measure with");
	return lay_out(config, most, data) < 0 ? pc_why(why, -ENOMEM, "out of memory") : 0;
}
