/* Is this a good time to measure: what is read of trees made by hand, and the rules. */
#include "calibrd/conditions.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "calibrd/host_files.h"
#include "tests/unit/by_hand.h"
#include "tests/unit/harness.h"
#include "tests/unit/trees.h"

/* --- reading ----------------------------------------------------------------------------------------------------- */

static void test_nothing_is_unknown(void)
{
	struct conditions now;

	conditions_read(&now, new_root());
	CU_ASSERT(isnan(now.cpu) && isnan(now.memory) && isnan(now.io) && isnan(now.load));
	CU_ASSERT_EQUAL(now.mains, -1);
	conditions_read(&now, "/nowhere");
	CU_ASSERT(isnan(now.cpu) && isnan(now.load));
	CU_ASSERT_TRUE(conditions_calm(&now, 0, NULL));
	CU_ASSERT_TRUE(conditions_fed(&now, NULL));
}

static void test_pressure(void)
{
	const char *root = new_root();
	struct conditions now;

	put_file(root, "/proc/pressure/cpu",
	         "some avg10=12.34 avg60=5.00 avg300=1.00 total=99\n"
	         "full avg10=55.00 avg60=0.00 avg300=0.00 total=0\n");
	put_file(root, "/proc/pressure/memory",
	         "some avg10=0.00 avg60=9.00 avg300=9.00 total=7\n"
	         "full avg10=1.00 avg60=9.00 avg300=9.00 total=7\n");
	put_file(root, "/proc/pressure/io", "some avg10=100.00 avg60=9.00 avg300=9.00 total=7\n");
	put_file(root, "/proc/loadavg", "7.00 0.53 0.64 1/92 25244\n");
	put_file(root, "/sys/devices/system/cpu/online", "0-3\n");
	conditions_read(&now, root);
	NEAR(now.cpu, 12.34);
	NEAR(now.memory, 0);
	NEAR(now.io, 100);
	CU_ASSERT(isnan(now.load)); /* the better fact is there */
}

static double load_of(const char *load, const char *online)
{
	const char *root = new_root();
	struct conditions now;

	put_file(root, "/proc/loadavg", load);
	put_file(root, "/sys/devices/system/cpu/online", online);
	conditions_read(&now, root);
	CU_ASSERT(isnan(now.cpu));
	return now.load;
}

static void test_load(void)
{
	NEAR(load_of("6.00 0.53 0.64 1/92 25244\n", "0-3\n"), 1.5);
	NEAR(load_of("6.00 0.53 0.64 1/92 25244\n", "0,2,4\n"), 2);
	CU_ASSERT(isnan(load_of("6.00 0.53 0.64 1/92 25244\n", "\n")));
	CU_ASSERT(isnan(load_of("6.00 0.53 0.64 1/92 25244\n", "all\n")));
	CU_ASSERT(isnan(load_of("", "0-3\n")));
	CU_ASSERT(isnan(load_of("high\n", "0-3\n")));
	CU_ASSERT(isnan(load_of("-1 0 0\n", "0-3\n")));
}

/* As files of a kernel are not, but of somebody who mounted something over them. */
static void test_pressure_that_is_none(void)
{
	static const char *const texts[] = {"",
	                                    "\n",
	                                    "some\n",
	                                    "some avg10=",
	                                    "some avg10=x\n",
	                                    "full avg10=50.00 total=1\n",
	                                    "some avg60=5.00\nfull avg10=50.00\n",
	                                    "some avg10=-5\n"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const char *root = new_root();
		struct conditions now;

		put_file(root, "/proc/pressure/cpu", texts[i]);
		conditions_read(&now, root);
		CU_ASSERT(isnan(now.cpu));
	}
}

/* --- power ------------------------------------------------------------------------------------------------------- */

struct supply {
	const char *type, *online, *status, *scope; /* NULL: no such file */
};

