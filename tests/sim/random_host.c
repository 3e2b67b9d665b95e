/* Seeded hosts; see random_host.h. */
#include "tests/sim/random_host.h"

#include <math.h>
#include <stdio.h>

#include "calibrd/random.h"
#include "tests/sim/hosts.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

enum { CURVE_POINTS = 11 };

static double between(struct random *random, double low, double high)
{
	return low + (high - low) * random_unit(random);
}

static double log_between(struct random *random, double low, double high)
{
	return low * pow(high / low, random_unit(random));
}

static bool chance(struct random *random, double p)
{
	return random_unit(random) < p;
}

static double normal(struct random *random)
{
	double radius = sqrt(-2 * log(random_unit(random)));

	return radius * cos(2 * M_PI * random_unit(random));
}

/* --- speeds ------------------------------------------------------------------------------------------------------ */

/* What all kernels of a host have in common: GB/s of ordinary stores from each level, and round the caches. */
struct levels {
	double l1, l2, llc, memory, round_cached, round_flushed;
	uint64_t start_bytes; /* what starting a kernel that goes round the caches costs, as bytes */
};

static void random_levels(struct levels *out, struct random *random)
{
	out->memory = log_between(random, 5, 20);
	out->llc = out->memory * between(random, 1.2, 4);
	out->l2 = out->llc * between(random, 1.1, 2);
	out->l1 = out->l2 * between(random, 1.1, 2.5);
	out->round_flushed = out->memory * log_between(random, 0.6, 3.5);
	out->round_cached = out->round_flushed * between(random, 0.2, 1);
	out->start_bytes = (uint64_t)log_between(random, 256, 8192);
}

/* A line in log-log from one level to the next over an octave on either side of the cache's size. */
static double step(double bytes, double cache, double inside, double outside)
{
	double part = fmin(1, fmax(0, (log2(bytes / cache) + 1) / 2));

	return inside * pow(outside / inside, part);
}

static double level_speed(const struct sim_host *host, const struct levels *levels, unsigned kernel,
                          enum pc_prior prior, double bytes)
{
	bool round = pc_kernels[kernel].family == PC_NONTEMPORAL || pc_kernels[kernel].family == PC_LINE;
	double speed;

	if (round) {
		speed = prior == PC_CACHED
		                ? step(bytes, (double)host->llc_bytes, levels->round_cached, levels->round_flushed)
		                : levels->round_flushed;
		return speed * bytes / (bytes + (double)levels->start_bytes);
	}
	if (prior == PC_FLUSHED) /* lines are fetched first, wherever they would fit */
		return step(bytes, (double)host->llc_bytes, levels->memory, levels->memory * 0.9) * bytes /
		       (bytes + 128);
	speed = step(bytes, (double)host->l1_bytes, levels->l1, levels->l2);
	speed = fmin(speed, step(bytes, (double)host->l2_bytes, levels->l2, levels->llc));
	speed = fmin(speed, step(bytes, (double)host->llc_bytes, levels->llc, levels->memory));
	return speed * bytes / (bytes + 64);
}

/* From 256 B to 256 MiB, two octaves apart: the level's speed, and from there a walk of the kernel's own that may stay
 * where it is for a while (a plateau) or take a step (not monotone). */
static void random_curve(struct sim_curve *curve, struct random *random, const struct sim_host *host,
                         const struct levels *levels, unsigned kernel, enum pc_prior prior)
{
	double own = 0.15 * normal(random), restless = between(random, 0, 0.2);

	curve->count = 0;
	for (int i = 0; i < CURVE_POINTS; i++) {
		double bytes = exp2(8 + 2 * i);

		if (!chance(random, 0.4))
			own = 0.7 * own + restless * normal(random);
		sim_point(curve, (uint64_t)bytes, level_speed(host, levels, kernel, prior, bytes) * exp(own));
	}
}

/* A tie to the last digit: another name for the same speed. */
static bool random_tie(struct sim_host *host, struct random *random, unsigned kernel)
{
	unsigned like = (unsigned)random_below(random, kernel + 1);

	if (like == kernel || (host->kernels >> like & 1) == 0 || !chance(random, 0.25))
		return false;
	host->kernel[kernel] = host->kernel[like];
	return true;
}

