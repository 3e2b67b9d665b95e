/* What is due, and when. */
#include <math.h>
#include <string.h>

#include "calibrd/agenda.h"
#include "tests/unit/harness.h"

enum { MINUTE = 60, HOUR = 3600, DAY = 86400 };

static struct agenda fresh(void)
{
	struct agenda agenda;

	agenda_start(&agenda, 0);
	return agenda;
}

static struct agenda_facts quiet_at(double now)
{
	return (struct agenda_facts){.now = now, .calm = true, .fed = true, .wait_seconds = 600};
}

static enum step ask(struct agenda *agenda, struct agenda_facts facts, double *at, enum hold *hold)
{
	return agenda_next(agenda, &facts, at, hold);
}

static void test_nothing_is_due(void)
{
	struct agenda agenda = fresh();
	enum hold hold;
	double at;

	CU_ASSERT_EQUAL(ask(&agenda, quiet_at(5), &at, &hold), STEP_SLEEP);
	CU_ASSERT(isinf(at));
	CU_ASSERT_EQUAL(hold, HOLD_NOTHING);
}

static void test_what_is_asked_for_is_never_held_up(void)
{
	struct agenda agenda = fresh();
	struct agenda_facts facts = {.now = 5, .wait_seconds = 600};
	enum hold hold;
	double at;

	agenda_want(&agenda, TASK_CALIBRATE, WISH_ASKED, "asked");
	CU_ASSERT_FALSE(agenda_minds_conditions(&agenda, 5));
	CU_ASSERT_EQUAL(ask(&agenda, facts, &at, &hold), STEP_BEGIN);
}

static void test_a_look_needs_no_quiet(void)
{
	struct agenda agenda = fresh();
	struct agenda_facts facts = {.now = 5, .wait_seconds = 600};
	enum hold hold;
	double at;

	agenda_want(&agenda, TASK_LOOK, WISH_ITSELF, "started");
	CU_ASSERT_FALSE(agenda_minds_conditions(&agenda, 5));
	CU_ASSERT_EQUAL(ask(&agenda, facts, &at, &hold), STEP_BEGIN);
}

static void test_a_busy_host_is_waited_for_but_not_for_ever(void)
{
	struct agenda agenda = fresh();
	struct agenda_facts busy = quiet_at(1000);
	enum hold hold;
	double at;

	busy.calm = false;
	agenda_want(&agenda, TASK_CALIBRATE, WISH_ITSELF, "new");
	CU_ASSERT(agenda_minds_conditions(&agenda, 1000));
	CU_ASSERT_EQUAL(ask(&agenda, busy, &at, &hold), STEP_SLEEP);
	CU_ASSERT_EQUAL(hold, HOLD_BUSY);
	CU_ASSERT_EQUAL(at, 1010);
	busy.now = 1595;
	CU_ASSERT_EQUAL(ask(&agenda, busy, &at, &hold), STEP_SLEEP);
	CU_ASSERT_EQUAL(at, 1600); /* not a second longer than it may be waited for */
	busy.now = 1600;
	CU_ASSERT_EQUAL(ask(&agenda, busy, &at, &hold), STEP_BEGIN);
}

static void test_no_wait_at_all(void)
{
	struct agenda agenda = fresh();
	struct agenda_facts busy = {.now = 7, .fed = true, .wait_seconds = 0};
	enum hold hold;
	double at;

	agenda_want(&agenda, TASK_CALIBRATE, WISH_ITSELF, "new");
	CU_ASSERT_EQUAL(ask(&agenda, busy, &at, &hold), STEP_BEGIN);
}

/* The time on battery does not count as waiting for quiet. */
static void test_battery_is_waited_for_without_end(void)
{
	struct agenda agenda = fresh();
	struct agenda_facts facts = {.now = 0, .wait_seconds = 600};
	enum hold hold;
	double at;

	agenda_want(&agenda, TASK_VERIFY, WISH_ITSELF, "old");
	for (facts.now = 0; facts.now < DAY; facts.now = at) {
		CU_ASSERT_EQUAL_FATAL(ask(&agenda, facts, &at, &hold), STEP_SLEEP);
		CU_ASSERT_EQUAL(hold, HOLD_BATTERY);
		CU_ASSERT_FATAL(at > facts.now);
	}
	facts.fed = true;
	CU_ASSERT_EQUAL(ask(&agenda, facts, &at, &hold), STEP_SLEEP);
	CU_ASSERT_EQUAL(hold, HOLD_BUSY);
	facts.calm = true;
	CU_ASSERT_EQUAL(ask(&agenda, facts, &at, &hold), STEP_BEGIN);
}

