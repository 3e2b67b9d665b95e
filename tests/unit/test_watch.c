/*
 * What the watch tells of: events put in by hand, this kernel's uevents, a clock that is set. A CPU is taken off-line
 * only where PAGECLEAR_HOTPLUG=1 says so: it disturbs whatever else runs.
 */
#include "calibrd/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "calibrd/watch_parts.h"
#include "tests/unit/harness.h"
#include "tests/unit/uevents.h"

/* --- what is told ------------------------------------------------------------------------------------------------ */

enum { CAUSES = WATCH_DAILY + 1 };

struct listener {
	sd_event *event;
	struct watch *watch;
	unsigned told[CAUSES], all;
	enum watch_cause last;
	bool answer; /* with a cause more, once */
};

static void listen_to(void *context, enum watch_cause cause)
{
	struct listener *listener = context;

	CU_ASSERT_FATAL(cause <= WATCH_DAILY);
	listener->told[cause]++;
	listener->all++;
	listener->last = cause;
	if (listener->answer)
		CU_ASSERT_EQUAL(watch_note(listener->watch, WATCH_POWER), 0);
	listener->answer = false;
}

static void start_timed(struct listener *listener, const struct watch_times *times)
{
	const char *missing = "";

	*listener = (struct listener){0};
	CU_ASSERT_FATAL(sd_event_new(&listener->event) >= 0);
	CU_ASSERT_EQUAL_FATAL(watch_new_timed(&listener->watch, listener->event, listen_to, listener, &missing, times),
	                      0);
	CU_ASSERT(missing == NULL || strlen(missing) > 10);
}

static void start(struct listener *listener, uint64_t daily_us)
{
	start_timed(listener, &(struct watch_times){.together_us = 20000, .daily_us = daily_us});
}

static void stop(struct listener *listener)
{
	CU_ASSERT_PTR_NULL(watch_free(listener->watch));
	sd_event_unref(listener->event);
}

/* Runs the loop until so much was told. A host so busy that a minute doesn't suffice fails. */
static void run_until(struct listener *listener, unsigned all)
{
	time_t end = time(NULL) + 60;

	while (listener->all < all && time(NULL) < end)
		CU_ASSERT_FATAL(sd_event_run(listener->event, 1000000) >= 0);
	CU_ASSERT(listener->all >= all);
}

/* Runs it for so long. */
static void run_for(struct listener *listener, uint64_t us)
{
	uint64_t now = 0, end;

	CU_ASSERT_FATAL(sd_event_now(listener->event, CLOCK_MONOTONIC, &now) >= 0);
	for (end = now + us; now < end;) {
		CU_ASSERT_FATAL(sd_event_run(listener->event, end - now) >= 0);
		CU_ASSERT_FATAL(sd_event_now(listener->event, CLOCK_MONOTONIC, &now) >= 0);
	}
}

static const uint64_t a_day = UINT64_C(86400000000);

static void test_many_are_told_once(void)
{
	struct listener listener;

	start(&listener, a_day);
	for (unsigned i = 0; i < 1000; i++) {
		CU_ASSERT_EQUAL(watch_note(listener.watch, WATCH_POWER), 0);
		CU_ASSERT_EQUAL(watch_note(listener.watch, WATCH_CPUS), 0);
	}
	CU_ASSERT_EQUAL(listener.all, 0); /* not from inside */
	run_until(&listener, 2);
	run_for(&listener, 100000);
	CU_ASSERT_EQUAL(listener.told[WATCH_POWER], 1);
	CU_ASSERT_EQUAL(listener.told[WATCH_CPUS], 1);
	CU_ASSERT_EQUAL(listener.all, 2);
	CU_ASSERT_EQUAL(watch_note(listener.watch, WATCH_CPUS), 0); /* later: anew */
	run_until(&listener, 3);
	CU_ASSERT_EQUAL(listener.told[WATCH_CPUS], 2);
	stop(&listener);
}