static void put_supply(const char *root, size_t number, const char *file, const char *text)
{
	char path[128], line[64];

	if (text == NULL)
		return;
	snprintf(path, sizeof(path), "/sys/class/power_supply/s%zu/%s", number, file);
	snprintf(line, sizeof(line), "%s\n", text);
	put_file(root, path, line);
}

static int mains_of(struct supply a, struct supply b)
{
	const struct supply supplies[] = {a, b};
	const char *root = new_root();
	struct conditions now;

	for (size_t i = 0; i < 2; i++) {
		put_supply(root, i, "type", supplies[i].type);
		put_supply(root, i, "online", supplies[i].online);
		put_supply(root, i, "status", supplies[i].status);
		put_supply(root, i, "scope", supplies[i].scope);
	}
	conditions_read(&now, root);
	return now.mains;
}

static void test_mains(void)
{
	const struct supply none = {.type = NULL}, on = {.type = "Mains", .online = "1"},
			    off = {.type = "Mains", .online = "0"};
	const struct supply drains = {.type = "Battery", .status = "Discharging"};
	const struct supply fills = {.type = "Battery", .status = "Charging"};

	CU_ASSERT_EQUAL(mains_of(on, none), 1);
	CU_ASSERT_EQUAL(mains_of(on, drains), 1); /* more is drawn than the adapter gives */
	CU_ASSERT_EQUAL(mains_of(off, drains), 0);
	CU_ASSERT_EQUAL(mains_of(none, drains), 0);
	CU_ASSERT_EQUAL(mains_of(off, on), 1);
	CU_ASSERT_EQUAL(mains_of(none, fills), -1);
	CU_ASSERT_EQUAL(mains_of(off, none), -1); /* a server's second power supply, unplugged */
	CU_ASSERT_EQUAL(mains_of(off, fills), -1);
}

static void test_other_supplies(void)
{
	const struct supply none = {.type = NULL}, drains = {.type = "Battery", .status = "Discharging"};
	const struct supply usb = {.type = "USB", .online = "1"}, agreed = {.type = "USB_PD", .online = "2"};
	const struct supply mouse = {.type = "Battery", .status = "Discharging", .scope = "Device"};
	const struct supply silent = {.type = "Battery"}, off = {.type = "Mains", .online = "0"};
	const struct supply odd = {.type = "Mains", .online = "yes"}, nameless = {.online = "1"};

	CU_ASSERT_EQUAL(mains_of(usb, drains), 1);
	CU_ASSERT_EQUAL(mains_of(agreed, drains), 1);
	CU_ASSERT_EQUAL(mains_of(mouse, none), -1);
	CU_ASSERT_EQUAL(mains_of(off, mouse), -1);
	CU_ASSERT_EQUAL(mains_of(off, silent), 0);
	CU_ASSERT_EQUAL(mains_of(silent, none), -1);
	CU_ASSERT_EQUAL(mains_of(odd, drains), 0);
	CU_ASSERT_EQUAL(mains_of(nameless, none), -1);
}

/* --- rules ------------------------------------------------------------------------------------------------------- */

static bool calm(double cpu, double memory, double io, double load, double most, const char *said)
{
	const struct conditions now = {.cpu = cpu, .memory = memory, .io = io, .load = load, .mains = -1};
	struct pc_why why = {""};
	bool result = conditions_calm(&now, most, &why);

	CU_ASSERT_EQUAL(conditions_calm(&now, most, NULL), result);
	if (result)
		CU_ASSERT_STRING_EQUAL(why.text, "");
	if (said != NULL)
		CU_ASSERT_STRING_EQUAL(why.text, said);
	return result;
}