static void test_retries_back_off_and_are_bounded(void)
{
	struct agenda agenda = fresh();
	enum hold hold;
	double at;

	agenda_want(&agenda, TASK_CALIBRATE, WISH_ITSELF, "new");
	CU_ASSERT_EQUAL(agenda_failed(&agenda, TASK_CALIBRATE, false, 100), MINUTE);
	CU_ASSERT_EQUAL(ask(&agenda, quiet_at(159), &at, &hold), STEP_SLEEP);
	CU_ASSERT_EQUAL(hold, HOLD_RETRY);
	CU_ASSERT_EQUAL(at, 160);
	CU_ASSERT_EQUAL(ask(&agenda, quiet_at(160), &at, &hold), STEP_BEGIN);
	CU_ASSERT_EQUAL(agenda_failed(&agenda, TASK_CALIBRATE, false, 200), 2 * MINUTE);
	CU_ASSERT_EQUAL(agenda_failed(&agenda, TASK_CALIBRATE, false, 300), 4 * MINUTE);
	for (int i = 0; i < 100; i++)
		CU_ASSERT(agenda_failed(&agenda, TASK_CALIBRATE, false, 300) <= 6 * HOUR);
	CU_ASSERT_EQUAL(agenda_failed(&agenda, TASK_CALIBRATE, false, 300), 6 * HOUR);
	agenda_want(&agenda, TASK_CALIBRATE, WISH_ASKED, "now");
	CU_ASSERT_EQUAL(ask(&agenda, quiet_at(301), &at, &hold), STEP_BEGIN);
}

static void test_noise_is_tried_again_more_seldom(void)
{
	struct agenda agenda = fresh();

	CU_ASSERT_EQUAL(agenda_failed(&agenda, TASK_CALIBRATE, true, 0), 10 * MINUTE);
	CU_ASSERT_EQUAL(agenda_failed(&agenda, TASK_CALIBRATE, true, 0), 20 * MINUTE);
	for (int i = 0; i < 100; i++)
		agenda_failed(&agenda, TASK_CALIBRATE, true, 0);
	CU_ASSERT_EQUAL(agenda_failed(&agenda, TASK_CALIBRATE, true, 0), DAY);
}

/* A reload, a look, what somebody asked for: nothing but success makes a task's failures undone. */
static void test_failures_outlast_other_tasks(void)
{
	struct agenda agenda = fresh();
	enum hold hold;
	double at;

	agenda_failed(&agenda, TASK_CALIBRATE, true, 0);
	agenda_want(&agenda, TASK_LOOK, WISH_ASKED, "reload");
	CU_ASSERT_EQUAL(ask(&agenda, quiet_at(1), &at, &hold), STEP_BEGIN);
	agenda_went_well(&agenda, TASK_LOOK);
	agenda_want(&agenda, TASK_VERIFY, WISH_ASKED, "asked");
	agenda_went_well(&agenda, TASK_VERIFY);
	agenda_want(&agenda, TASK_CALIBRATE, WISH_ITSELF, "noisy");
	CU_ASSERT_EQUAL(ask(&agenda, quiet_at(2), &at, &hold), STEP_SLEEP);
	CU_ASSERT_EQUAL(at, 10 * MINUTE);
	agenda_went_well(&agenda, TASK_CALIBRATE);
	CU_ASSERT_EQUAL(ask(&agenda, quiet_at(3), &at, &hold), STEP_BEGIN);
}

