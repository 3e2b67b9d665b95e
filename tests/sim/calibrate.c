/* Calibrates simulated hosts; see calibrate.h. */
#include "tests/sim/calibrate.h"

#include <stdio.h>

#include "pageclear/policy.h"

int calibrate_decide(struct calibration *calibration, const struct sim_host *host, const struct pc_document *old)
{
	struct decide_input input = {
		.data = &calibration->data, .kernels = host->kernels, .scrub_weight = 0.1, .old = old};

	decision_free(&calibration->decision);
	return decide(&input, &calibration->decision);
}

int calibrate(struct calibration *out, const struct sim_host *host, const struct sim_noise *noise, enum effort effort,
              uint64_t seed)
{
	struct bench_config config = {
		.effort = effort,
		.kernels = host->kernels,
		.memory_bytes = (uint64_t)2 << 30,
		.l1_bytes = host->l1_bytes,
		.l2_bytes = host->l2_bytes,
		.llc_bytes = host->llc_bytes,
		.seed = seed,
	};
	struct meter *meter;
	int r = meter_sim_new(&meter, host, noise, seed);

	if (r < 0)
		return r;
	*out = (struct calibration){.seconds = 0};
	r = bench_run(meter, &config, &out->data, NULL);
	out->seconds = (double)meter->ops->now_ns(meter) / 1e9;
	if (r == 0)
		r = calibrate_decide(out, host, NULL);
	if (r < 0)
		calibration_free(out);
	meter_free(meter);
	return r;
}

void calibration_free(struct calibration *calibration)
{
	dataset_clear(&calibration->data);
	decision_free(&calibration->decision);
}

const struct pc_table *calibrated_table(const struct decision *decision, unsigned intent, enum pc_prior prior)
{
	for (size_t i = 0; i < decision->table_count; i++)
		if (decision->tables[i].intent == intent && decision->tables[i].prior == prior)
			return &decision->tables[i];
	return NULL;
}

unsigned calibrated_kernel(const struct decision *decision, unsigned intent, enum pc_prior prior, uint64_t bytes)
{
	const struct pc_table *table = calibrated_table(decision, intent, prior);

	return table == NULL ? 0 : pc_kernel_index(pc_kernel_find(pc_table_rule(table, bytes)->kernel));
}

void calibrated_print(const struct pc_table *table)
{
	if (table == NULL) {
		printf("\n  no table\n");
		return;
	}
	printf("\n  %s %s:", pc_intent_name(table->intent), pc_prior_name(table->prior));
	for (size_t i = 0; i < table->rule_count; i++)
		printf(" %llu [%llu %llu] %s %.2f;", (unsigned long long)table->rules[i].from,
		       (unsigned long long)table->rules[i].low, (unsigned long long)table->rules[i].high,
		       table->rules[i].kernel, table->rules[i].gain);
	printf("\n");
}
