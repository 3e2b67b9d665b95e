/* What happened between two looks at the host, and its text; see surroundings.h. */
#include "calibrd/surroundings.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "calibrd/topology_parts.h"

#define CPU "/sys/devices/system/cpu/cpu%d"

enum { INDICES = 8 /* caches of a CPU in sysfs */ };

/* --- whose neighbour a CPU is ------------------------------------------------------------------------------------ */

/* 0, 1 unknown (an empty set), -errno. */
static int read_set(struct topology_set *set, const char *root, int cpu, const char *file)
{
	char text[4096];
	int r = topology_text(root, text, sizeof(text), CPU "/%s", cpu, file);

	if (r == 0 && topology_set_parse_list(set, text) && topology_set_has(set, (unsigned)cpu))
		return 0;
	*set = (struct topology_set){0};
	return r < 0 ? r : 1;
}

/* The CPUs of the last level of cache; instructions have none of their own there. Likewise. */
static int find_cache(struct topology_set *set, const char *root, int cpu)
{
	char text[64], file[64];
	int last = 0, index = -1, r = 0;

	for (int i = 0; i < INDICES && r >= 0; i++) {
		int level;

		r = topology_text(root, text, sizeof(text), CPU "/cache/index%d/level", cpu, i);
		if (r == 0 && sscanf(text, "%d", &level) == 1 && level > last) {
			last = level;
			index = i;
		}
	}
	*set = (struct topology_set){0};
	if (r < 0 || index < 0)
		return r < 0 ? r : 1;
	snprintf(file, sizeof(file), "cache/index%d/shared_cpu_list", index);
	return read_set(set, root, cpu, file);
}

/* --- CPU time ---------------------------------------------------------------------------------------------------- */

/* Seconds between two looks; 0 where a counter fell, as it does after a live migration. */
static double passed(double before, double after)
{
	return isnan(before) || isnan(after) ? NAN : fmax(0, after - before);
}

static double share(double part, double whole)
{
	return isnan(part) || !(whole > 0) ? NAN : fmax(0, fmin(1, part / whole));
}

/* Sum over the CPUs of a set (NULL: all) that both looks saw, and how many those are. */
struct sum {
	double busy, stolen;
	unsigned cpus;
};

static struct sum sum_of(const struct look *before, const struct look *after, const struct topology_set *set)
{
	struct sum sum = {0};

	for (unsigned cpu = 0; cpu < before->cpu_count && cpu < after->cpu_count; cpu++) {
		double busy = passed(before->cpus[cpu].busy, after->cpus[cpu].busy);

		if (isnan(busy) || (set != NULL && !topology_set_has(set, cpu)))
			continue;
		sum.busy += busy;
		sum.stolen += passed(before->cpus[cpu].stolen, after->cpus[cpu].stolen);
		sum.cpus++;
	}
	return sum;
}

/* What others ran on the other CPUs: who ran beside the measuring thread on its own CPU took its time, and is told by
 * the meter. own: what of it was the calibration's. */
static double busy_others(const struct sum *sum, double own, double seconds)
{
	return sum->cpus > 1 ? share(sum->busy - own, (sum->cpus - 1) * seconds) : NAN;
}

/* The other threads of the core. Where the calibration had several threads they ran on the cache's CPUs by turns with
 * the measuring one, each as long as any: what it ran beyond a whole CPU is taken as spread over these. */
static double busy_siblings(const struct sum *core, const struct sum *measuring, double own, unsigned cache_cpus,
                            double seconds)
{
	double crew = cache_cpus > 1 ? fmax(0, own - seconds) / (cache_cpus - 1) : 0;

	return core->cpus > 1
	               ? share(core->busy - measuring->busy - crew * (core->cpus - 1), (core->cpus - 1) * seconds)
	               : NAN;
}

static int find_busy(struct surroundings *out, const struct look *before, const struct look *after, int cpu,
                     const char *root)
{
	double own = passed(before->own, after->own);
	struct sum host = sum_of(before, after, NULL), measuring = {0}, cache = {0}, core = {0};
	struct topology_set set;
	int r = 0;

	if (cpu >= 0) {
		set = (struct topology_set){0};
		topology_set_add(&set, (unsigned)cpu);
		measuring = sum_of(before, after, &set);
		r = find_cache(&set, root, cpu);
		cache = sum_of(before, after, &set);
	}
	if (cpu >= 0 && r >= 0) {
		r = read_set(&set, root, cpu, "topology/thread_siblings_list");
		core = sum_of(before, after, &set);
	}
	out->busy_host = busy_others(&host, own, out->seconds);
	out->busy_cache = busy_others(&cache, own, out->seconds);
	out->busy_core = busy_siblings(&core, &measuring, own, cache.cpus, out->seconds);
	out->stolen = measuring.cpus > 0 ? share(measuring.stolen, out->seconds)
	              : host.cpus > 0    ? share(host.stolen, host.cpus * out->seconds)
	                                 : NAN;
	return r;
}

/* --- quotas, clock ----------------------------------------------------------------------------------------------- */

