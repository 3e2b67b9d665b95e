/*
 * Where bench measures: which kernels take part and why others don't, the meter, and how far it is.
 */
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "calibctl/bench.h"
#include "calibctl/output.h"
#include "calibctl/tried.h"
#include "calibrd/clock.h"
#include "kernels/cpu.h"

/* --- kernels ----------------------------------------------------------------------------------------------------- */

static void say_lacking(const struct pc_kernel *kernel, char out[BENCH_OBSTACLE])
{
	char names[PC_CPU_NAMES];

	pc_cpu_feature_names(kernel->needs & ~pc_cpu_features(), names, sizeof(names));
	snprintf(out, BENCH_OBSTACLE, "cannot run here: needs %s", names);
}

static void say_faulted(enum trial outcome, char out[BENCH_OBSTACLE])
{
	static const char *const words[] = {[TRIAL_FAULTED] = "killed by a signal",
	                                    [TRIAL_WRONG] = "cleared wrongly",
	                                    [TRIAL_HUNG] = "did not end"};

	snprintf(out, BENCH_OBSTACLE, "faulted on this host: %s", words[outcome]);
}

static int try_kernels(struct bench_stand *stand, struct pc_why *why)
{
	uint32_t asked = stand->request.kernels != 0 ? stand->request.kernels : UINT32_MAX;
	struct tried tried;
	int r = tried_kernels(&tried, asked, why);

	if (r < 0)
		return r;
	for (unsigned row = 0; row < pc_kernel_count; row++)
		if ((tried.lacking >> row & 1) != 0)
			say_lacking(&pc_kernels[row], stand->obstacles[row]);
		else if ((asked & ~tried.passed) >> row & 1)
			say_faulted(tried.outcome[row], stand->obstacles[row]);
	stand->kernels = tried.passed;
	return 0;
}

size_t bench_stand_shuffle(struct bench_stand *stand, uint32_t kernels, unsigned order[PC_KERNEL_MAX])
{
	size_t count = 0;

	for (unsigned row = 0; row < pc_kernel_count; row++)
		if ((kernels >> row & 1) != 0)
			order[count++] = row;
	random_shuffle(&stand->random, order, count);
	return count;
}

/* --- life -------------------------------------------------------------------------------------------------------- */

int bench_stand_open(struct bench_stand *stand, struct pc_why *why)
{
	const struct topology_source here = {0};
	int r = topology_detect(&stand->topology, &here, why);

	if (r == 0)
		r = try_kernels(stand, why);
	if (r == 0)
		r = meter_real_new(&stand->meter, NULL, why);
	if (r < 0)
		return r;
	stand->random.state = clock_ns(CLOCK_REALTIME);
	return 0;
}

void bench_stand_close(struct bench_stand *stand)
{
	stand->meter = meter_free(stand->meter);
	stand->topology = topology_free(stand->topology);
}

bool bench_stand_stopped(const struct bench_stand *stand)
{
	return stand->stop != NULL && *stand->stop != 0;
}

/* --- what people see --------------------------------------------------------------------------------------------- */

/* A line that rewrites itself on a terminal and is gone at the end, a line a run elsewhere. */
void bench_stand_progress(const struct bench_stand *stand, unsigned run, double share)
{
	static unsigned told;

	if (stand->quiet)
		return;
	if (isatty(STDERR_FILENO)) {
		if (share < 1)
			fprintf(stderr, "\rbench: run %u of %u, %.0f %% ", run + 1, stand->request.runs, 100 * share);
		else
			fputs("\r\033[K", stderr);
		fflush(stderr);
	} else if (run + 1 > told && share < 1) {
		fprintf(stderr, "bench: run %u of %u\n", run + 1, stand->request.runs);
		told = run + 1;
	}
}

void bench_warn(const struct bench_stand *stand, const char *text)
{
	if (stand->request.format == BENCH_CSV)
		fprintf(stderr, "calibctl bench: %s\n", text);
	else
		output_warning(text);
}

void bench_warn_stopped(const struct bench_stand *stand)
{
	if (bench_stand_stopped(stand))
		bench_warn(stand, "stopped early: fewer runs than asked for");
}

void bench_print_head(const struct bench_stand *stand)
{
	const struct topology *topology = stand->topology;

	output_field("host", "%s; %s; topology %s; measured on CPU %d", topology->name,
	             topology->core_count > 0 ? topology->cores[0].signature : "unknown", topology->id, sched_getcpu());
	for (unsigned row = 0; row < pc_kernel_count; row++)
		if (stand->obstacles[row][0] != '\0')
			output_field("left out", "%s: %s", pc_kernels[row].name, stand->obstacles[row]);
	bench_warn_stopped(stand);
}

static json_t *json_obstacles(const struct bench_stand *stand)
{
	json_t *list = json_array();

	for (unsigned row = 0; row < pc_kernel_count; row++)
		if (stand->obstacles[row][0] != '\0')
			json_array_append_new(list, json_pack("{s:s, s:s}", "kernel", pc_kernels[row].name, "reason",
			                                      stand->obstacles[row]));
	return list;
}

json_t *bench_json_head(const struct bench_stand *stand, unsigned runs)
{
	const struct topology *topology = stand->topology;

	return json_pack("{s:s, s:{s:o, s:s, s:i}, s:i, s:b, s:o}", "bench", bench_kind_name(stand->request.kind),
	                 "host", "name", output_json_text(topology->name), "topology", topology->id, "cpu",
	                 sched_getcpu(), "runs", (int)runs, "stopped", bench_stand_stopped(stand), "not_measured",
	                 json_obstacles(stand));
}

int bench_json_print(json_t *json)
{
	return output_json(json, DONE) == DONE ? 0 : 1;
}
