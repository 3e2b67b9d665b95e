/* The duty cycle, on a meter whose clock is ours: how busy it is in any ten seconds, and what its own clock says. */
#include "calibrd/rest.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"

static const uint64_t ms = 1000000;

enum { STRETCHES = 20000, WINDOW_MS = 10000 };

/* Alternately busy and resting, from 0 on. */
struct stretch {
	uint64_t busy_ns, rest_ns;
};

/* Every call takes the same time; each op is counted. */
struct stand {
	struct meter meter;
	uint64_t now_ns, call_ns, late_ns; /* late: by what every rest is longer than asked for */
	bool within;                       /* a round */
	unsigned epochs, latencies, rounds, samples, probes, rests, rests_within, freed;
	size_t count;
	struct stretch stretches[STRETCHES];
};

static struct stand stand;

static void work(void)
{
	stand.now_ns += stand.call_ns;
	stand.stretches[stand.count].busy_ns += stand.call_ns;
}

static uint64_t stand_now(struct meter *meter)
{
	return ((struct stand *)meter)->now_ns;
}

static int stand_epoch(struct meter *meter, const struct meter_room *room)
{
	(void)meter;
	stand.epochs++;
	work();
	return room->target_bytes == 1 ? -ENOMEM : 0;
}

static int stand_latency(struct meter *meter, uint64_t bytes, double *ns)
{
	(void)meter;
	stand.latencies++;
	*ns = (double)bytes;
	work();
	return 0;
}

static int stand_round_begin(struct meter *meter, uint64_t seed)
{
	(void)meter;
	stand.rounds++;
	stand.within = true;
	work();
	return seed == 13 ? -EPERM : 0;
}

static int stand_sample(struct meter *meter, const struct meter_ask *ask, struct meter_sample *out)
{
	(void)meter;
	stand.samples++;
	out->ns = (double)ask->bytes;
	work();
	return ask->bytes == 0 ? -EINVAL : 0;
}

static bool stand_round_end(struct meter *meter)
{
	(void)meter;
	stand.within = false;
	return stand.rounds % 2 == 0;
}

static int stand_probe(struct meter *meter, uint64_t bytes, enum pc_prior prior, unsigned lines, double *looks,
                       double *whole_ns)
{
	(void)meter;
	(void)prior;
	(void)lines;
	stand.probes++;
	*whole_ns = looks[PC_PROBE_LOOKS - 1] = (double)bytes;
	return 0;
}

static void stand_rest(struct meter *meter, uint64_t ns)
{
	(void)meter;
	stand.rests++;
	stand.rests_within += stand.within;
	CU_ASSERT_EQUAL(ns % ms, 0);
	stand.now_ns += ns + stand.late_ns;
	stand.stretches[stand.count].rest_ns = ns;
	CU_ASSERT_FATAL(stand.count + 1 < STRETCHES);
	stand.stretches[++stand.count].busy_ns = stand.late_ns;
}

static void stand_taints(struct meter *meter, struct taints *out)
{
	(void)meter;
	*out = (struct taints){.samples = stand.samples, .cpu = 5};
}

static void stand_free(struct meter *meter)
{
	(void)meter;
	stand.freed++;
}

static const struct meter_ops ops = {
	.now_ns = stand_now,
	.epoch = stand_epoch,
	.latency = stand_latency,
	.round_begin = stand_round_begin,
	.sample = stand_sample,
	.round_end = stand_round_end,
	.probe = stand_probe,
	.rest = stand_rest,
	.taints = stand_taints,
	.free = stand_free,
};

static struct meter *start(unsigned duty_percent, uint64_t call_ns)
{
	struct meter *meter = NULL;
	struct pc_why why;

	memset(&stand, 0, sizeof(stand));
	stand.meter.ops = &ops;
	stand.now_ns = 123456789;
	stand.call_ns = call_ns;
	CU_ASSERT_EQUAL_FATAL(rest_new(&meter, &stand.meter, duty_percent, &why), 0);
	return meter;
}

