/* The child that verifies: calibrd's, and calibctl's. See worker.h. */
#include "calibrd/verify.h"
#include "calibrd/worker_parts.h"

static int measure(struct worker *worker, const struct order *order, const struct verify_config *config,
                   struct verify_data *out, struct pc_why *why)
{
	struct meter *meter;
	int r = worker_new_meter(&meter, order, NULL, why);

	if (r == 0)
		r = verify_measure(meter, config, out, why);
	worker_free_meter(worker, meter);
	return r;
}

int worker_verify(struct worker *worker, const struct order *order, const struct pageclear_policy *policy,
                  const struct pc_kernel *against, struct pc_why *why)
{
	struct verify_config config = {
		.effort = order->effort,
		.memory_bytes = order->memory_bytes,
		.l1_bytes = order->l1_bytes,
		.l2_bytes = order->l2_bytes,
		.knee_bytes = order->knee_bytes,
		.seed = order->seed,
		.policies = &policy,
		.policy_count = 1,
		.unhinted = true,
		.against = against,
		.progress = worker_say_progress,
		.context = worker,
	};
	struct verify_data data = {0};
	struct verify_report report;
	/* What the policy names is judged as it stands, even if the admin has excluded it since. */
	uint32_t excluded = order->excluded & ~verify_named(policy);
	int r = worker_try_kernels(worker, excluded, &config.kernels, why);

	if (r == 0)
		r = measure(worker, order, &config, &data, why);
	if (r == 0)
		r = verify_judge(&data, policy, order->tolerance, &report, why);
	verify_data_free(&data);
	return r == 0 ? worker_say_whole(worker, RECORD_REPORT, &report, sizeof(report)) : r;
}
