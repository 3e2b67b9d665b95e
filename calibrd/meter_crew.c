/* Threads that clear together; see meter_crew.h. */
#include "calibrd/meter_crew.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>

#include "calibrd/random.h"

/* A thread other than the caller. Between samples it sleeps in `wake`, and its fields are the caller's. */
struct hand {
	struct meter_crew *team;
	unsigned number; /* from 1; the caller is 0 */
	pthread_t thread;
	sem_t wake;
	int cpu;    /* to run on */
	int pinned; /* where it is pinned, -1: nowhere yet */
	struct part part;
	struct meter_sample sample;
	enum quiet_loss loss;
};

struct meter_crew {
	struct gate gate;
	/* The sample that is being taken. */
	const struct meter_ask *ask;
	uint64_t place;
	atomic_int error;
	atomic_uint finished;
	/* Of all samples. */
	const struct timer *timer;
	struct meter_room room;
	struct crew crew;
	size_t count; /* hands that have been started */
	struct hand *hands[CREW_MOST];
	bool ending;
};

/* --- what every thread does in a sample -------------------------------------------------------------------------- */

/* r: how its preparation went. All get through the first gate, so that nobody waits for one that failed; what is
 * written before it, memory and errors, all know after it. */
static enum quiet_loss take_part(struct meter_crew *team, struct part *part, int r, const char *victim,
                                 struct meter_sample *out)
{
	const struct meter_ask *ask = team->ask;
	struct gate *gate = ask->threads > 1 ? &team->gate : NULL;
	int none = 0;

	if (r < 0)
		atomic_compare_exchange_strong(&team->error, &none, r);
	gate_pass(gate);
	if (atomic_load(&team->error) < 0)
		return QUIET_KEPT;
	if (ask->phase == PHASE_CLEAR)
		return part_clear(part, ask, team->timer, gate, out);
	return part_victim(part, ask, team->timer, gate, victim, out);
}

/* --- the other threads ------------------------------------------------------------------------------------------- */

/* Its CPU may have gone offline, which throws it elsewhere, and come back. */
static int go_to_cpu(struct hand *hand)
{
	int r = 0;

	if (hand->pinned != hand->cpu || sched_getcpu() != hand->cpu)
		r = crew_pin(hand->cpu);
	hand->pinned = r < 0 ? -1 : hand->cpu;
	return r;
}

/* Each at a place of its own in memory of its own. */
static uint64_t place_of(const struct hand *hand)
{
	struct random random = {hand->team->place + hand->number};

	return random_next(&random);
}

static void *work(void *argument)
{
	struct hand *hand = argument;
	struct meter_crew *team = hand->team;

	for (;;) {
		int r;

		while (sem_wait(&hand->wake) < 0)
			; /* interrupted */
		if (team->ending)
			return NULL;
		r = go_to_cpu(hand);
		if (r == 0)
			r = part_lay_out(&hand->part, team->ask, team->timer, place_of(hand));
		hand->loss = take_part(team, &hand->part, r, NULL, &hand->sample);
		atomic_fetch_add_explicit(&team->finished, 1, memory_order_release);
	}
}

/* Memory only where asks need it: extents of all kinds below 2 MiB fit into the first arena. */
static void renew(struct hand *hand)
{
	const struct meter_room *room = &hand->team->room;
	uint64_t base = room->base_bytes < room->crew_bytes ? room->base_bytes : room->crew_bytes;

	part_renew(&hand->part, METER_OVERHEAD_THREAD, base > METER_OVERHEAD_THREAD ? base : 0, room->crew_bytes);
}

/* Anywhere in the crew: on the starter's own CPU, which it would inherit, it might never run, as under real-time
 * priority the starter spins there until it does. */
static int let_roam(pthread_attr_t *attributes, const struct crew *crew)
{
	size_t room = (size_t)crew->cpus[crew->count - 1] + 1, bytes = CPU_ALLOC_SIZE(room);
	cpu_set_t *set = CPU_ALLOC(room);
	int r;

	if (set == NULL)
		return ENOMEM;
	CPU_ZERO_S(bytes, set);
	for (size_t i = 0; i < crew->count; i++)
		CPU_SET_S((size_t)crew->cpus[i], bytes, set);
	r = pthread_attr_setaffinity_np(attributes, bytes, set);
	CPU_FREE(set);
	return r;
}

/* Signals are the first thread's. */
static int start_thread(struct hand *hand)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	int r = pthread_attr_init(&attributes);

	if (r != 0)
		return -r;
	r = let_roam(&attributes, &hand->team->crew);
	sigfillset(&all);
	if (r == 0)
		r = pthread_sigmask(SIG_SETMASK, &all, &before);
	if (r == 0) {
		r = pthread_create(&hand->thread, &attributes, work, hand);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	pthread_attr_destroy(&attributes);
	return -r;
}