/* An event that comes while others are told is not lost. */
static void test_told_while_telling(void)
{
	struct listener listener;

	start(&listener, a_day);
	listener.answer = true;
	CU_ASSERT_EQUAL(watch_note(listener.watch, WATCH_POWER), 0);
	run_until(&listener, 2);
	CU_ASSERT_EQUAL(listener.told[WATCH_POWER], 2);
	stop(&listener);
}

static int chatter(sd_event_source *source, void *context)
{
	struct listener *listener = context;

	(void)source;
	CU_ASSERT_EQUAL(watch_note(listener->watch, WATCH_POWER), 0);
	return 0;
}

/* A source that never falls silent puts nothing off. */
static void test_chatter_is_told(void)
{
	struct listener listener;
	sd_event_source *source = NULL;

	/* so long that no busy host makes a pause of it */
	start_timed(&listener, &(struct watch_times){.together_us = 400000, .daily_us = a_day});
	CU_ASSERT_FATAL(sd_event_add_defer(listener.event, &source, chatter, &listener) >= 0);
	CU_ASSERT_FATAL(sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IDLE) >=
	                0); /* else it comes first always */
	CU_ASSERT_FATAL(sd_event_source_set_enabled(source, SD_EVENT_ON) >= 0);
	run_until(&listener, 1);
	sd_event_source_disable_unref(source);
	stop(&listener);
}

static void test_daily(void)
{
	struct listener listener;

	start(&listener, 50000);
	run_until(&listener, 3); /* again and again */
	CU_ASSERT_EQUAL(listener.told[WATCH_DAILY], listener.all);
	stop(&listener);
}

static void test_freed_while_gathering(void)
{
	struct listener listener;

	start(&listener, a_day);
	CU_ASSERT_EQUAL(watch_note(listener.watch, WATCH_CPUS), 0);
	CU_ASSERT_PTR_NULL(watch_free(listener.watch));
	listener.watch = NULL;
	run_for(&listener, 100000);
	CU_ASSERT_EQUAL(listener.all, 0);
	sd_event_unref(listener.event);
	CU_ASSERT_PTR_NULL(watch_free(NULL));
}

/* As the daemon has it, in its sandbox's address families or not. */
static void test_as_shipped(void)
{
	const char *missing = "";
	struct watch *watch = NULL;
	sd_event *event = NULL;
	struct listener listener = {0};

	CU_ASSERT_FATAL(sd_event_new(&event) >= 0);
	CU_ASSERT_EQUAL_FATAL(watch_new(&watch, event, listen_to, &listener, &missing), 0);
	CU_ASSERT(missing == NULL || strlen(missing) > 10);
	CU_ASSERT(sd_event_run(event, 0) >= 0);
	watch_free(watch);
	CU_ASSERT_EQUAL_FATAL(watch_new(&watch, event, listen_to, &listener, NULL), 0);
	watch_free(watch);
	sd_event_unref(event);
	CU_ASSERT_EQUAL(listener.all, 0);
}

/* --- the clock --------------------------------------------------------------------------------------------------- */

/* A line of /proc/self/fdinfo/FD behind its name, "" if there is none. */
static void fdinfo(int fd, const char *name, char out[128])
{
	char path[64], line[128];
	FILE *file;

	out[0] = '\0';
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, name, strlen(name)) == 0)
			snprintf(out, 128, "%s", line + strlen(name));
	if (file != NULL)
		fclose(file);
}

/* The clock of a host under test is not set: that the kernel was asked rightly is seen from outside, and what it would
 * answer is put in by hand. */
static void check_clock_is_watched(const struct watch *watch)
{
	char text[128];

	fdinfo(watch_clock_fd(watch), "clockid:", text);
	CU_ASSERT_EQUAL(strtol(text, NULL, 10), CLOCK_REALTIME);
	fdinfo(watch_clock_fd(watch), "settime flags:", text);
	CU_ASSERT_EQUAL(strtol(text, NULL, 8), 3); /* TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET */
	fdinfo(watch_clock_fd(watch), "it_value: (", text);
	CU_ASSERT(strtoll(text, NULL, 10) > INT64_C(100) * 366 * 86400); /* seconds: no wake-up of its own */
}

