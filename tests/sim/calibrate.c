/* Calibrates simulated hosts; see calibrate.h. */
#include "tests/sim/calibrate.h"

#include <stdio.h>
#include <stdlib.h>

#include "pageclear/policy.h"

const double calibrate_scrub_weight = 0.1;

int calibrate_decide(struct calibrated *calibration, const struct sim_host *host, const struct pc_document *old)
{
	struct decide_input input = {.data = &calibration->data,
	                             .kernels = host->kernels,
	                             .scrub_weight = calibrate_scrub_weight,
	                             .old = old};

	decision_free(&calibration->decision);
	return decide(&input, &calibration->decision);
}

int calibrate_together(struct decision *out, const struct sim_host *host, const struct dataset *const *parts,
                       size_t count, const struct pc_document *old)
{
	struct dataset pool;
	int r = pool_join(&pool, parts, count);

	if (r == 0)
		r = decide(&(struct decide_input){.data = &pool,
		                                  .calibrations = (unsigned)count,
		                                  .kernels = host->kernels,
		                                  .scrub_weight = calibrate_scrub_weight,
		                                  .old = old},
		           out);
	dataset_clear(&pool);
	return r;
}

/* Bits of the kernels that a policy names. */
static uint32_t named(const struct pc_document *old)
{
	uint32_t kernels = 0;

	for (size_t t = 0; old != NULL && t < old->table_count; t++)
		for (size_t i = 0; i < old->tables[t].rule_count; i++) {
			const struct pc_kernel *kernel = pc_kernel_find(old->tables[t].rules[i].kernel);

			if (kernel != NULL)
				kernels |= 1u << pc_kernel_index(kernel);
		}
	return kernels;
}

static struct bench_config config_of(const struct calibrate_setting *setting)
{
	const struct sim_host *host = setting->host;

	return (struct bench_config){
		.effort = setting->effort,
		.kernels = host->kernels,
		.keep = named(setting->old),
		.memory_bytes = setting->memory_bytes > 0 ? setting->memory_bytes : (uint64_t)2 << 30,
		.threads = host->crowds > 0 ? host->cpus : 0,
		.scrub_weight = calibrate_scrub_weight,
		.l1_bytes = host->misreports ? host->reported_l1_bytes : host->l1_bytes,
		.l2_bytes = host->misreports ? host->reported_l2_bytes : host->l2_bytes,
		.llc_bytes = host->misreports ? host->reported_llc_bytes : host->llc_bytes,
		.seed = setting->seed,
	};
}

int calibrate_with(struct calibrated *out, const struct calibrate_setting *setting)
{
	struct bench_config config = config_of(setting);
	struct meter *meter;
	int r = meter_sim_new(&meter, setting->host, setting->noise, setting->seed);

	if (r < 0)
		return r;
	*out = (struct calibrated){.seconds = 0};
	r = bench_run(meter, &config, &out->data, NULL);
	out->seconds = (double)meter->ops->now_ns(meter) / 1e9;
	out->mapped_bytes = meter_sim_mapped(meter);
	if (r == 0)
		r = calibrate_decide(out, setting->host, setting->old);
	if (r < 0)
		calibration_free(out);
	meter_free(meter);
	return r;
}

int calibrate(struct calibrated *out, const struct sim_host *host, const struct sim_noise *noise, enum effort effort,
              uint64_t seed)
{
	return calibrate_with(
		out, &(struct calibrate_setting){.host = host, .noise = noise, .effort = effort, .seed = seed});
}

void calibration_free(struct calibrated *calibration)
{
	dataset_clear(&calibration->data);
	decision_free(&calibration->decision);
}

unsigned calibrate_seeds(unsigned usual)
{
	const char *text = getenv("PAGECLEAR_SEEDS");
	char *end;
	unsigned long seeds;

	if (text == NULL || *text == '\0')
		return usual;
	seeds = strtoul(text, &end, 10);
	if (*end != '\0' || seeds < 1 || seeds > 100000) {
		fprintf(stderr, "PAGECLEAR_SEEDS is no number from 1 to 100000: %s\n", text);
		exit(2);
	}
	return (unsigned)seeds;
}

unsigned calibrate_misses(unsigned seeds)
{
	return seeds >= 100 ? seeds / 100 : 1;
}

const struct pc_table *calibrated_threads_table(const struct decision *decision, unsigned intent, enum pc_prior prior,
                                                unsigned threads)
{
	for (size_t i = 0; i < decision->table_count; i++)
		if (decision->tables[i].intent == intent && decision->tables[i].prior == prior &&
		    decision->tables[i].threads == threads)
			return &decision->tables[i];
	return NULL;
}

const struct pc_table *calibrated_table(const struct decision *decision, unsigned intent, enum pc_prior prior)
{
	return calibrated_threads_table(decision, intent, prior, 1);
}

unsigned calibrated_row(const struct pc_table *table, uint64_t bytes)
{
	return table == NULL ? 0 : pc_kernel_index(pc_kernel_find(pc_table_rule(table, bytes)->kernel));
}

unsigned calibrated_kernel(const struct decision *decision, unsigned intent, enum pc_prior prior, uint64_t bytes)
{
	return calibrated_row(calibrated_table(decision, intent, prior), bytes);
}

void calibrated_print(const struct pc_table *table)
{
	if (table == NULL) {
		printf("\n  no table\n");
		return;
	}
	printf("\n  %s %s x%u:", pc_intent_name(table->intent), pc_prior_name(table->prior), table->threads);
	for (size_t i = 0; i < table->rule_count; i++)
		printf(" %llu [%llu %llu] %s/%llu %.2f;", (unsigned long long)table->rules[i].from,
		       (unsigned long long)table->rules[i].low, (unsigned long long)table->rules[i].high,
		       table->rules[i].kernel, (unsigned long long)table->rules[i].chunk, table->rules[i].gain);
	printf("\n");
}