static int hire(struct meter_crew *team)
{
	struct hand *hand = calloc(1, sizeof(*hand));
	int r;

	if (hand == NULL)
		return -ENOMEM;
	hand->team = team;
	hand->number = (unsigned)team->count + 1;
	hand->pinned = -1;
	renew(hand);
	if (sem_init(&hand->wake, 0, 0) < 0) {
		r = -errno;
		free(hand);
		return r;
	}
	r = start_thread(hand);
	if (r < 0) {
		sem_destroy(&hand->wake);
		free(hand);
		return r;
	}
	team->hands[team->count++] = hand;
	return 0;
}

/* --- a sample ---------------------------------------------------------------------------------------------------- */

/* The crew's first CPUs but for the caller's. False: too few, or the caller was moved out of the crew, beside another
 * cache. */
static bool assign_cpus(struct meter_crew *team, size_t others)
{
	int own = sched_getcpu();
	size_t done = 0;
	bool among = false;

	for (size_t i = 0; i < team->crew.count && done < others; i++)
		if (team->crew.cpus[i] != own)
			team->hands[done++]->cpu = team->crew.cpus[i];
	for (size_t i = 0; i < team->crew.count; i++)
		among = among || team->crew.cpus[i] == own;
	return done == others && (others == 0 || among);
}

static int assemble(struct meter_crew *team, const struct meter_ask *ask, uint64_t place)
{
	size_t others = ask->threads - 1;
	int r = 0;

	while (team->count < others && r == 0)
		r = hire(team);
	if (r < 0)
		return r;
	if (!assign_cpus(team, others))
		return -EINVAL;
	team->ask = ask;
	team->place = place;
	gate_init(&team->gate, ask->threads);
	atomic_store(&team->error, 0);
	atomic_store(&team->finished, 0);
	for (size_t i = 0; i < others; i++) {
		team->hands[i]->sample = (struct meter_sample){0};
		sem_post(&team->hands[i]->wake);
	}
	return 0;
}

/* Only the caller has a victim to read. The worst loss of any thread, in the order of enum quiet_loss, is the sample's.
 */
static void sum_up(const struct meter_crew *team, struct meter_sample *out, enum quiet_loss *loss)
{
	for (size_t i = 0; i + 1 < team->ask->threads; i++) {
		out->ns += team->hands[i]->sample.ns;
		out->read_ns += team->hands[i]->sample.read_ns;
		if (team->hands[i]->loss > *loss)
			*loss = team->hands[i]->loss;
	}
	if (team->ask->phase == PHASE_CLEAR) {
		out->ns /= team->ask->threads;
		out->read_ns /= team->ask->threads;
	}
}

int meter_crew_sample(struct meter_crew *team, struct part *own, const char *victim, const struct meter_ask *ask,
                      uint64_t place, struct meter_sample *out, enum quiet_loss *loss)
{
	int r = assemble(team, ask, place);

	if (r < 0)
		return r;
	r = part_lay_out(own, ask, team->timer, place);
	*loss = take_part(team, own, r, victim, out);
	while (atomic_load_explicit(&team->finished, memory_order_acquire) + 1 < ask->threads)
		pc_pause();
	r = atomic_load(&team->error);
	if (r == 0)
		sum_up(team, out, loss);
	return r;
}

/* --- life -------------------------------------------------------------------------------------------------------- */

bool meter_crew_fits(const struct meter_crew *team, unsigned threads, uint64_t bytes)
{
	return threads == 1 || (threads <= team->crew.count && bytes <= team->room.crew_bytes);
}

void meter_crew_renew(struct meter_crew *team, const struct meter_room *room)
{
	team->room = *room;
	for (size_t i = 0; i < team->count; i++)
		renew(team->hands[i]);
}

int meter_crew_new(struct meter_crew **out, const struct crew *crew, const struct timer *timer)
{
	struct meter_crew *team = aligned_alloc(_Alignof(struct meter_crew), sizeof(*team));

	if (team == NULL)
		return -ENOMEM;
	*team = (struct meter_crew){.timer = timer};
	if (crew != NULL)
		team->crew = *crew;
	*out = team;
	return 0;
}

struct meter_crew *meter_crew_free(struct meter_crew *team)
{
	if (team == NULL)
		return NULL;
	team->ending = true;
	for (size_t i = 0; i < team->count; i++) {
		struct hand *hand = team->hands[i];

		sem_post(&hand->wake);
		pthread_join(hand->thread, NULL);
		part_renew(&hand->part, 0, 0, 0);
		sem_destroy(&hand->wake);
		free(hand);
	}
	free(team);
	return NULL;
}