static void take_rounds(struct meter *meter, unsigned rounds, unsigned samples)
{
	const struct meter_ask ask = {.bytes = 64};
	struct meter_sample sample;

	for (unsigned i = 0; i < rounds; i++) {
		CU_ASSERT_EQUAL(meter->ops->round_begin(meter, 1), 0);
		for (unsigned s = 0; s < samples; s++)
			CU_ASSERT_EQUAL(meter->ops->sample(meter, &ask, &sample), 0);
		meter->ops->round_end(meter);
	}
}

/* The busiest ten seconds: such a window begins where a stretch does. */
static double busiest(void)
{
	double most = 0;

	for (size_t first = 0; first <= stand.count; first++) {
		uint64_t left = WINDOW_MS * ms, busy = 0;

		for (size_t i = first; i <= stand.count && left > 0; i++) {
			uint64_t worked = stand.stretches[i].busy_ns < left ? stand.stretches[i].busy_ns : left;

			busy += worked;
			left -= worked;
			left -= stand.stretches[i].rest_ns < left ? stand.stretches[i].rest_ns : left;
		}
		most = fmax(most, (double)busy / (WINDOW_MS * (double)ms));
	}
	return most;
}

/* --- the share --------------------------------------------------------------------------------------------------- */

static void test_the_share_is_kept(void)
{
	static const unsigned duties[] = {1, 5, 10, 25, 50, 75, 99};
	static const uint64_t calls_ns[] = {20000, 1000000, 15000000};

	for (size_t d = 0; d < sizeof(duties) / sizeof(duties[0]); d++)
		for (size_t c = 0; c < sizeof(calls_ns) / sizeof(calls_ns[0]); c++) {
			double share = duties[d] / 100.0;
			struct meter *meter = start(duties[d], calls_ns[c]);
			uint64_t begun = stand.now_ns, own = meter->ops->now_ns(meter), passed, worked;

			while (stand.now_ns - begun < 60000 * ms)
				take_rounds(meter, 1, 3);
			passed = stand.now_ns - begun;
			worked = meter->ops->now_ns(meter) - own;
			/* A round may end after its time. */
			CU_ASSERT(busiest() <= share + 2 * 4 * (double)calls_ns[c] / 1e10 + 1e-6);
			CU_ASSERT(busiest() >= 0.9 * share);
			CU_ASSERT_EQUAL(stand.rests_within, 0);
			CU_ASSERT_EQUAL(worked, (uint64_t)4 * calls_ns[c] * stand.rounds);
			CU_ASSERT_DOUBLE_EQUAL((double)worked / (double)passed, share, 0.05);
			meter_free(meter);
		}
}

/* Waking up late, and whatever a rest takes besides, is no measuring; but it is work. */
static void test_what_a_rest_costs(void)
{
	struct meter *meter = start(10, ms);
	uint64_t begun = stand.now_ns, own = meter->ops->now_ns(meter);

	stand.late_ns = 20 * ms;
	take_rounds(meter, 5000, 3);
	CU_ASSERT_EQUAL(meter->ops->now_ns(meter) - own, 20000 * ms);
	CU_ASSERT(stand.rests > 30);
	CU_ASSERT(busiest() <= 0.1 + 1e-3);
	CU_ASSERT((double)(20000 * ms + stand.rests * stand.late_ns) <= 0.1 * (double)(stand.now_ns - begun) + 5e8);
	meter_free(meter);
}

/* A round that takes minutes is interrupted, one of a second is not. */
static void test_long_rounds(void)
{
	struct meter *meter = start(20, 100 * ms);

	take_rounds(meter, 20, 9);
	CU_ASSERT_EQUAL(stand.rests_within, 0);
	CU_ASSERT(stand.rests >= 18);
	meter_free(meter);
	meter = start(20, 100 * ms);
	take_rounds(meter, 2, 1000);
	CU_ASSERT(stand.rests_within > 90);
	CU_ASSERT(busiest() <= 0.2 + 0.02);
	meter_free(meter);
}

