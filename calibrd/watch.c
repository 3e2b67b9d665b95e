/* Timers and events of the watch, and what makes one of many; see watch.h. */
#include "calibrd/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "calibrd/log.h"
#include "calibrd/watch_parts.h"

enum { CAUSES = WATCH_DAILY + 1, MESSAGES_AT_ONCE = 64 };

static const uint64_t second_us = 1000000;

struct watch {
	void (*told)(void *context, enum watch_cause cause);
	void *context;
	struct watch_times times;
	unsigned pending;           /* bits of causes that are not told yet */
	int uevents, clock;         /* descriptors, -1: none */
	sd_event_source *together;  /* ends the gathering */
	sd_event_source *on_uevent; /* as the next ones NULL if there is none */
	sd_event_source *on_clock, *daily;
};

/* --- telling ----------------------------------------------------------------------------------------------------- */

static int on_together(sd_event_source *source, uint64_t usec, void *context)
{
	struct watch *watch = context;
	unsigned pending = watch->pending;

	(void)source;
	(void)usec;
	watch->pending = 0;
	for (unsigned cause = 0; cause < CAUSES; cause++)
		if ((pending & 1u << cause) != 0)
			watch->told(watch->context, (enum watch_cause)cause);
	return 0;
}

/* The first event begins the gathering, and later ones don't prolong it: a chattering source is told all the same. */
int watch_note(struct watch *watch, enum watch_cause cause)
{
	bool gathering = watch->pending != 0;
	int r;

	watch->pending |= 1u << cause;
	if (gathering)
		return 0;
	r = sd_event_source_set_time_relative(watch->together, watch->times.together_us);
	return r < 0 ? r : sd_event_source_set_enabled(watch->together, SD_EVENT_ONESHOT);
}

/* --- CPUs and power ---------------------------------------------------------------------------------------------- */

/* Those that were lost may have been of either kind. */
static int note_lost(struct watch *watch)
{
	int r = watch_note(watch, WATCH_CPUS);

	return r < 0 ? r : watch_note(watch, WATCH_POWER);
}

static int on_uevent(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct watch *watch = context;
	enum watch_cause cause;
	int r = 0;

	(void)source;
	(void)events;
	for (unsigned i = 0; i < MESSAGES_AT_ONCE && r >= 0; i++) {
		r = watch_uevent_receive(fd, &cause);
		if (r == 0)
			r = watch_note(watch, cause);
		else if (r == -ENOBUFS)
			r = note_lost(watch);
	}
	if (r < 0 && r != -EAGAIN) {
		log_warning("the kernel's events can't be read any more (%s): CPUs and power are looked at once a day",
		            strerror(-r));
		return r; /* which switches the source off */
	}
	return 0;
}

/* --- the clock --------------------------------------------------------------------------------------------------- */

/*
 * A timer that never ends, but that the kernel cancels when the clock is set (timerfd_create(2)) and, since it compares
 * the clock with one that stands still meanwhile, after a sleep (timerfd_resume() in Linux's fs/timerfd.c; before 5.15
 * by way of clock_was_set()). A change between two settings is told by ECANCELED of the second, which holds for all
 * that.
 */
static int set_clock_timer(struct watch *watch)
{
	const struct itimerspec never = {.it_value.tv_sec = (time_t)1 << 40};
	int r = timerfd_settime(watch->clock, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL) < 0 ? -errno
	                                                                                                     : 0;

	return r == -ECANCELED ? watch_note(watch, WATCH_CLOCK) : r;
}

int watch_clock_read(struct watch *watch, int error)
{
	int r = error == ECANCELED ? watch_note(watch, WATCH_CLOCK) : 0;

	if (r < 0 || error == EAGAIN || error == EINTR)
		return r;
	return set_clock_timer(watch);
}

static int on_clock(sd_event_source *source, int fd, uint32_t events, void *context)
{
	uint64_t expirations;
	int error = read(fd, &expirations, sizeof(expirations)) < 0 ? errno : 0;
	int r = watch_clock_read(context, error);

	(void)source;
	(void)events;
	if (r < 0)
		log_warning("the clock can't be watched any more (%s): the host is looked at once a day", strerror(-r));
	return r;
}

int watch_clock_fd(const struct watch *watch)
{
	return watch->clock;
}

/* --- once a day -------------------------------------------------------------------------------------------------- */

