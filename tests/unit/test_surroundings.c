/* What else goes on on a host: looks at trees made by hand, and the difference of two looks. */
#include "calibrd/surroundings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/by_hand.h"
#include "tests/unit/harness.h"
#include "tests/unit/trees.h"

/* --- trees ------------------------------------------------------------------------------------------------------- */

static struct look *look_at(const char *root)
{
	struct look *look = NULL;

	CU_ASSERT_EQUAL_FATAL(look_new(&look, root), 0);
	return look;
}

static double ticks(double n)
{
	return n / (double)sysconf(_SC_CLK_TCK);
}

/* --- one look: CPUs ---------------------------------------------------------------------------------------------- */

static void test_cpus(void)
{
	const char *root = new_root();
	struct look *look;

	/* user nice system idle iowait irq softirq steal guest guest_nice; CPU 1 is offline */
	put_file(root, "/proc/stat",
	         "cpu  999 0 0 0 0 0 0 0 0 0\n"
	         "cpu0 100 20 30 4000 500 6 7 8 90 10\n"
	         "cpu2 1 2 3 4 5 6 7 0 0 0\n"
	         "intr 12345 0 0\n"
	         "cpufreq 3\n");
	look = look_at(root);
	CU_ASSERT_EQUAL_FATAL(look->cpu_count, 3);
	NEAR(look->cpus[0].busy, ticks(100 + 20 + 30 + 6 + 7));
	NEAR(look->cpus[0].stolen, ticks(8));
	CU_ASSERT(isnan(look->cpus[1].busy));
	NEAR(look->cpus[2].busy, ticks(1 + 2 + 3 + 6 + 7));
	look_free(look);
}

static void test_nonsense_is_no_cpu(void)
{
	const char *root = new_root();
	struct look *look;

	put_file(root, "/proc/stat", "cpu0 1 2\ncpu1 a b c d\ncpu99999999 1 2 3 4 5 6 7\ncpu-1 1 2 3 4\ncpu");
	look = look_at(root);
	CU_ASSERT_EQUAL(look->cpu_count, 0);
	look_free(look);
}