static void test_a_failed_look_waits_too(void)
{
	struct agenda agenda = fresh();
	enum hold hold;
	double at;

	agenda_failed(&agenda, TASK_LOOK, false, 0);
	agenda_want(&agenda, TASK_LOOK, WISH_ITSELF, "again");
	CU_ASSERT_EQUAL(ask(&agenda, quiet_at(59), &at, &hold), STEP_SLEEP);
	CU_ASSERT_EQUAL(ask(&agenda, quiet_at(60), &at, &hold), STEP_BEGIN);
}

static void test_verifications_come_by_themselves(void)
{
	struct agenda agenda = fresh();
	enum hold hold;
	double at;

	agenda_schedule(&agenda, TASK_VERIFY, 1000000, 1000000 + 2 * DAY, 7, 500);
	CU_ASSERT_EQUAL(agenda.next_at, 500 + 5 * DAY);
	CU_ASSERT_EQUAL(ask(&agenda, quiet_at(600), &at, &hold), STEP_SLEEP);
	CU_ASSERT_EQUAL(at, 500 + 5 * DAY);
	CU_ASSERT_FALSE(agenda_minds_conditions(&agenda, 600));
	CU_ASSERT(agenda_minds_conditions(&agenda, at));
	CU_ASSERT_EQUAL(ask(&agenda, quiet_at(at), &at, &hold), STEP_BEGIN);
	CU_ASSERT_EQUAL(agenda.task, TASK_VERIFY);
	CU_ASSERT_EQUAL(agenda.wish, WISH_ITSELF);
	CU_ASSERT(strlen(agenda.reason) > 0);
	agenda_done(&agenda);
	CU_ASSERT_EQUAL(ask(&agenda, quiet_at(500 + 6 * DAY), &at, &hold), STEP_SLEEP);
	CU_ASSERT(isinf(at)); /* until it is scheduled anew */
}

static void test_calibrations_come_by_themselves(void)
{
	struct agenda agenda = fresh();
	enum hold hold;
	double at;

	agenda_schedule(&agenda, TASK_CALIBRATE, 0, 0, 1, 0);
	agenda_done(&agenda); /* forgets no appointment */
	CU_ASSERT_EQUAL(ask(&agenda, quiet_at(DAY), &at, &hold), STEP_BEGIN);
	CU_ASSERT_EQUAL(agenda.task, TASK_CALIBRATE);
	CU_ASSERT_EQUAL(agenda.wish, WISH_ITSELF);
}

static void test_what_is_due_goes_before_a_verification(void)
{
	struct agenda agenda = fresh();
	enum hold hold;
	double at;

	agenda_schedule(&agenda, TASK_VERIFY, 0, 100 * DAY, 1, 0);
	agenda_want(&agenda, TASK_CALIBRATE, WISH_ITSELF, "new");
	CU_ASSERT_EQUAL(ask(&agenda, quiet_at(2 * HOUR), &at, &hold), STEP_BEGIN);
	CU_ASSERT_EQUAL(agenda.task, TASK_CALIBRATE);
}

static void test_a_makeshift_is_looked_at_again(void)
{
	struct agenda agenda = fresh();
	enum hold hold;
	double at;

	agenda.look_at = 600;
	agenda_schedule(&agenda, TASK_VERIFY, 0, 0, 1, 0);
	CU_ASSERT_EQUAL(ask(&agenda, quiet_at(10), &at, &hold), STEP_SLEEP);
	CU_ASSERT_EQUAL(at, 600);
	CU_ASSERT_EQUAL(ask(&agenda, (struct agenda_facts){.now = 600}, &at, &hold), STEP_BEGIN);
	CU_ASSERT_EQUAL(agenda.task, TASK_LOOK);
	agenda_done(&agenda);
	CU_ASSERT_EQUAL(ask(&agenda, quiet_at(601), &at, &hold), STEP_SLEEP);
	CU_ASSERT_EQUAL(at, DAY);
}