static int on_daily(sd_event_source *source, uint64_t usec, void *context)
{
	struct watch *watch = context;
	int r = watch_note(watch, WATCH_DAILY);

	(void)usec;
	return r < 0 ? r : sd_event_source_set_time_relative(source, watch->times.daily_us);
}

/* A twelfth of a day, so that it falls together with some other wake-up of the host's. */
static int add_daily(struct watch *watch, sd_event *event)
{
	int r = sd_event_add_time_relative(event, &watch->daily, CLOCK_BOOTTIME, watch->times.daily_us,
	                                   watch->times.daily_us / 12, on_daily, watch);

	return r < 0 ? r : sd_event_source_set_enabled(watch->daily, SD_EVENT_ON);
}

/* --- life -------------------------------------------------------------------------------------------------------- */

/* Of memory and descriptors: no property of the place. */
static bool is_want(int code)
{
	return code == -ENOMEM || code == -EMFILE || code == -ENFILE;
}

/* 0, 1 can't be had here, -errno of want. */
static int add_uevents(struct watch *watch, sd_event *event)
{
	if (!watch_uevent_may_come(NULL))
		return 1;
	watch->uevents = watch_uevent_open();
	if (watch->uevents < 0)
		return is_want(watch->uevents) ? watch->uevents : 1;
	return sd_event_add_io(event, &watch->on_uevent, watch->uevents, EPOLLIN, on_uevent, watch);
}

static int add_clock(struct watch *watch, sd_event *event)
{
	int r;

	watch->clock = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (watch->clock < 0)
		return is_want(-errno) ? -errno : 1;
	r = set_clock_timer(watch);
	if (r < 0)
		return is_want(r) ? r : 1;
	return sd_event_add_io(event, &watch->on_clock, watch->clock, EPOLLIN, on_clock, watch);
}

/* A timer that is off. */
static int add_together(struct watch *watch, sd_event *event)
{
	int r = sd_event_add_time(event, &watch->together, CLOCK_MONOTONIC, UINT64_MAX, watch->times.together_us / 5,
	                          on_together, watch);

	return r < 0 ? r : sd_event_source_set_enabled(watch->together, SD_EVENT_OFF);
}

static int start(struct watch *watch, sd_event *event, const char **missing)
{
	int uevents, clock = 0, r = add_together(watch, event);

	if (r >= 0)
		r = add_daily(watch, event);
	if (r < 0)
		return r;
	uevents = add_uevents(watch, event);
	if (uevents >= 0)
		clock = add_clock(watch, event);
	if (uevents < 0 || clock < 0)
		return uevents < 0 ? uevents : clock;
	if (missing != NULL && uevents > 0)
		*missing = clock > 0 ? "CPUs and power that come and go, a clock that is set and a resume from sleep"
		                     : "CPUs and power that come and go";
	else if (missing != NULL)
		*missing = clock > 0 ? "a clock that is set and a resume from sleep" : NULL;
	return 0;
}

int watch_new_timed(struct watch **out, sd_event *event, void (*told)(void *context, enum watch_cause cause),
                    void *context, const char **missing, const struct watch_times *times)
{
	struct watch *watch = malloc(sizeof(*watch));
	int r;

	if (watch == NULL)
		return -ENOMEM;
	*watch = (struct watch){.told = told, .context = context, .times = *times, .uevents = -1, .clock = -1};
	r = start(watch, event, missing);
	if (r < 0) {
		watch_free(watch);
		return r;
	}
	*out = watch;
	return 0;
}

int watch_new(struct watch **out, sd_event *event, void (*told)(void *context, enum watch_cause cause), void *context,
              const char **missing)
{
	const struct watch_times times = {.together_us = second_us / 2, .daily_us = 24 * 3600 * second_us};

	return watch_new_timed(out, event, told, context, missing, &times);
}

struct watch *watch_free(struct watch *watch)
{
	if (watch == NULL)
		return NULL;
	sd_event_source_disable_unref(watch->on_uevent);
	sd_event_source_disable_unref(watch->on_clock);
	sd_event_source_disable_unref(watch->daily);
	sd_event_source_disable_unref(watch->together);
	if (watch->uevents >= 0)
		close(watch->uevents);
	if (watch->clock >= 0)
		close(watch->clock);
	free(watch);
	return NULL;
}
