/*
 * The meter that times this host: pinned threads, explicit cache states, nothing but the call in the timed region.
 * How a sample is taken is in meter_part.c, with several threads in meter_crew.c; here is what callers see.
 */
#include "calibrd/meter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "calibrd/clock.h"
#include "calibrd/meter_crew.h"
#include "calibrd/meter_part.h"
#include "calibrd/meter_timer.h"
#include "calibrd/quiet.h"
#include "calibrd/random.h"
#include "calibrd/touch.h"
#include "kernels/ticks.h"
#include "libpolicy/probe.h"

enum { SMALL_BYTES = 8 << 20 }; /* that targets below 2 MiB lie somewhere in */

struct real_meter {
	struct meter meter;
	struct quiet quiet;
	struct timer timer;
	struct part part; /* of the caller, all of it mapped when an epoch begins */
	struct arena victim;
	struct meter_crew *crew;
	struct random random;
	uint64_t place; /* random number that picks this round's place in an arena */
	uint64_t sink;  /* keeps reads alive */
};

static uint64_t real_now(struct meter *meter)
{
	(void)meter;
	return clock_ns(CLOCK_MONOTONIC);
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

static void release(struct real_meter *real)
{
	part_renew(&real->part, 0, 0, 0);
	arena_release(&real->victim);
}

static int real_epoch(struct meter *meter, const struct meter_room *room)
{
	struct real_meter *real = (struct real_meter *)meter;
	int r;

	quiet_epoch(&real->quiet);
	release(real);
	meter_crew_renew(real->crew, room);
	part_renew(&real->part, SMALL_BYTES, room->base_bytes > SMALL_BYTES ? room->base_bytes : 0, room->target_bytes);
	real->victim = (struct arena){NULL, arena_size(room->victim_bytes), MADV_HUGEPAGE};
	r = arena_map(&real->part.small);
	if (r == 0)
		r = arena_map(&real->part.base);
	if (r == 0)
		r = arena_map(&real->part.large);
	return r == 0 ? arena_map(&real->victim) : r;
}

/* --- samples ----------------------------------------------------------------------------------------------------- */

static bool is_victim(enum phase phase)
{
	return phase == PHASE_VICTIM_L1 || phase == PHASE_VICTIM_L2 || phase == PHASE_VICTIM_LLC;
}

static bool is_sound(struct real_meter *real, const struct meter_ask *ask)
{
	char *at;

	if (is_victim(ask->phase) ? ask->victim_bytes > real->victim.bytes : ask->kernel == NULL)
		return false;
	if (ask->phase == PHASE_SINGLE ? ask->threads > 1 : ask->phase != PHASE_CLEAR && !is_victim(ask->phase))
		return false;
	return part_target(&real->part, ask->bytes, ask->base_pages, 0, &at) == 0 &&
	       meter_crew_fits(real->crew, ask->threads, ask->bytes);
}

static int real_sample(struct meter *meter, const struct meter_ask *asked, struct meter_sample *out)
{
	struct real_meter *real = (struct real_meter *)meter;
	struct meter_ask ask = *asked;
	enum quiet_loss loss;
	int r;

	*out = (struct meter_sample){0};
	if (ask.threads == 0)
		ask.threads = 1;
	if (!is_sound(real, &ask))
		return -EINVAL;
	if (ask.phase == PHASE_SINGLE)
		r = part_single(&real->part, &ask, &real->timer, real->place, out, &loss);
	else
		r = meter_crew_sample(real->crew, &real->part, real->victim.base, &ask, real->place, out, &loss);
	if (r < 0)
		return r;
	out->tainted = loss != QUIET_KEPT;
	quiet_count(&real->quiet, loss);
	return 0;
}

static int real_round_begin(struct meter *meter, uint64_t seed)
{
	struct real_meter *real = (struct real_meter *)meter;
	struct random random = {seed};

	real->place = random_next(&random);
	return quiet_round_begin(&real->quiet);
}

static bool real_round_end(struct meter *meter)
{
	return quiet_round_end(&((struct real_meter *)meter)->quiet);
}

/* --- latency and probe ------------------------------------------------------------------------------------------- */

static int real_latency(struct meter *meter, uint64_t bytes, double *ns)
{
	struct real_meter *real = (struct real_meter *)meter;
	size_t loads = (size_t)bytes / 64 < 200000 ? (size_t)bytes / 64 : 200000;
	uint64_t before;

	if (bytes > real->part.large.bytes || loads == 0)
		return -EINVAL;
	touch_chain(real->part.large.base, (size_t)bytes, &real->random);
	before = pc_ticks();
	real->sink += (uintptr_t)touch_chase(real->part.large.base, loads);
	*ns = timer_ns(&real->timer, pc_ticks() - before, 1) / (double)loads;
	return 0;
}

static int real_probe(struct meter *meter, uint64_t bytes, enum pc_prior prior, unsigned lines, double *looks,
                      double *whole_ns)
{
	struct real_meter *real = (struct real_meter *)meter;
	struct iovec range = {NULL, (size_t)bytes};
	uint64_t before;
	char *at;
	int r = part_target(&real->part, bytes, false, real->place, &at);

	if (r < 0)
		return r;
	range.iov_base = at;
	part_prepare(at, (size_t)bytes, prior, 3);
	for (unsigned look = 0, first = 0; look < PC_PROBE_LOOKS; look++) {
		unsigned count = pc_probe_share(lines, look);

		looks[look] = count == 0 ? 0
		                         : (double)pc_probe_look(&range, (size_t)bytes, first, count) *
		                                   real->timer.ns_per_tick;
		first += count;
	}
	/* As a whole: with the threshold that gives the right answer whatever the looks take. */
	part_prepare(at, (size_t)bytes, prior, 3);
	before = pc_ticks();
	real->sink += pc_probe_flushed(&range, (size_t)bytes, lines, prior == PC_CACHED ? UINT64_MAX : 0, PC_PROBE_ANY);
	*whole_ns = timer_ns(&real->timer, pc_ticks() - before, 1);
	return 0;
}

/* --- rest -------------------------------------------------------------------------------------------------------- */

/* Absolute, so that signals don't lengthen it. */
static void sleep_until(uint64_t ns)
{
	const struct timespec end = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
		;
}

static void real_rest(struct meter *meter, uint64_t ns)
{
	struct real_meter *real = (struct real_meter *)meter;

	sleep_until(clock_ns(CLOCK_MONOTONIC) + ns);
	quiet_rested(&real->quiet, ns);
}

/* --- life -------------------------------------------------------------------------------------------------------- */

static void real_taints(struct meter *meter, struct taints *out)
{
	quiet_taints(&((struct real_meter *)meter)->quiet, out);
}

static void real_free(struct meter *meter)
{
	struct real_meter *real = (struct real_meter *)meter;

	meter_crew_free(real->crew);
	release(real);
	quiet_stop(&real->quiet);
	free(real);
}

static const struct meter_ops real_ops = {
	.now_ns = real_now,
	.epoch = real_epoch,
	.latency = real_latency,
	.round_begin = real_round_begin,
	.sample = real_sample,
	.round_end = real_round_end,
	.probe = real_probe,
	.rest = real_rest,
	.taints = real_taints,
	.free = real_free,
};

int meter_real_new(struct meter **out, const struct crew *crew, struct pc_why *why)
{
	struct real_meter *real = calloc(1, sizeof(*real));
	int r;

	if (real == NULL)
		return pc_why(why, -ENOMEM, "no memory for the meter");
	r = meter_crew_new(&real->crew, crew, &real->timer);
	if (r < 0) {
		free(real);
		return pc_why(why, r, "no memory for the meter");
	}
	r = quiet_start(&real->quiet);
	if (r < 0) {
		meter_crew_free(real->crew);
		free(real);
		return pc_why(why, r, "cannot stay on one CPU: %s", strerror(-r));
	}
	real->meter.ops = &real_ops;
	real->random.state = clock_ns(CLOCK_MONOTONIC);
	timer_calibrate(&real->timer);
	*out = &real->meter;
	return 0;
}