/* --- one kernel -------------------------------------------------------------------------------------------------- */

static void random_displacement(struct sim_host *host, struct random *random, unsigned kernel)
{
	static const double lines[] = {512, 8192, 65536};
	bool round = pc_kernels[kernel].family == PC_NONTEMPORAL || pc_kernels[kernel].family == PC_LINE;

	for (unsigned v = 0; v < SIM_VICTIMS; v++) {
		host->kernel[kernel].displaces[v].bytes = v == 0 ? 32 * KIB : MIB;
		host->kernel[kernel].displaces[v].ns = lines[v] * between(random, 0, round ? 3 : 10);
	}
}

static void random_kernel(struct sim_host *host, struct random *random, const struct levels *levels, unsigned kernel)
{
	if (!random_tie(host, random, kernel)) {
		for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++)
			random_curve(&host->kernel[kernel].gb_per_s[prior], random, host, levels, kernel, prior);
		host->kernel[kernel].single_ns = between(random, 0, 200);
		random_displacement(host, random, kernel);
	}
	host->kernels |= 1u << kernel;
}

/* Ordinary stores are fast as long as the others leave room in the cache and on the bus; those round the caches by
 * another factor: that is what the tables for several threads are for. */
static void random_crowd(struct sim_host *host, struct random *random)
{
	struct sim_crowd *crowd = sim_crowd(host, host->cpus);
	double factor[2] = {log_between(random, 0.1, 1), log_between(random, 0.1, 1)};

	for (unsigned k = 0; k < pc_kernel_count; k++) {
		bool round = pc_kernels[k].family == PC_NONTEMPORAL || pc_kernels[k].family == PC_LINE;

		for (enum pc_prior prior = PC_CACHED; (host->kernels >> k & 1) != 0 && prior <= PC_FLUSHED; prior++) {
			const struct sim_curve *alone = &host->kernel[k].gb_per_s[prior];

			for (size_t i = 0; i < alone->count; i++) {
				double private =
					step((double)alone->at[i].bytes, (double)host->l2_bytes, 1, factor[round]);

				sim_point(&crowd->gb_per_s[k][prior], alone->at[i].bytes, alone->at[i].value * private);
			}
		}
	}
	for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++)
		crowd->read_gb_per_s[prior] = host->read_gb_per_s[prior] * factor[0];
}

/* --- the host ---------------------------------------------------------------------------------------------------- */

static void random_caches(struct sim_host *host, struct random *random)
{
	static const uint64_t l1[] = {32 * KIB, 48 * KIB, 64 * KIB};
	static const uint64_t wrong[] = {0, 16 * KIB, 256 * KIB, 8 * MIB, (uint64_t)1 << 40};

	host->l1_bytes = l1[random_below(random, 3)];
	host->l2_bytes = (256 * KIB) << random_below(random, 4);
	host->llc_bytes = (uint64_t)log_between(random, 1, 256) * MIB;
	if (host->llc_bytes < 2 * host->l2_bytes)
		host->l2_bytes = host->llc_bytes / 2;
	host->misreports = chance(random, 0.4);
	host->reported_l1_bytes = chance(random, 0.5) ? host->l1_bytes : wrong[random_below(random, 5)];
	host->reported_l2_bytes = chance(random, 0.5) ? host->l2_bytes : wrong[random_below(random, 5)];
	host->reported_llc_bytes = chance(random, 0.5) ? host->llc_bytes : wrong[random_below(random, 5)];
	host_latency(host, host->l2_bytes, host->llc_bytes, 4, between(random, 9, 25), between(random, 60, 200));
}