/* In another group than before the counters are others. */
static double find_throttled(const struct look *before, const struct look *after, double seconds)
{
	double worst = NAN;

	if (strcmp(before->group, after->group) != 0)
		return NAN;
	for (size_t i = 0; i < LOOK_LEVELS; i++)
		worst = fmax(worst, share(passed(before->throttled[i], after->throttled[i]), seconds));
	return worst;
}

static int read_mhz(double *mhz, const char *root, int cpu, const char *file)
{
	char text[32];
	double khz;
	int r = topology_text(root, text, sizeof(text), CPU "/cpufreq/%s", cpu, file);

	*mhz = r == 0 && sscanf(text, "%lf", &khz) == 1 && khz > 0 ? khz / 1000 : NAN;
	return r;
}

static int find_clock(struct surroundings *out, int cpu, const char *root)
{
	int r;

	out->mhz = out->most_mhz = NAN;
	if (cpu < 0)
		return 0;
	r = topology_text(root, out->governor, sizeof(out->governor), CPU "/cpufreq/scaling_governor", cpu);
	for (char *c = out->governor; *c != '\0'; c++)
		if (!isalnum((unsigned char)*c) && strchr("_-", *c) == NULL)
			*c = '?'; /* it goes into lines of text */
	if (r >= 0)
		r = read_mhz(&out->mhz, root, cpu, "scaling_cur_freq");
	return r < 0 ? r : read_mhz(&out->most_mhz, root, cpu, "scaling_max_freq");
}

int surroundings_find(struct surroundings *out, const struct look *before, const struct look *after, int cpu,
                      const char *root)
{
	int r;

	*out = (struct surroundings){
		.seconds = after->at - before->at,
		.quota = fmin(before->quota, after->quota),
		.load_before = before->load,
		.load_after = after->load,
		.turbo = before->turbo < after->turbo ? before->turbo : after->turbo,
		.mains = before->mains < after->mains ? before->mains : after->mains,
	};
	out->throttled = find_throttled(before, after, out->seconds);
	for (unsigned i = 0; i < PRESSURES; i++) {
		out->some[i] = share(passed(before->some[i], after->some[i]), out->seconds);
		out->full[i] = share(passed(before->full[i], after->full[i]), out->seconds);
	}
	r = find_busy(out, before, after, cpu, root);
	if (r >= 0)
		r = find_clock(out, cpu, root);
	return r < 0 ? r : 0;
}

/* --- text -------------------------------------------------------------------------------------------------------- */

struct text {
	char *at;
	size_t left;
};

static void __attribute__((format(printf, 2, 3))) append(struct text *text, const char *format, ...)
{
	va_list list;
	int length;

	va_start(list, format);
	length = vsnprintf(text->at, text->left, format, list);
	va_end(list);
	if (length < 0 || (size_t)length >= text->left)
		length = (int)text->left - 1;
	text->at += length;
	text->left -= (size_t)length;
}

static void number(struct text *text, const char *name, double value)
{
	if (isnan(value))
		append(text, "%s=unknown\n", name);
	else if (isinf(value))
		append(text, "%s=none\n", name);
	else
		append(text, "%s=%.4g\n", name, value);
}

static void word(struct text *text, const char *name, const char *value)
{
	append(text, "%s=%s\n", name, value[0] != '\0' ? value : "unknown");
}

static const char *yes_or_no(int value)
{
	return value < 0 ? "" : value > 0 ? "yes" : "no";
}

static void taints_text(struct text *text, const struct taints *taints)
{
	if (taints->cpu >= 0)
		append(text, "cpu=%d\n", taints->cpu);
	number(text, "time_lost", taints->passed_ms > 0 ? (double)taints->lost_ms / taints->passed_ms : NAN);
	append(text, "samples=%u\nsamples_lost=%u\nsamples_moved=%u\n", taints->samples, taints->lost, taints->moved);
	append(text, "rounds=%u\nrounds_stolen=%u\nrounds_slow=%u\nrounds_moved=%u\n", taints->rounds, taints->stolen,
	       taints->slow, taints->strayed);
}

void surroundings_text(const struct surroundings *around, const struct taints *taints, char out[SURROUNDINGS_TEXT])
{
	struct text text = {out, SURROUNDINGS_TEXT};

	out[0] = '\0';
	number(&text, "seconds", around->seconds);
	number(&text, "busy_core", around->busy_core);
	number(&text, "busy_cache", around->busy_cache);
	number(&text, "busy_host", around->busy_host);
	number(&text, "stolen", around->stolen);
	number(&text, "throttled", around->throttled);
	number(&text, "quota_cpus", around->quota);
	number(&text, "pressure_cpu", around->some[PRESSURE_CPU]);
	number(&text, "pressure_memory", around->some[PRESSURE_MEMORY]);
	number(&text, "pressure_memory_full", around->full[PRESSURE_MEMORY]);
	number(&text, "pressure_io", around->some[PRESSURE_IO]);
	number(&text, "pressure_io_full", around->full[PRESSURE_IO]);
	number(&text, "load_before", around->load_before);
	number(&text, "load_after", around->load_after);
	word(&text, "governor", around->governor);
	number(&text, "mhz", around->mhz);
	number(&text, "most_mhz", around->most_mhz);
	word(&text, "turbo", yes_or_no(around->turbo));
	word(&text, "mains", yes_or_no(around->mains));
	if (taints != NULL)
		taints_text(&text, taints);
}
