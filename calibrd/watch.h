/*
 * What happens to the host while the daemon sleeps, without a wake-up of its own: CPUs that come and go and power that
 * does (kernel uevents), a resume from sleep or a clock that was set (a timer that both cancel), and once a day in any
 * case (a guest may have been moved to another host).
 */
#ifndef CALIBRD_WATCH_H
#define CALIBRD_WATCH_H

#include <systemd/sd-event.h>

enum watch_cause { WATCH_CPUS, WATCH_POWER, WATCH_CLOCK, WATCH_DAILY };

struct watch;

/* told: called from the event loop, once a cause for many events that come together (0.5 s); it must not free the
 * watch. What cannot be watched here (no netlink, a user namespace) is left to the daily look, and told in *missing
 * (may be NULL; a static text of what it is, NULL: nothing). 0 or -errno of want. */
int watch_new(struct watch **out, sd_event *event, void (*told)(void *context, enum watch_cause cause), void *context,
              const char **missing);
struct watch *watch_free(struct watch *watch);

#endif
