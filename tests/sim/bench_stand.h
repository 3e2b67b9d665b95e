/*
 * Whole runs on simulated hosts, listened to. Shared by the tests of calibrd/bench.h.
 */
#ifndef TESTS_BENCH_STAND_H
#define TESTS_BENCH_STAND_H

#include <signal.h>
#include <string.h>

#include "calibrd/bench.h"
#include "tests/sim/hosts.h"
#include "tests/unit/harness.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

/* Listens to a run, and may end it. */
struct listener {
	size_t samples, tainted, probes[PC_PRIORS], progress;
	size_t knees;
	double knee[16];
	double slow[PC_PRIORS]; /* sums of the probes' looks */
	double share;
	bool backwards;
	size_t stop_after; /* samples; 0: never */
	volatile sig_atomic_t stop;
	size_t after_stop;
	int sample_error, knee_error, probe_error, progress_error;
};

static inline int on_sample(void *context, const struct series_key *key, const struct round_value *value, bool tainted)
{
	struct listener *listener = context;

	(void)key;
	(void)value;
	listener->samples++;
	listener->tainted += tainted;
	listener->after_stop += listener->stop != 0;
	if (listener->samples == listener->stop_after)
		listener->stop = 1;
	return listener->sample_error;
}

static inline int on_knee(void *context, unsigned epoch, uint64_t bytes)
{
	struct listener *listener = context;

	CU_ASSERT_EQUAL(epoch, listener->knees);
	listener->knee[listener->knees++] = (double)bytes;
	return listener->knee_error;
}

static inline int on_probe(void *context, const struct bench_probe *probe)
{
	struct listener *listener = context;

	CU_ASSERT(probe->bytes >= 16 * KIB && probe->bytes <= 16 * MIB);
	CU_ASSERT(probe->whole_ns > 0);
	listener->probes[probe->prior]++;
	for (int i = 0; i < PC_PROBE_LOOKS; i++)
		listener->slow[probe->prior] += probe->looks[i] / PC_PROBE_LOOKS;
	return listener->probe_error;
}

static inline int on_progress(void *context, unsigned epoch, unsigned epochs, double share)
{
	struct listener *listener = context;

	CU_ASSERT(epoch < epochs && share >= 0 && share <= 1);
	listener->backwards |= share < listener->share;
	listener->share = share;
	listener->progress++;
	return listener->progress_error;
}

struct outcome {
	int r;
	double seconds;
	struct dataset data;
	struct listener listener;
};

struct setting {
	const struct sim_host *host;
	const struct sim_noise *noise;
	enum effort effort;
	uint64_t seed, memory_bytes;
	int meter_error;
};

static inline struct outcome *run(const struct setting *setting, struct listener listener)
{
	static struct outcome outcome;
	struct bench_config config = {
		.effort = setting->effort,
		.kernels = setting->host->kernels,
		.memory_bytes = setting->memory_bytes > 0 ? setting->memory_bytes : 2048 * MIB,
		.l1_bytes = setting->host->l1_bytes,
		.l2_bytes = setting->host->l2_bytes,
		.llc_bytes = setting->host->llc_bytes,
		.threads = setting->host->crowds > 0 ? setting->host->cpus : 0,
		.scrub_weight = 0.1,
		.seed = setting->seed,
		.stop = &outcome.listener.stop,
	};
	struct bench_sink sink = {.context = &outcome.listener,
	                          .sample = on_sample,
	                          .knee = on_knee,
	                          .probe = on_probe,
	                          .progress = on_progress};
	struct meter *meter;

	outcome = (struct outcome){.listener = listener};
	CU_ASSERT_EQUAL_FATAL(meter_sim_new(&meter, setting->host, setting->noise, setting->seed), 0);
	if (setting->meter_error != 0)
		meter_sim_fail(meter, 500, setting->meter_error);
	outcome.r = bench_run(meter, &config, &outcome.data, &sink);
	outcome.seconds = (double)meter->ops->now_ns(meter) / 1e9;
	meter_free(meter);
	return &outcome;
}

static struct sim_host zen3;

static inline struct setting quick(void)
{
	host_zen3(&zen3);
	return (struct setting){.host = &zen3, .noise = &sim_noise_guest, .effort = EFFORT_QUICK, .seed = 1};
}

#endif