/* Within 1-20 %, between epochs up to 10 %, and what else a guest meets. */
static void random_noise(struct sim_noise *noise, struct random *random)
{
	*noise = (struct sim_noise){
		.within = log_between(random, 0.01, 0.2),
		.round = between(random, 0, 0.1),
		.victim = log_between(random, 0.005, 0.05),
		.between = chance(random, 0.2) ? 0 : between(random, 0, 0.1),
		.crowd = between(random, 0, 0.5),
		.drift = between(random, 0, 0.1),
		.spikes = chance(random, 0.5) ? 0 : between(random, 0, 0.01),
		.steal = chance(random, 0.5) ? 0 : between(random, 0, 0.05),
		.switches = between(random, 0, 0.02),
		.knee = chance(random, 0.5) ? 0 : between(random, 0, 0.4),
	};
}

void random_host(struct random_host *out, uint64_t number)
{
	static const unsigned cpus[] = {1, 8, 128};
	struct random random = {number * 0x632be59bd9b4e019u};
	struct sim_host *host = &out->host;
	struct levels levels;
	unsigned kernels;

	random_next(&random);
	*out = (struct random_host){.number = number};
	host->name = "random";
	random_caches(host, &random);
	random_levels(&levels, &random);
	host->read_gb_per_s[PC_FLUSHED] = levels.memory * between(&random, 0.8, 1.5);
	host->read_gb_per_s[PC_CACHED] = host->read_gb_per_s[PC_FLUSHED] * between(&random, 1.2, 4);
	host->load_ns[PC_CACHED] = 12;
	host->load_ns[PC_FLUSHED] = 110;
	host->cpus = cpus[random_below(&random, 3)];
	host->slower = chance(&random, 0.1) ? log_between(&random, 3, 20) : 1;
	kernels = 1 + (unsigned)random_below(&random, pc_kernel_count);
	for (unsigned k = 0; k < pc_kernel_count; k++)
		if (k == 0 || random_below(&random, pc_kernel_count - 1) < kernels - 1)
			random_kernel(host, &random, &levels, k);
	if (host->cpus > 1)
		random_crowd(host, &random);
	random_noise(&out->noise, &random);
	out->memory_bytes = chance(&random, 0.15) ? (uint64_t)log_between(&random, 1, 64) * MIB
	                                          : (uint64_t)log_between(&random, 1, 64) << 30;
}

/* --- print ------------------------------------------------------------------------------------------------------- */

static void print_curve(const char *what, const struct sim_curve *curve)
{
	printf(" %s", what);
	for (size_t i = 0; i < curve->count; i++)
		printf(" %.3g", curve->at[i].value);
}

void random_host_print(const struct random_host *random_host)
{
	const struct sim_host *host = &random_host->host;
	const struct sim_noise *noise = &random_host->noise;

	printf("\n  host %llu: caches %llu %llu %llu KiB", (unsigned long long)random_host->number,
	       (unsigned long long)(host->l1_bytes / KIB), (unsigned long long)(host->l2_bytes / KIB),
	       (unsigned long long)(host->llc_bytes / KIB));
	if (host->misreports)
		printf(" (said to be %llu %llu %llu)", (unsigned long long)(host->reported_l1_bytes / KIB),
		       (unsigned long long)(host->reported_l2_bytes / KIB),
		       (unsigned long long)(host->reported_llc_bytes / KIB));
	printf(", %u CPUs, %.1f times slower, %llu MiB\n", host->cpus, host->slower,
	       (unsigned long long)(random_host->memory_bytes / MIB));
	printf("  noise: within %.3f round %.3f victim %.3f between %.3f crowd %.2f drift %.3f spikes %.4f steal %.3f "
	       "switches %.3f knee %.2f\n",
	       noise->within, noise->round, noise->victim, noise->between, noise->crowd, noise->drift, noise->spikes,
	       noise->steal, noise->switches, noise->knee);
	printf("  GB/s at 256 B, 1 KiB, 4 KiB ... 256 MiB:\n");
	for (unsigned k = 0; k < pc_kernel_count; k++) {
		if ((host->kernels >> k & 1) == 0)
			continue;
		printf("  %-9s", pc_kernels[k].name);
		print_curve("cached", &host->kernel[k].gb_per_s[PC_CACHED]);
		print_curve("flushed", &host->kernel[k].gb_per_s[PC_FLUSHED]);
		printf("\n");
	}
}