static void test_clock(void)
{
	struct listener listener;
	char text[128];

	start(&listener, a_day);
	fdinfo(watch_clock_fd(listener.watch), "clockid:", text);
	if (text[0] == '\0') {
		unit_skip("/proc tells nothing of timers here");
	} else {
		check_clock_is_watched(listener.watch);
		CU_ASSERT_EQUAL(watch_clock_read(listener.watch, ECANCELED), 0);
		run_until(&listener, 1);
		CU_ASSERT_EQUAL(listener.told[WATCH_CLOCK], 1);
		check_clock_is_watched(listener.watch);
		CU_ASSERT_EQUAL(watch_clock_read(listener.watch, 0), 0); /* the end of time, or a step back from it */
		CU_ASSERT_EQUAL(watch_clock_read(listener.watch, EAGAIN), 0);
		run_for(&listener, 100000);
		CU_ASSERT_EQUAL(listener.all, 1);
		check_clock_is_watched(listener.watch);
	}
	stop(&listener);
}

/* --- from the kernel to who is told ------------------------------------------------------------------------------ */

static void test_uevent_is_told(void)
{
	struct listener listener;

	start(&listener, a_day);
	if (!watch_uevent_may_come(NULL) || !provoke("system/cpu/cpu0", "online")) {
		unit_skip("%s", unasked);
	} else {
		provoke("system/cpu/cpu0", "online");
		run_until(&listener, 1);
		run_for(&listener, 100000);
		CU_ASSERT(listener.told[WATCH_CPUS] >= 1); /* the host's own may come on top */
	}
	stop(&listener);
}

/* So many at once that the socket can't hold them: something was lost, so both are looked at. */
static void test_flood(void)
{
	struct listener listener;
	unsigned sent = 0;

	start(&listener, a_day);
	if (!watch_uevent_may_come(NULL) || !provoke("system/cpu/cpu0", "change")) {
		unit_skip("%s", unasked);
	} else {
		while (sent < 5000 && provoke("system/cpu/cpu0", "change"))
			sent++;
		CU_ASSERT_EQUAL(sent, 5000);
		run_until(&listener, 2);
		CU_ASSERT(listener.told[WATCH_CPUS] >= 1 && listener.told[WATCH_POWER] >= 1);
		unsigned before = listener.told[WATCH_CPUS]; /* and it listens on */
		CU_ASSERT_TRUE(provoke("system/cpu/cpu0", "online"));
		run_until(&listener, listener.all + 1);
		CU_ASSERT(listener.told[WATCH_CPUS] > before);
	}
	stop(&listener);
}

static bool set_cpu1(const char *state)
{
	int fd = open("/sys/devices/system/cpu/cpu1/online", O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, state, 1) == 1;

	if (fd >= 0)
		close(fd);
	return done;
}

static void test_hotplug(void)
{
	struct listener listener;
	const char *allowed = getenv("PAGECLEAR_HOTPLUG");

	if (allowed == NULL || strcmp(allowed, "1") != 0) {
		unit_skip("takes CPU 1 off-line, only with PAGECLEAR_HOTPLUG=1");
		return;
	}
	start(&listener, a_day);
	if (!set_cpu1("0")) {
		unit_skip("CPU 1 can't be taken off-line: %m");
	} else {
		run_until(&listener, 1);
		CU_ASSERT_TRUE(set_cpu1("1"));
		run_until(&listener, 2);
		CU_ASSERT(listener.told[WATCH_CPUS] >= 2);
	}
	stop(&listener);
}

static const struct unit_test tests[] = {
	{"many events are told once", test_many_are_told_once},
	{"an event while others are told", test_told_while_telling},
	{"a chattering source is told", test_chatter_is_told},
	{"once a day", test_daily},
	{"freed while gathering", test_freed_while_gathering},
	{"as shipped", test_as_shipped},
	{"a clock that is set", test_clock},
	{"a uevent is told", test_uevent_is_told},
	{"a flood of uevents", test_flood},
	{"a CPU goes and comes", test_hotplug},
};

UNIT_MAIN("watch", tests)