static void test_nothing_is_unknown(void)
{
	struct look *look = look_at(new_root());
	struct surroundings around;
	char text[SURROUNDINGS_TEXT];

	CU_ASSERT_EQUAL(look->cpu_count, 0);
	for (unsigned i = 0; i < PRESSURES; i++)
		CU_ASSERT(isnan(look->some[i]) && isnan(look->full[i]));
	CU_ASSERT(isnan(look->load) && isnan(look->quota) && isnan(look->throttled[0]));
	CU_ASSERT_EQUAL(look->turbo, -1);
	CU_ASSERT_EQUAL(look->mains, -1);
	CU_ASSERT_EQUAL(surroundings_find(&around, look, look, 3, "/nowhere"), 0);
	CU_ASSERT(isnan(around.busy_host) && isnan(around.busy_cache) && isnan(around.busy_core));
	CU_ASSERT(isnan(around.stolen) && isnan(around.throttled) && isnan(around.mhz));
	surroundings_text(&around, NULL, text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nbusy_cache=unknown\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\ngovernor=unknown\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nturbo=unknown\n"));
	CU_ASSERT_PTR_NULL(strstr(text, "nan"));
	CU_ASSERT_PTR_NULL(strstr(text, "samples"));
	look_free(look);
}

/* --- one look: pressure, clock, power ---------------------------------------------------------------------------- */

static void test_pressure(void)
{
	const char *root = new_root();
	struct look *look;

	put_file(root, "/proc/pressure/memory",
	         "some avg10=1.00 avg60=0.90 avg300=0.32 total=2500000\n"
	         "full avg10=0.60 avg60=0.20 avg300=0.22 total=500000\n");
	put_file(root, "/proc/pressure/cpu",
	         "some avg10=1.00 avg60=0.90 avg300=0.32 total=7\n"); /* before Linux 5.13 */
	put_file(root, "/proc/pressure/io", "some avg10=1.00\n");
	put_file(root, "/proc/loadavg", "1.25 0.53 0.64 1/92 25244\n");
	look = look_at(root);
	NEAR(look->some[PRESSURE_MEMORY], 2.5);
	NEAR(look->full[PRESSURE_MEMORY], 0.5);
	NEAR(look->some[PRESSURE_CPU], 7e-6);
	CU_ASSERT(isnan(look->full[PRESSURE_CPU]));
	CU_ASSERT(isnan(look->some[PRESSURE_IO]));
	NEAR(look->load, 1.25);
	look_free(look);
}

static int turbo_of(const char *file, const char *text)
{
	const char *root = new_root();
	struct look *look;
	int turbo;

	put_file(root, file, text);
	look = look_at(root);
	turbo = look->turbo;
	look_free(look);
	return turbo;
}

static void test_turbo(void)
{
	CU_ASSERT_EQUAL(turbo_of("/sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"), 0);
	CU_ASSERT_EQUAL(turbo_of("/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n"), 1);
	CU_ASSERT_EQUAL(turbo_of("/sys/devices/system/cpu/cpufreq/boost", "1\n"), 1);
	CU_ASSERT_EQUAL(turbo_of("/sys/devices/system/cpu/cpufreq/boost", "0\n"), 0);
	CU_ASSERT_EQUAL(turbo_of("/sys/devices/system/cpu/cpufreq/boost", "\n"), -1);
}

static void test_mains(void)
{
	const char *root = new_root();
	struct look *look;

	put_file(root, "/sys/class/power_supply/BAT0/type", "Battery\n");
	put_file(root, "/sys/class/power_supply/BAT0/online", "1\n");
	look = look_at(root);
	CU_ASSERT_EQUAL(look->mains, -1);
	look_free(look);
	put_file(root, "/sys/class/power_supply/left/type", "Mains\n");
	put_file(root, "/sys/class/power_supply/left/online", "0\n");
	look = look_at(root);
	CU_ASSERT_EQUAL(look->mains, 0);
	look_free(look);
	put_file(root, "/sys/class/power_supply/right/type", "Mains\n");
	put_file(root, "/sys/class/power_supply/right/online", "1\n");
	look = look_at(root);
	CU_ASSERT_EQUAL(look->mains, 1);
	look_free(look);
}

/* --- one look: quotas -------------------------------------------------------------------------------------------- */

/* A container whose own group has no bound, in one that has two CPUs and was stopped, in the root, which tells nothing.
 */
static void test_quota_version_2(void)
{
	const char *root = new_root();
	struct look *look;

	put_file(root, "/proc/self/cgroup", "0::/outer/inner\n");
	put_file(root, "/sys/fs/cgroup/cpu.stat", "usage_usec 5\n");
	put_file(root, "/sys/fs/cgroup/outer/cpu.stat", "usage_usec 5\nnr_throttled 7\nthrottled_usec 2500000\n");
	put_file(root, "/sys/fs/cgroup/outer/cpu.max", "200000 100000\n");
	put_file(root, "/sys/fs/cgroup/outer/inner/cpu.stat", "nr_throttled 0\nthrottled_usec 0\n");
	put_file(root, "/sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
	look = look_at(root);
	CU_ASSERT_STRING_EQUAL(look->group, "/outer/inner");
	NEAR(look->quota, 2);
	NEAR(look->throttled[0], 0);
	NEAR(look->throttled[1], 2.5);
	CU_ASSERT(isnan(look->throttled[2]));
	look_free(look);
}

/* Version 1 has the controller, and version 2 is mounted beside it. */
static void test_quota_version_1(void)
{
	const char *root = new_root();
	struct look *look;

	put_file(root, "/proc/self/cgroup", "9:name=systemd:/x\n2:cpu,cpuacct:/y\n1:cpuset:/z\n0::/x\n");
	put_file(root, "/sys/fs/cgroup/cpu/y/cpu.stat", "nr_periods 9\nnr_throttled 7\nthrottled_time 2500000000\n");
	put_file(root, "/sys/fs/cgroup/cpu/y/cpu.cfs_quota_us", "50000\n");
	put_file(root, "/sys/fs/cgroup/cpu/y/cpu.cfs_period_us", "100000\n");
	look = look_at(root);
	CU_ASSERT_STRING_EQUAL(look->group, "/y");
	NEAR(look->quota, 0.5);
	NEAR(look->throttled[0], 2.5);
	look_free(look);
}

static double quota_of(const char *max)
{
	const char *root = new_root();
	struct look *look;
	double quota;

	put_file(root, "/proc/self/cgroup", "1:cpuset:/elsewhere\n0::/\n");
	put_file(root, "/sys/fs/cgroup/cpu.max", max);
	look = look_at(root);
	CU_ASSERT_STRING_EQUAL(look->group, "");
	quota = look->quota;
	look_free(look);
	return quota;
}

static void test_quotas_of_all_kinds(void)
{
	NEAR(quota_of("150000 100000\n"), 1.5);
	CU_ASSERT(isinf(quota_of("max 100000\n")));
	CU_ASSERT(isinf(quota_of("-1 100000\n")));
	CU_ASSERT(isinf(quota_of("")));
}

/* A line of /proc/self/cgroup that is none, and more levels than are looked at. */
static void test_odd_groups(void)
{
	const char *root = new_root();
	struct look *look;

	put_file(root, "/proc/self/cgroup", "nonsense\n:\n0:\n");
	look = look_at(root);
	CU_ASSERT(isnan(look->quota));
	look_free(look);
	put_file(root, "/proc/self/cgroup", "0::/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t\n");
	put_file(root, "/sys/fs/cgroup/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/cpu.max", "100000 100000\n");
	put_file(root, "/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
	look = look_at(root);
	NEAR(look->quota, 1);
	look_free(look);
}

/* --- one look: this host ----------------------------------------------------------------------------------------- */

static void test_own_time_counts_children(void)
{
	struct look *before = look_at(NULL), *after;
	struct rusage usage;
	pid_t pid = fork();

	CU_ASSERT_FATAL(pid >= 0);
	if (pid == 0) {
		do
			getrusage(RUSAGE_SELF, &usage);
		while (usage.ru_utime.tv_sec == 0 && usage.ru_utime.tv_usec + usage.ru_stime.tv_usec < 50000);
		_exit(0);
	}
	CU_ASSERT_EQUAL(waitpid(pid, NULL, 0), pid);
	after = look_at(NULL);
	CU_ASSERT(after->own - before->own >= 0.04);
	CU_ASSERT(after->at > before->at);
	look_free(before);
	look_free(after);
}

/* --- the difference ---------------------------------------------------------------------------------------------- */

enum { CPUS = 8 };

/* Looks ten seconds apart at a host of eight CPUs; two threads a core, four CPUs a cache. */
struct host {
	const char *root;
	struct look before, after;
	struct look_cpu cpus[2][CPUS];
};

static void put_neighbours(const char *root, int cpu, const char *siblings, const char *cache)
{
	char path[128];
	static const struct {
		const char *file, *text;
	} caches[] = {
		{"index0/level", "1"}, {"index0/shared_cpu_list", "0"},   {"index1/level", "3"},
		{"index2/level", "2"}, {"index2/shared_cpu_list", "0-1"},
	};

	for (size_t i = 0; i < sizeof(caches) / sizeof(caches[0]); i++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cache/%s", cpu, caches[i].file);
		put_file(root, path, caches[i].text);
	}
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cache/index1/shared_cpu_list", cpu);
	put_file(root, path, cache);
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
	put_file(root, path, siblings);
}

static void blank(struct look *look, struct look_cpu *cpus, double at)
{
	*look = (struct look){
		.at = at, .cpu_count = CPUS, .cpus = cpus, .quota = INFINITY, .load = NAN, .turbo = -1, .mains = -1};
	for (unsigned i = 0; i < LOOK_LEVELS; i++)
		look->throttled[i] = NAN;
	for (unsigned i = 0; i < PRESSURES; i++)
		look->some[i] = look->full[i] = NAN;
	for (unsigned i = 0; i < CPUS; i++)
		cpus[i] = (struct look_cpu){100, 10};
}

static void new_host(struct host *host)
{
	host->root = new_root();
	put_neighbours(host->root, 1, "0-1\n", "0-3\n");
	blank(&host->before, host->cpus[0], 1000);
	blank(&host->after, host->cpus[1], 1010);
}

static struct surroundings around_of(const struct host *host, int cpu)
{
	struct surroundings around;

	CU_ASSERT_EQUAL_FATAL(surroundings_find(&around, &host->before, &host->after, cpu, host->root), 0);
	return around;
}

/* Measured on CPU 1, which was ours all the time; a hog on CPU 2, one half of the time on 6. */
static void test_busy(void)
{
	struct host host;
	struct surroundings around;

	new_host(&host);
	host.after.own = 10;
	host.cpus[1][1].busy += 10;
	host.cpus[1][2].busy += 10;
	host.cpus[1][6].busy += 5;
	around = around_of(&host, 1);
	NEAR(around.seconds, 10);
	NEAR(around.busy_core, 0);
	NEAR(around.busy_cache, 1.0 / 3);
	NEAR(around.busy_host, 1.5 / 7);
	host.cpus[1][0].busy += 4; /* on our core */
	around = around_of(&host, 1);
	NEAR(around.busy_core, 0.4);
	NEAR(around.busy_cache, 1.4 / 3);
}

/* All four CPUs of the cache were the calibration's for half of the time: nobody else was busy. */
static void test_own_threads_are_no_others(void)
{
	struct host host;
	struct surroundings around;

	new_host(&host);
	host.after.own = 10 + 3 * 5;
	host.cpus[1][1].busy += 10;
	for (unsigned cpu = 0; cpu < 4; cpu++)
		host.cpus[1][cpu].busy += cpu != 1 ? 5 : 0;
	around = around_of(&host, 1);
	NEAR(around.busy_core, 0);
	NEAR(around.busy_cache, 0);
	NEAR(around.busy_host, 0);
}

/* Not told which CPU it was, or what that one shares: the host is known all the same. */
static void test_unknown_neighbours(void)
{
	struct host host;
	struct surroundings around;

	new_host(&host);
	host.cpus[1][3].busy += 7;
	host.cpus[1][3].stolen += 8;
	around = around_of(&host, -1);
	CU_ASSERT(isnan(around.busy_core) && isnan(around.busy_cache));
	NEAR(around.busy_host, 0.1);
	NEAR(around.stolen, 0.1); /* on average */
	around = around_of(&host, 5);
	CU_ASSERT(isnan(around.busy_core) && isnan(around.busy_cache));
	NEAR(around.stolen, 0);
	put_neighbours(host.root, 1, "nonsense", "4-7\n"); /* a list that does not hold the CPU itself */
	around = around_of(&host, 1);
	CU_ASSERT(isnan(around.busy_core) && isnan(around.busy_cache));
}

/* A CPU alone in its core and cache has no neighbours that could be idle. */
static void test_no_neighbours(void)
{
	struct host host;
	struct surroundings around;

	new_host(&host);
	put_neighbours(host.root, 1, "1\n", "1\n");
	around = around_of(&host, 1);
	CU_ASSERT(isnan(around.busy_core) && isnan(around.busy_cache));
	NEAR(around.busy_host, 0);
}

static void test_stolen(void)
{
	struct host host;

	new_host(&host);
	host.cpus[1][1].stolen += 0.5;
	host.cpus[1][2].stolen += 9;
	NEAR(around_of(&host, 1).stolen, 0.05);
	host.cpus[1][1].stolen = 3; /* fell: another machine */
	NEAR(around_of(&host, 1).stolen, 0);
}

/* CPUs that came or went are left out. */
static void test_hotplug(void)
{
	struct host host;

	new_host(&host);
	host.cpus[1][2] = (struct look_cpu){NAN, NAN};
	host.cpus[1][3].busy += 5;
	host.after.cpu_count = 4;
	NEAR(around_of(&host, 1).busy_host, 0.25); /* of two others */
	NEAR(around_of(&host, 1).busy_cache, 0.25);
}

static void test_throttled(void)
{
	struct host host;

	new_host(&host);
	host.before.throttled[0] = 1;
	host.after.throttled[0] = 1.1;
	host.before.throttled[2] = 5;
	host.after.throttled[2] = 9;
	host.after.quota = 0.5;
	NEAR(around_of(&host, 1).throttled, 0.4);
	NEAR(around_of(&host, 1).quota, 0.5);
	host.after.throttled[2] = 500; /* of a hundred CPUs together */
	NEAR(around_of(&host, 1).throttled, 1);
	strcpy(host.after.group, "/another");
	CU_ASSERT(isnan(around_of(&host, 1).throttled));
}

static void test_clock(void)
{
	struct host host;
	struct surroundings around;

	new_host(&host);
	put_file(host.root, "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "power save\n");
	put_file(host.root, "/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "2400000\n");
	put_file(host.root, "/sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq", "<unknown>\n");
	host.before.turbo = 1;
	host.before.mains = host.after.mains = 1;
	around = around_of(&host, 1);
	CU_ASSERT_STRING_EQUAL(around.governor, "power?save");
	NEAR(around.mhz, 2400);
	CU_ASSERT(isnan(around.most_mhz));
	CU_ASSERT_EQUAL(around.turbo, -1);
	host.after.turbo = 0; /* switched off meanwhile */
	CU_ASSERT_EQUAL(around_of(&host, 1).turbo, 0);
	CU_ASSERT_EQUAL(around.mains, 1);
}

static void test_pressure_difference(void)
{
	struct host host;
	struct surroundings around;

	new_host(&host);
	host.before.some[PRESSURE_MEMORY] = 3;
	host.after.some[PRESSURE_MEMORY] = 3.5;
	host.after.full[PRESSURE_MEMORY] = 3;
	around = around_of(&host, 1);
	NEAR(around.some[PRESSURE_MEMORY], 0.05);
	CU_ASSERT(isnan(around.full[PRESSURE_MEMORY]));
}

/* --- text -------------------------------------------------------------------------------------------------------- */

static void test_text(void)
{
	struct taints taints = {.samples = 1000,
	                        .lost = 20,
	                        .moved = 3,
	                        .rounds = 100,
	                        .stolen = 4,
	                        .passed_ms = 10000,
	                        .lost_ms = 300,
	                        .cpu = 1};
	struct surroundings around;
	struct host host;
	char text[SURROUNDINGS_TEXT];

	new_host(&host);
	host.cpus[1][2].busy += 10;
	around = around_of(&host, 1);
	strcpy(around.governor, "performance");
	around.turbo = 1;
	surroundings_text(&around, &taints, text);
	CU_ASSERT_EQUAL(strncmp(text, "seconds=10\n", 11), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nbusy_cache=0.3333\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nquota_cpus=none\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\npressure_memory=unknown\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\ngovernor=performance\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nturbo=yes\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\ncpu=1\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\ntime_lost=0.03\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nsamples_lost=20\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nrounds_stolen=4\n"));
	CU_ASSERT_EQUAL(text[strlen(text) - 1], '\n');
}

/* The longest that there is still fits. */
static void test_longest_text(void)
{
	struct taints taints = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX,
	                        UINT32_MAX, UINT32_MAX, 3,          2,          INT32_MAX};
	struct surroundings around = {.turbo = -1, .mains = -1};
	const double longest = -1.234e-300;
	char text[SURROUNDINGS_TEXT];

	around.seconds = around.busy_core = around.busy_cache = around.busy_host = around.stolen = longest;
	around.throttled = around.quota = around.load_before = around.load_after = longest;
	around.mhz = around.most_mhz = longest;
	for (unsigned i = 0; i < PRESSURES; i++)
		around.some[i] = around.full[i] = longest;
	memset(around.governor, 'g', sizeof(around.governor) - 1);
	surroundings_text(&around, &taints, text);
	CU_ASSERT_STRING_EQUAL(text + strlen(text) - 25, "\nrounds_moved=4294967295\n");
}

static const struct unit_test tests[] = {
	{"CPUs", test_cpus},
	{"nonsense is no CPU", test_nonsense_is_no_cpu},
	{"nothing is unknown", test_nothing_is_unknown},
	{"pressure", test_pressure},
	{"turbo", test_turbo},
	{"mains", test_mains},
	{"quota, version 2", test_quota_version_2},
	{"quota, version 1", test_quota_version_1},
	{"quotas of all kinds", test_quotas_of_all_kinds},
	{"odd groups", test_odd_groups},
	{"own time counts children", test_own_time_counts_children},
	{"busy", test_busy},
	{"own threads are no others", test_own_threads_are_no_others},
	{"unknown neighbours", test_unknown_neighbours},
	{"no neighbours", test_no_neighbours},
	{"stolen", test_stolen},
	{"hotplug", test_hotplug},
	{"throttled", test_throttled},
	{"clock", test_clock},
	{"pressure between two looks", test_pressure_difference},
	{"text", test_text},
	{"longest text", test_longest_text},
};

UNIT_MAIN("surroundings", tests)
