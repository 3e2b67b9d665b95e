/* How busy the host is, and whether that is too busy; see conditions.h. */
#include "calibrd/conditions.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "calibrd/host_files.h"
#include "calibrd/topology_parts.h"

/* --- reading ----------------------------------------------------------------------------------------------------- */

/* Even for want of memory: a fact that is wanted again in a minute may be unknown once. */
static double pressure(enum pressure which, const char *root)
{
	struct host_pressure now;

	return host_pressure(&now, which, root) == 0 ? now.some_percent : NAN;
}

static double load_per_cpu(const char *root)
{
	struct topology_set online;
	char text[4096];
	double load;

	if (host_load(&load, root) != 0 ||
	    topology_text(root, text, sizeof(text), "/sys/devices/system/cpu/online") != 0 ||
	    !topology_set_parse_list(&online, text) || topology_set_count(&online) == 0)
		return NAN;
	return load / topology_set_count(&online);
}

void conditions_read(struct conditions *out, const char *root)
{
	*out = (struct conditions){
		.cpu = pressure(PRESSURE_CPU, root),
		.memory = pressure(PRESSURE_MEMORY, root),
		.io = pressure(PRESSURE_IO, root),
		.load = NAN,
		.mains = host_mains(root),
	};
	if (isnan(out->cpu))
		out->load = load_per_cpu(root);
}

/* --- judging ----------------------------------------------------------------------------------------------------- */

/*
 * The pressure that a load stands for, in per cent. While half of the CPUs are idle hardly a task waits for one, with
 * one task a CPU some always do: a straight line between the two. Only an estimate, for kernels without PSI.
 */
static double pressure_of_load(double load)
{
	return fmin(100, fmax(0, (load - 0.5) * 200));
}

bool conditions_calm(const struct conditions *now, double most_percent, struct pc_why *why)
{
	const struct {
		double percent;
		const char *what;
	} waited[] = {{now->cpu, "a CPU"}, {now->memory, "memory"}, {now->io, "a disk"}};
	size_t worst = 0;

	/* No comparison with NaN holds. */
	for (size_t i = 1; i < sizeof(waited) / sizeof(waited[0]); i++)
		if (isnan(waited[worst].percent) || waited[i].percent > waited[worst].percent)
			worst = i;
	if (waited[worst].percent > most_percent) {
		pc_why_say(why,
		           "the host is busy: tasks waited for %s in %.1f %% of the last 10 seconds, more than %g %%",
		           waited[worst].what, waited[worst].percent, most_percent);
		return false;
	}
	if (isnan(now->cpu) && pressure_of_load(now->load) > most_percent) {
		pc_why_say(why, "the host is busy: a load of %.2f per CPU over the last minute, more than %.2f",
		           now->load, 0.5 + most_percent / 200);
		return false;
	}
	return true;
}

bool conditions_fed(const struct conditions *now, struct pc_why *why)
{
	if (now->mains != 0)
		return true;
	pc_why_say(why, "the host runs on battery");
	return false;
}
