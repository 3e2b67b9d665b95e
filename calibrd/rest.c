/* The duty cycle; see rest.h. */
#include "calibrd/rest.h"

#include <errno.h>
#include <stdlib.h>

static const uint64_t ns_per_ms = 1000000;

struct resting {
	struct meter meter;
	struct meter *inner;
	unsigned duty_percent;
	uint64_t rested_ns; /* in all */
	uint64_t busy_ns;   /* by the inner clock: since when it works */
};

static struct resting *resting(struct meter *meter)
{
	return (struct resting *)meter;
}

static uint64_t inner_now(const struct resting *self)
{
	return self->inner->ops->now_ns(self->inner);
}

/* What its share of the period gives has to be used up, then comes the rest of it, in whole milliseconds. What the rest
 * takes beyond what it was meant to, to wake and warm up, is no measuring, but it is work. */
static void rest_when_due(struct resting *self, uint64_t period_ms)
{
	uint64_t now = inner_now(self), worked = now - self->busy_ns, duty = self->duty_percent, pause;

	if (worked < period_ms * ns_per_ms / 100 * duty)
		return;
	pause = (worked / duty * (100 - duty) / ns_per_ms + 1) * ns_per_ms;
	self->inner->ops->rest(self->inner, pause);
	self->rested_ns += inner_now(self) - now;
	self->busy_ns = now + pause;
}

/* --- what a meter can do ----------------------------------------------------------------------------------------- */

static uint64_t resting_now(struct meter *meter)
{
	const struct resting *self = resting(meter);

	return inner_now(self) - self->rested_ns;
}

static int resting_epoch(struct meter *meter, const struct meter_room *room)
{
	struct resting *self = resting(meter);

	rest_when_due(self, REST_PERIOD_MS);
	return self->inner->ops->epoch(self->inner, room);
}

static int resting_latency(struct meter *meter, uint64_t bytes, double *ns)
{
	struct resting *self = resting(meter);

	rest_when_due(self, REST_PERIOD_MS);
	return self->inner->ops->latency(self->inner, bytes, ns);
}

static int resting_round_begin(struct meter *meter, uint64_t seed)
{
	struct resting *self = resting(meter);

	rest_when_due(self, REST_PERIOD_MS);
	return self->inner->ops->round_begin(self->inner, seed);
}

static int resting_sample(struct meter *meter, const struct meter_ask *ask, struct meter_sample *out)
{
	struct resting *self = resting(meter);

	rest_when_due(self, REST_ROUND_MS);
	return self->inner->ops->sample(self->inner, ask, out);
}

static bool resting_round_end(struct meter *meter)
{
	struct meter *inner = resting(meter)->inner;

	return inner->ops->round_end(inner);
}

static int resting_probe(struct meter *meter, uint64_t bytes, enum pc_prior prior, unsigned lines, double *looks,
                         double *whole_ns)
{
	struct meter *inner = resting(meter)->inner;

	return inner->ops->probe(inner, bytes, prior, lines, looks, whole_ns);
}

static void resting_taints(struct meter *meter, struct taints *out)
{
	struct meter *inner = resting(meter)->inner;

	*out = (struct taints){.cpu = -1};
	if (inner->ops->taints != NULL)
		inner->ops->taints(inner, out);
}

static void resting_free(struct meter *meter)
{
	meter_free(resting(meter)->inner);
	free(meter);
}

static const struct meter_ops resting_ops = {
	.now_ns = resting_now,
	.epoch = resting_epoch,
	.latency = resting_latency,
	.round_begin = resting_round_begin,
	.sample = resting_sample,
	.round_end = resting_round_end,
	.probe = resting_probe,
	.taints = resting_taints,
	.free = resting_free,
};

/* ----------------------------------------------------------------------------------------------------------------- */

int rest_new(struct meter **out, struct meter *inner, unsigned duty_percent, struct pc_why *why)
{
	struct resting *self;

	if (duty_percent == 0 || duty_percent >= 100) {
		*out = inner;
		return 0;
	}
	if (inner->ops->rest == NULL) {
		meter_free(inner);
		return pc_why(why, -EINVAL, "this meter cannot rest");
	}
	self = calloc(1, sizeof(*self));
	if (self == NULL) {
		meter_free(inner);
		return pc_why(why, -ENOMEM, "no memory for the meter");
	}
	self->meter.ops = &resting_ops;
	self->inner = inner;
	self->duty_percent = duty_percent;
	self->busy_ns = inner_now(self);
	*out = &self->meter;
	return 0;
}
