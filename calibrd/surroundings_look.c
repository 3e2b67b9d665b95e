/* Reads what /proc and /sys say of the host at one moment; see surroundings.h. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "calibrd/clock.h"
#include "calibrd/host_files.h"
#include "calibrd/surroundings.h"
#include "calibrd/topology_parts.h"

enum {
	STAT_BYTES = 1 << 20, /* /proc/stat has some 80 bytes a CPU, and a long line of interrupts behind them */
	FILE_BYTES = 4096,
};

/* --- CPUs -------------------------------------------------------------------------------------------------------- */

/* One line "cpuN user nice system idle iowait irq softirq steal ..."; guests' time is in user and nice already. */
static bool parse_cpu(const char *line, unsigned *cpu, struct look_cpu *out)
{
	unsigned long long user, nice, system, irq = 0, softirq = 0, steal = 0;
	double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);

	if (strncmp(line, "cpu", 3) != 0 || !isdigit((unsigned char)line[3]) ||
	    sscanf(line, "cpu%u %llu %llu %llu %*u %*u %llu %llu %llu", cpu, &user, &nice, &system, &irq, &softirq,
	           &steal) < 4 ||
	    *cpu >= TOPOLOGY_SET_MAX)
		return false;
	out->busy = tick * (double)(user + nice + system + irq + softirq);
	out->stolen = tick * (double)steal;
	return true;
}