static void test_calm(void)
{
	CU_ASSERT_TRUE(calm(0, 0, 0, NAN, 0, NULL));
	CU_ASSERT_TRUE(calm(10, 10, 10, NAN, 10, NULL)); /* the limit is still calm */
	CU_ASSERT_FALSE(
		calm(10.1, 0, 0, NAN, 10,
	             "the host is busy: tasks waited for a CPU in 10.1 % of the last 10 seconds, more than 10 %"));
	CU_ASSERT_FALSE(
		calm(20, 30, 0, NAN, 2.5,
	             "the host is busy: tasks waited for memory in 30.0 % of the last 10 seconds, more than 2.5 %"));
	CU_ASSERT_FALSE(
		calm(0, 0, 0.01, NAN, 0,
	             "the host is busy: tasks waited for a disk in 0.0 % of the last 10 seconds, more than 0 %"));
	CU_ASSERT_TRUE(calm(100, 100, 100, NAN, 100, NULL));
}

static void test_unknown_holds_nothing_up(void)
{
	CU_ASSERT_TRUE(calm(NAN, NAN, NAN, NAN, 0, NULL));
	CU_ASSERT_FALSE(calm(NAN, NAN, 50, NAN, 10, NULL));
	CU_ASSERT_FALSE(calm(NAN, 50, NAN, NAN, 10, NULL));
	CU_ASSERT_FALSE(calm(50, NAN, NAN, NAN, 10, NULL));
	CU_ASSERT_TRUE(calm(5, NAN, 6, NAN, 10, NULL));
}

/* In place of the CPU's pressure, and of nothing else. */
static void test_load_stands_in(void)
{
	CU_ASSERT_TRUE(calm(NAN, NAN, NAN, 0.5, 0, NULL));
	CU_ASSERT_TRUE(calm(NAN, NAN, NAN, 0.54, 10, NULL));
	CU_ASSERT_FALSE(calm(NAN, NAN, NAN, 0.60, 10,
	                     "the host is busy: a load of 0.60 per CPU over the last minute, more than 0.55"));
	CU_ASSERT_FALSE(calm(NAN, 0, 0, 3, 99, NULL));
	CU_ASSERT_TRUE(calm(NAN, NAN, NAN, 1000, 100, NULL));
	CU_ASSERT_TRUE(calm(0, NAN, NAN, 3, 10, NULL));
	CU_ASSERT_FALSE(calm(NAN, 50, NAN, 0, 10, NULL));
}

static void test_fed(void)
{
	struct conditions now = {NAN, NAN, NAN, NAN, -1};
	struct pc_why why = {""};

	CU_ASSERT_TRUE(conditions_fed(&now, &why));
	now.mains = 1;
	CU_ASSERT_TRUE(conditions_fed(&now, &why));
	CU_ASSERT_STRING_EQUAL(why.text, "");
	now.mains = 0;
	CU_ASSERT_FALSE(conditions_fed(&now, &why));
	CU_ASSERT_STRING_EQUAL(why.text, "the host runs on battery");
}

/* --- this host --------------------------------------------------------------------------------------------------- */

static void test_this_host(void)
{
	struct conditions now;
	struct stat status;
	bool told = stat("/proc/pressure/cpu", &status) == 0;

	conditions_read(&now, NULL);
	if (isnan(now.cpu) && isnan(now.load)) {
		unit_skip(told ? "PSI is off here, and /proc/loadavg or sysfs hidden" : "nothing tells of load here");
		return;
	}
	CU_ASSERT(isnan(now.cpu) ? now.load >= 0 : now.cpu >= 0 && now.cpu <= 100);
	CU_ASSERT(isnan(now.cpu) || isnan(now.load));
	CU_ASSERT(now.mains >= -1 && now.mains <= 1);
}

static const struct unit_test tests[] = {
	{"nothing is unknown", test_nothing_is_unknown},
	{"pressure", test_pressure},
	{"load where there is no pressure", test_load},
	{"pressure that is none", test_pressure_that_is_none},
	{"mains and battery", test_mains},
	{"other supplies", test_other_supplies},
	{"calm", test_calm},
	{"unknown holds nothing up", test_unknown_holds_nothing_up},
	{"load stands in", test_load_stands_in},
	{"fed", test_fed},
	{"this host", test_this_host},
};

UNIT_MAIN("conditions", tests)
