/* The child that calibrates; see worker_parts.h. */
#include <sched.h>
#include <string.h>

#include "calibrd/bench.h"
#include "calibrd/crew.h"
#include "calibrd/log.h"
#include "calibrd/worker_parts.h"

static int say_sample(void *context, const struct series_key *key, const struct round_value *value, bool tainted)
{
	return worker_say(context, (struct record){.kind = RECORD_SAMPLE, .u.sample = {*key, *value, tainted}});
}

static int say_knee(void *context, unsigned epoch, uint64_t bytes)
{
	return worker_say(context, (struct record){.kind = RECORD_KNEE, .u.knee = {bytes, epoch}});
}

static int say_probe(void *context, const struct bench_probe *probe)
{
	return worker_say(context, (struct record){.kind = RECORD_PROBE, .u.probe = *probe});
}

/* The parent cannot do anything about it; whoever reads the log may. */
static int say_crew_lost(void *context, int error)
{
	(void)context;
	log_warning("several threads cannot be measured: %s", strerror(-error));
	return 0;
}

/* The CPUs that may clear together, at most so many (0: all), and a place among them: whoever is moved before it is
 * pinned would measure beside another cache than the rest. */
static int find_crew(struct crew *crew, uint32_t most)
{
	int cpu, r = crew_find(crew, NULL);
	size_t place = 0;

	if (r < 0)
		return r;
	cpu = sched_getcpu();
	for (size_t i = 0; i < crew->count; i++)
		if (crew->cpus[i] == cpu)
			place = i;
	if (most > 0 && most < crew->count) {
		if (place + most > crew->count)
			place = crew->count - most;
		memmove(crew->cpus, crew->cpus + place, most * sizeof(crew->cpus[0]));
		crew->count = most;
		place = 0;
	}
	return crew_pin(crew->cpus[place]);
}

static int find_meter(struct meter **out, const struct order *order, unsigned *threads, struct pc_why *why)
{
	struct crew crew = {.count = 0};
	int r = find_crew(&crew, order->threads_most);

	if (r < 0)
		return pc_why(why, r, "cannot find CPUs to measure on: %s", strerror(-r));
	*threads = (unsigned)crew.count;
	return worker_new_meter(out, order, &crew, why);
}

static int measure(struct worker *worker, struct meter *meter, const struct bench_config *config, struct pc_why *why)
{
	const struct bench_sink sink = {worker, say_sample, say_knee, say_probe, worker_say_progress, say_crew_lost};
	struct dataset data = {0};
	int r = bench_run(meter, config, &data, &sink);

	dataset_clear(&data);
	return r < 0 ? pc_why(why, r, "measuring failed: %s", strerror(-r)) : 0;
}

int worker_calibrate(struct worker *worker, const struct order *order, struct pc_why *why)
{
	struct bench_config config = {
		.effort = order->effort,
		.keep = order->keep,
		.memory_bytes = order->memory_bytes,
		.l1_bytes = order->l1_bytes,
		.l2_bytes = order->l2_bytes,
		.llc_bytes = order->llc_bytes,
		.seed = order->seed,
		.scrub_weight = order->scrub_weight,
	};
	struct meter *meter = NULL;
	int r = worker_try_kernels(worker, order->excluded, &config.kernels, why);

	if (r == 0)
		r = find_meter(&meter, order, &config.threads, why);
	if (r == 0)
		r = measure(worker, meter, &config, why);
	worker_free_meter(worker, meter);
	return r;
}