/* Whoever waits for quiet or power has waited already, whatever is looked at meanwhile. */
static void test_a_makeshift_is_looked_at_beside_what_waits(void)
{
	struct agenda agenda = fresh();
	struct agenda_facts busy = {.now = 0, .fed = true, .wait_seconds = 900};
	enum hold hold;
	double at;

	agenda_want(&agenda, TASK_CALIBRATE, WISH_ITSELF, "new");
	CU_ASSERT_EQUAL(ask(&agenda, busy, &at, &hold), STEP_SLEEP);
	agenda.look_at = 600;
	busy.now = 600;
	CU_ASSERT_EQUAL(ask(&agenda, busy, &at, &hold), STEP_BEGIN);
	CU_ASSERT_EQUAL(agenda.task, TASK_LOOK);
	agenda_want(&agenda, TASK_CALIBRATE, WISH_ITSELF, "still new");
	busy.now = 899;
	CU_ASSERT_EQUAL(ask(&agenda, busy, &at, &hold), STEP_SLEEP);
	busy.now = 900;
	CU_ASSERT_EQUAL(ask(&agenda, busy, &at, &hold), STEP_BEGIN);
	CU_ASSERT_EQUAL(agenda.task, TASK_CALIBRATE);
}

/* Whatever makes the daemon look and schedule again, and again, the appointment comes. */
static void test_appointments_are_kept(void)
{
	struct agenda agenda = fresh();

	for (int minutes = 0; minutes < 3 * 24 * 60; minutes++) {
		agenda_schedule(&agenda, TASK_VERIFY, 5000000, 1000, 2, MINUTE * minutes); /* in the future */
		CU_ASSERT_EQUAL_FATAL(agenda.next_at, 2 * DAY);
	}
	agenda_schedule(&agenda, TASK_VERIFY, 5000001, 1000, 2, 3 * DAY);
	CU_ASSERT_EQUAL(agenda.next_at, 5 * DAY);
}

/* The wall clock is set while the host runs: neither a storm of verifications nor none for years. */
static void test_schedules_survive_a_clock_that_jumps(void)
{
	struct agenda agenda = fresh();

	agenda_schedule(&agenda, TASK_VERIFY, 2000000000, 1000000000, 7, 0); /* the last one lies in the future */
	CU_ASSERT_EQUAL(agenda.next_at, 7 * DAY);
	agenda_schedule(&agenda, TASK_VERIFY, 1000000000, 2000000000, 7, 0); /* decades ago, says a clock set forward */
	CU_ASSERT_EQUAL(agenda.next_at, HOUR);
	agenda_schedule(&agenda, TASK_VERIFY, 1000000000, 1000000000, 0, 0);
	CU_ASSERT(isinf(agenda.next_at));
}

static void test_long_reasons_are_cut(void)
{
	struct agenda agenda = fresh();
	char text[1000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	agenda_want(&agenda, TASK_LOOK, WISH_ITSELF, text);
	CU_ASSERT_EQUAL(strlen(agenda.reason), sizeof(agenda.reason) - 1);
}

static const struct unit_test tests[] = {
	{"nothing is due", test_nothing_is_due},
	{"what is asked for is never held up", test_what_is_asked_for_is_never_held_up},
	{"a look needs no quiet", test_a_look_needs_no_quiet},
	{"a busy host is waited for, but not for ever", test_a_busy_host_is_waited_for_but_not_for_ever},
	{"no wait at all", test_no_wait_at_all},
	{"battery is waited for without end", test_battery_is_waited_for_without_end},
	{"retries back off and are bounded", test_retries_back_off_and_are_bounded},
	{"noise is tried again more seldom", test_noise_is_tried_again_more_seldom},
	{"failures outlast other tasks", test_failures_outlast_other_tasks},
	{"a failed look waits too", test_a_failed_look_waits_too},
	{"verifications come by themselves", test_verifications_come_by_themselves},
	{"calibrations come by themselves", test_calibrations_come_by_themselves},
	{"what is due goes before a verification", test_what_is_due_goes_before_a_verification},
	{"a makeshift is looked at again", test_a_makeshift_is_looked_at_again},
	{"a makeshift is looked at beside what waits", test_a_makeshift_is_looked_at_beside_what_waits},
	{"appointments are kept", test_appointments_are_kept},
	{"schedules survive a clock that jumps", test_schedules_survive_a_clock_that_jumps},
	{"long reasons are cut", test_long_reasons_are_cut},
};

UNIT_MAIN("agenda", tests)
