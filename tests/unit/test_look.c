/* One look at a host and what else goes on there: at trees made by hand, and at this one. */
#include "calibrd/surroundings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/by_hand.h"
#include "tests/unit/harness.h"
#include "tests/unit/trees.h"

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

/* --- CPUs -------------------------------------------------------------------------------------------------------- */

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

/* --- pressure, clock, power -------------------------------------------------------------------------------------- */

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

/* --- quotas ------------------------------------------------------------------------------------------------------ */

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

/* --- this host --------------------------------------------------------------------------------------------------- */

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
};

UNIT_MAIN("look", tests)