/* Mappings and the knee's search are work too; a probe is never interrupted, nor a round's end. */
static void test_every_kind_of_work(void)
{
	const struct meter_room room = {0};
	struct meter *meter = start(50, 3000 * ms);
	struct taints taints;
	double ns = 0, looks[PC_PROBE_LOOKS];

	CU_ASSERT_EQUAL(meter->ops->epoch(meter, &room), 0);
	CU_ASSERT_EQUAL(stand.rests, 0);
	CU_ASSERT_EQUAL(meter->ops->latency(meter, 4096, &ns), 0);
	CU_ASSERT_EQUAL(stand.rests, 1);
	CU_ASSERT_EQUAL(meter->ops->epoch(meter, &room), 0);
	CU_ASSERT_EQUAL(stand.rests, 2);
	CU_ASSERT_EQUAL(meter->ops->probe(meter, 99, PC_CACHED, 4, looks, &ns), 0);
	meter->ops->round_end(meter);
	CU_ASSERT_EQUAL(stand.rests, 2);
	CU_ASSERT_EQUAL(looks[PC_PROBE_LOOKS - 1], 99);
	meter->ops->taints(meter, &taints);
	CU_ASSERT_EQUAL(taints.cpu, 5);
	meter_free(meter);
	CU_ASSERT_EQUAL(stand.freed, 1);
}

/* --- the meter behind it ----------------------------------------------------------------------------------------- */

static void test_answers_are_passed_up(void)
{
	const struct meter_room none = {.target_bytes = 1};
	const struct meter_ask senseless = {.bytes = 0};
	struct meter *meter = start(50, ms);
	struct meter_sample sample;

	CU_ASSERT_EQUAL(meter->ops->epoch(meter, &none), -ENOMEM);
	CU_ASSERT_EQUAL(meter->ops->round_begin(meter, 13), -EPERM);
	CU_ASSERT_FALSE(meter->ops->round_end(meter));
	CU_ASSERT_EQUAL(meter->ops->round_begin(meter, 1), 0);
	CU_ASSERT_EQUAL(meter->ops->sample(meter, &senseless, &sample), -EINVAL);
	CU_ASSERT_TRUE(meter->ops->round_end(meter));
	meter_free(meter);
}

static void test_all_of_the_time(void)
{
	CU_ASSERT_PTR_EQUAL(start(100, ms), &stand.meter);
	CU_ASSERT_PTR_EQUAL(start(0, ms), &stand.meter);
	CU_ASSERT_EQUAL(rest_wall_seconds(60, 100), 60);
	CU_ASSERT_EQUAL(rest_wall_seconds(60, 0), 60);
	CU_ASSERT_EQUAL(rest_wall_seconds(60, 25), 240);
}

static void test_a_meter_that_cannot_rest(void)
{
	struct meter_ops restless = ops;
	struct meter *meter = NULL;
	struct pc_why why;

	restless.rest = NULL;
	memset(&stand, 0, sizeof(stand));
	stand.meter.ops = &restless;
	CU_ASSERT_EQUAL(rest_new(&meter, &stand.meter, 50, &why), -EINVAL);
	CU_ASSERT_EQUAL(stand.freed, 1);
	CU_ASSERT_PTR_NULL(meter);
	CU_ASSERT_STRING_EQUAL(why.text, "this meter cannot rest");
}

static const struct unit_test tests[] = {
	{"the share is kept", test_the_share_is_kept},
	{"what a rest costs", test_what_a_rest_costs},
	{"long rounds", test_long_rounds},
	{"every kind of work", test_every_kind_of_work},
	{"answers are passed up", test_answers_are_passed_up},
	{"all of the time", test_all_of_the_time},
	{"a meter that cannot rest", test_a_meter_that_cannot_rest},
};

UNIT_MAIN("rest", tests)
