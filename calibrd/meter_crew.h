/*
 * The meter's other threads: one a CPU of the crew, asleep until a sample asks for several, with memory of their own.
 */
#ifndef CALIBRD_METER_CREW_H
#define CALIBRD_METER_CREW_H

#include "calibrd/crew.h"
#include "calibrd/meter_part.h"
#include "calibrd/quiet.h"

struct meter_crew;

/* crew is copied, NULL: the caller alone; timer must outlive the object. No thread is started yet. 0 or -ENOMEM. */
int meter_crew_new(struct meter_crew **out, const struct crew *crew, const struct timer *timer);
struct meter_crew *meter_crew_free(struct meter_crew *team);

/* An epoch begins: gives up the other threads' memory; they map it anew when a sample first needs it. */
void meter_crew_renew(struct meter_crew *team, const struct meter_room *room);

/* Whether so many threads can clear extents of that size. */
bool meter_crew_fits(const struct meter_crew *team, unsigned threads, uint64_t bytes);

/* A sample of PHASE_CLEAR or of a victim by ask->threads threads, at least 1, of which the caller is one, on the memory
 * of `own`; victim: what it reads again in a victim phase. *loss: the worst that any of them suffered. 0 or -errno:
 * memory, threads or their CPUs cannot be had. */
int meter_crew_sample(struct meter_crew *team, struct part *own, const char *victim, const struct meter_ask *ask,
                      uint64_t place, struct meter_sample *out, enum quiet_loss *loss);

#endif
