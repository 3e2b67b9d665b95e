/* What else went on on a host: the difference of two looks (test_look.c has one), and its words. */
#include "calibrd/surroundings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/by_hand.h"
#include "tests/unit/harness.h"
#include "tests/unit/trees.h"

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
