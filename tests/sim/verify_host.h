/*
 * Verifying simulated hosts: a host, policies for it, and a meter that keeps watch. Shared by the tests of verify.h.
 */
#ifndef TESTS_VERIFY_HOST_H
#define TESTS_VERIFY_HOST_H

#include <stdio.h>

#include "calibrd/verify.h"
#include "libpolicy/policy.h"
#include "tests/sim/hosts.h"
#include "tests/sim/meter_sim.h"
#include "tests/sim/zen3.h"
#include "tests/unit/harness.h"

#define MIB ((uint64_t)1 << 20)

static struct sim_host host;

/* A policy takes libc for kernels that do not run here, so the host's own must. */
static inline bool zen3(void)
{
	if (!zen3_here(&host))
		return false;
	for (unsigned k = 0; k < pc_kernel_count; k++)
		if ((host.kernels >> k & 1) != 0 && !pc_kernel_runs(&pc_kernels[k])) {
			unit_skip("%s, which the simulated host has, does not run here", pc_kernels[k].name);
			return false;
		}
	return true;
}

/* --- policies ---------------------------------------------------------------------------------------------------- */

static inline const struct pageclear_policy *policy_of(struct pc_table *tables, size_t count)
{
	struct pc_document document = {.tables = tables, .table_count = count};
	struct pageclear_policy *policy = NULL;
	struct pc_why lacking;

	CU_ASSERT_EQUAL_FATAL(pc_policy_build(&policy, &document, 0, &lacking), 0);
	CU_ASSERT_STRING_EQUAL(lacking.text, "");
	return policy;
}

/* One kernel from a size on, whatever the intent and prior. */
static inline const struct pageclear_policy *everywhere(const char *kernel, uint64_t from, uint64_t chunk)
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

static inline uint64_t watch_now(struct meter *meter)
{
	struct watch *watch = (struct watch *)meter;

	return watch->inner->ops->now_ns(watch->inner);
}

static inline int watch_epoch(struct meter *meter, const struct meter_room *room)
{
	struct watch *watch = (struct watch *)meter;

	watch->epochs++;
	watch->room = *room;
	return watch->inner->ops->epoch(watch->inner, room);
}

static inline int watch_begin(struct meter *meter, uint64_t seed)
{
	struct watch *watch = (struct watch *)meter;

	watch->rounds++;
	return watch->inner->ops->round_begin(watch->inner, seed);
}

static inline int watch_sample(struct meter *meter, const struct meter_ask *ask, struct meter_sample *out)
{
	struct watch *watch = (struct watch *)meter;

	watch->chunked |= ask->chunk > 0;
	CU_ASSERT(ask->bytes <= watch->room.target_bytes && ask->victim_bytes <= watch->room.victim_bytes);
	return watch->inner->ops->sample(watch->inner, ask, out);
}

static inline bool watch_end(struct meter *meter)
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

static inline struct verify_config config_of(enum effort effort, uint64_t seed,
                                             const struct pageclear_policy **policies, size_t count)
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

static inline struct verify_data measured(const struct verify_config *config, const struct sim_noise *noise,
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

#endif