static int add_cpu(struct look *look, unsigned cpu, const struct look_cpu *times)
{
	struct look_cpu *grown;

	if (cpu >= look->cpu_count) {
		grown = reallocarray(look->cpus, cpu + 1, sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		while (look->cpu_count <= cpu)
			grown[look->cpu_count++] = (struct look_cpu){NAN, NAN};
		look->cpus = grown;
	}
	look->cpus[cpu] = *times;
	return 0;
}

static int look_at_cpus(struct look *look, const char *root)
{
	char *text = malloc(STAT_BYTES);
	int r = text != NULL ? topology_text(root, text, STAT_BYTES, "/proc/stat") : -ENOMEM;

	for (const char *line = text; r == 0 && line != NULL; line = strchr(line, '\n')) {
		struct look_cpu times;
		unsigned cpu;

		line += *line == '\n';
		if (parse_cpu(line, &cpu, &times))
			r = add_cpu(look, cpu, &times);
	}
	free(text);
	return r < 0 ? r : 0;
}

/* --- pressure, load ---------------------------------------------------------------------------------------------- */

static int look_at_pressure(struct look *look, const char *root)
{
	int r = 0;

	for (unsigned i = 0; i < PRESSURES && r >= 0; i++) {
		struct host_pressure pressure;

		r = host_pressure(&pressure, (enum pressure)i, root);
		look->some[i] = pressure.some;
		look->full[i] = pressure.full;
	}
	return r;
}

/* --- quotas ------------------------------------------------------------------------------------------------------ */

/* A hierarchy of cgroups that can bound CPU time. */
struct hierarchy {
	const char *mounted;
	bool unified;
	char group[LOOK_GROUP]; /* "" for its root */
};

/* True for a line of /proc/self/cgroup, "ID:CONTROLLERS:PATH", whose controllers are `unified` (none are named) or hold
 * cpu. */
static bool take_group(const char *line, bool unified, char group[LOOK_GROUP])
{
	const char *controllers = strchr(line, ':'), *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
	char list[128];

	if (path == NULL || path - controllers >= (int)sizeof(list) - 1)
		return false;
	snprintf(list, sizeof(list), ",%.*s,", (int)(path - controllers - 1), controllers + 1);
	if (unified ? strcmp(list, ",,") != 0 : strstr(list, ",cpu,") == NULL)
		return false;
	snprintf(group, LOOK_GROUP, "%.*s", (int)strcspn(path + 1, "\n"), path + 1);
	if (strcmp(group, "/") == 0)
		group[0] = '\0';
	return true;
}

static bool find_group(const char *lines, bool unified, char group[LOOK_GROUP])
{
	for (const char *line = lines; line != NULL; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (take_group(line, unified, group))
			return true;
	}
	return false;
}

/* Where version 1 has the cpu controller, version 2 does not. 0, 1 there is neither, -errno. */
static int find_hierarchy(struct hierarchy *out, const char *root)
{
	char lines[FILE_BYTES];
	int r = topology_text(root, lines, sizeof(lines), "/proc/self/cgroup");

	if (r != 0)
		return r;
	*out = (struct hierarchy){.mounted = "/sys/fs/cgroup/cpu"};
	if (find_group(lines, false, out->group))
		return 0;
	*out = (struct hierarchy){.mounted = "/sys/fs/cgroup", .unified = true};
	return find_group(lines, true, out->group) ? 0 : 1;
}

static double parse_throttled(const char *text, bool unified)
{
	const char *name = unified ? "throttled_usec " : "throttled_time ", *at = strstr(text, name);
	unsigned long long value;

	return at != NULL && sscanf(at + strlen(name), "%llu", &value) == 1 ? (double)value / (unified ? 1e6 : 1e9)
	                                                                    : NAN;
}

/* CPUs that a level allows; INFINITY: as many as there are. 0, 1 not told, -errno. */
static int read_quota(double *cpus, const struct hierarchy *where, const char *group, const char *root)
{
	char text[FILE_BYTES], period[64] = "";
	double quota, of;
	int r;

	if (where->unified) {
		r = topology_text(root, text, sizeof(text), "%s%s/cpu.max", where->mounted, group);
	} else {
		r = topology_text(root, text, sizeof(text), "%s%s/cpu.cfs_quota_us", where->mounted, group);
		if (r == 0)
			r = topology_text(root, period, sizeof(period), "%s%s/cpu.cfs_period_us", where->mounted,
			                  group);
		snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s", period);
	}
	if (r != 0)
		return r;
	*cpus = INFINITY; /* "max 100000", "-1 100000" */
	if (sscanf(text, "%lf %lf", &quota, &of) == 2 && quota > 0 && of > 0)
		*cpus = quota / of;
	return 0;
}

static int look_at_level(struct look *look, const struct hierarchy *where, const char *group, size_t level,
                         const char *root)
{
	char text[FILE_BYTES];
	double quota;
	int r = topology_text(root, text, sizeof(text), "%s%s/cpu.stat", where->mounted, group);

	if (r == 0)
		look->throttled[level] = parse_throttled(text, where->unified);
	if (r >= 0)
		r = read_quota(&quota, where, group, root);
	if (r == 0)
		look->quota = fmin(look->quota, quota); /* of a number and NaN the number */
	return r;
}

/* From the own group up: a container may be bounded from outside of what it sees, and then this is unknown. */
static int look_at_quotas(struct look *look, const char *root)
{
	struct hierarchy where;
	char group[LOOK_GROUP], *last = group;
	int r = find_hierarchy(&where, root);

	for (size_t i = 0; i < LOOK_LEVELS; i++)
		look->throttled[i] = NAN;
	look->quota = NAN;
	if (r != 0)
		return r;
	memcpy(look->group, where.group, sizeof(look->group));
	memcpy(group, where.group, sizeof(group));
	for (size_t level = 0; level < LOOK_LEVELS && last != NULL && r >= 0; level++) {
		r = look_at_level(look, &where, group, level, root);
		last = strrchr(group, '/');
		if (last != NULL)
			*last = '\0';
	}
	return r;
}

/* --- clock ------------------------------------------------------------------------------------------------------- */

/* What a file of one digit says, -1 where it is not there. */
static int read_switch(const char *root, const char *path)
{
	char text[16];

	if (topology_text(root, text, sizeof(text), "%s", path) != 0 || (text[0] != '0' && text[0] != '1'))
		return -1;
	return text[0] - '0';
}

static int find_turbo(const char *root)
{
	int no_turbo = read_switch(root, "/sys/devices/system/cpu/intel_pstate/no_turbo");

	return no_turbo >= 0 ? !no_turbo : read_switch(root, "/sys/devices/system/cpu/cpufreq/boost");
}

/* --- life -------------------------------------------------------------------------------------------------------- */

static double seconds_of(const struct timeval *time)
{
	return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

static double own_seconds(void)
{
	struct rusage self, children;

	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	return seconds_of(&self.ru_utime) + seconds_of(&self.ru_stime) + seconds_of(&children.ru_utime) +
	       seconds_of(&children.ru_stime);
}

int look_new(struct look **out, const char *root)
{
	struct look *look = calloc(1, sizeof(*look));
	int r;

	if (look == NULL)
		return -ENOMEM;
	look->at = clock_seconds(CLOCK_MONOTONIC);
	look->own = own_seconds();
	r = look_at_cpus(look, root);
	if (r >= 0)
		r = look_at_pressure(look, root);
	if (r >= 0)
		r = host_load(&look->load, root);
	if (r >= 0)
		r = look_at_quotas(look, root);
	look->turbo = find_turbo(root);
	look->mains = host_mains(root);
	if (r < 0) {
		look_free(look);
		return r;
	}
	*out = look;
	return 0;
}

struct look *look_free(struct look *look)
{
	if (look != NULL)
		free(look->cpus);
	free(look);
	return NULL;
}
