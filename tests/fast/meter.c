/*
 * calibrd-fast: calibrd itself, but for its meter, which is the simulated one, its trials, which all pass, and the host
 * around it, which is quiet. A whole calibration takes a fraction of a second, so that tests can go through many.
 * Linked with --wrap of what is below.
 */
#include "calibrd/surroundings.h"
#include "calibrd/trial.h"
#include "tests/sim/hosts.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

int __wrap_meter_real_new(struct meter **out, const struct crew *crew, struct pc_why *why);
int __wrap_trial_run(const struct pc_kernel *kernel, unsigned deadline_ms);
int __wrap_surroundings_find(struct surroundings *out, const struct look *before, const struct look *after, int cpu,
                             const char *root);

int __wrap_trial_run(const struct pc_kernel *kernel, unsigned deadline_ms)
{
	(void)kernel;
	(void)deadline_ms;
	return TRIAL_PASSED;
}

/* Kernels that the host of the tables lacks are as good as libc there. */
static void add_kernels(struct sim_host *host)
{
	for (unsigned k = 1; k < pc_kernel_count; k++)
		if ((host->kernels >> k & 1) == 0)
			host->kernel[k] = host->kernel[0];
	host->kernels = (1u << pc_kernel_count) - 1;
}

/* Other noise each time: two calibrations never measure the same. */
int __wrap_meter_real_new(struct meter **out, const struct crew *crew, struct pc_why *why)
{
	static struct sim_host host;
	struct timespec now;

	(void)crew;
	host_zen3(&host);
	host.cpus = 0; /* any number */
	add_kernels(&host);
	clock_gettime(CLOCK_MONOTONIC, &now);
	int r = meter_sim_new(out, &host, &sim_noise_server, (uint64_t)now.tv_nsec * 1000003 + (uint64_t)getpid());
	return r < 0 ? pc_why(why, r, "no memory for a simulated meter") : 0;
}

/* In so short a time everything but the calibration itself looks busy. */
int __wrap_surroundings_find(struct surroundings *out, const struct look *before, const struct look *after, int cpu,
                             const char *root)
{
	(void)before;
	(void)after;
	(void)cpu;
	(void)root;
	*out = (struct surroundings){.seconds = 1, .quota = NAN, .turbo = -1, .mains = -1};
	return 0;
}
