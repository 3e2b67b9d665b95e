/*
 * How low may the priority of who measures be, and what does resting do to samples? The meter under several priorities,
 * and with many rests, on a host as it is and with a busy loop of nice 0 on every CPU. A report, not a test.
 * Usage: priority [REPEATS]. Every repeat tries all of it in shuffled order, four tenths of a second of work each;
 * figures are medians over the repeats. Printed for each: the share of the time that it ran, samples kept a second,
 * share that was dropped; and for each kernel and size its time next to that of nice 0 of the same repeat and load, and
 * its scatter (MAD) within one turn.
 */
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calibrd/clock.h"
#include "calibrd/crew.h"
#include "calibrd/meter.h"
#include "calibrd/random.h"
#include "calibrd/stats.h"

static const struct priority {
	const char *name;
	int policy, nice;
	unsigned rest_ms; /* after every forty of work: far oftener than the duty cycle (rest.h) rests */
} priorities[] = {
	{"nice 0", SCHED_OTHER, 0, 0},   {"nice 5", SCHED_OTHER, 5, 0}, {"nice 10", SCHED_OTHER, 10, 0},
	{"nice 19", SCHED_OTHER, 19, 0}, {"batch", SCHED_BATCH, 0, 0},  {"idle", SCHED_IDLE, 0, 0},
	{"rests", SCHED_OTHER, 0, 200},
};

static const uint64_t sizes[] = {4096, 65536, 1 << 20};
static const uint64_t turn_ns = 400000000, work_ns = 40000000;

enum {
	PRIORITIES = 7,
	LOADS = 2,
	SIZES = 3,
	KERNELS = 2,
	CASES = SIZES * KERNELS,
	REPEATS_MOST = 99,
	KEPT_MOST = 4096
};

/* What one turn found. NaN: no sample of that case was kept. */
struct turn {
	double ran, kept, dropped; /* shares, and a second */
	double median_ns[CASES], scatter[CASES];
};

/* --- one turn ---------------------------------------------------------------------------------------------------- */

struct tally {
	size_t taken, dropped, count[CASES];
	double ns[CASES][KEPT_MOST];
};

/* libc on cached memory, which others displace; beside it stores that go round the caches, on flushed memory. */
static struct meter_ask ask_of(unsigned which)
{
	unsigned row = 0;

	for (unsigned k = 0; which >= SIZES && k < pc_kernel_count; k++)
		if (pc_kernels[k].family == PC_NONTEMPORAL && pc_kernel_runs(&pc_kernels[k]))
			row = k;
	return (struct meter_ask){.kernel = &pc_kernels[row],
	                          .phase = PHASE_CLEAR,
	                          .prior = which < SIZES ? PC_CACHED : PC_FLUSHED,
	                          .bytes = sizes[which % SIZES],
	                          .passes = 3};
}

static int take_round(struct meter *meter, struct random *random, struct tally *tally)
{
	struct meter_sample samples[CASES];
	unsigned order[CASES];
	int r = meter->ops->round_begin(meter, random_next(random));
	bool tainted;

	for (unsigned i = 0; i < CASES; i++)
		order[i] = i;
	random_shuffle(random, order, CASES);
	for (unsigned i = 0; i < CASES && r == 0; i++) {
		struct meter_ask ask = ask_of(order[i]);

		r = meter->ops->sample(meter, &ask, &samples[order[i]]);
	}
	tainted = meter->ops->round_end(meter);
	for (unsigned i = 0; i < CASES && r == 0; i++) {
		tally->taken++;
		if (tainted || samples[i].tainted)
			tally->dropped++;
		else if (tally->count[i] < KEPT_MOST)
			tally->ns[i][tally->count[i]++] = samples[i].ns;
	}
	return r;
}

static void sum_up(struct tally *tally, double wall_ns, double ran_ns, struct turn *out)
{
	out->ran = ran_ns / wall_ns;
	out->kept = (double)(tally->taken - tally->dropped) / wall_ns * 1e9;
	out->dropped = tally->taken > 0 ? (double)tally->dropped / (double)tally->taken : NAN;
	for (unsigned i = 0; i < CASES; i++) {
		double median = stats_median(tally->ns[i], tally->count[i]);

		out->median_ns[i] = median;
		for (size_t n = 0; n < tally->count[i]; n++)
			tally->ns[i][n] = fabs(tally->ns[i][n] / median - 1);
		out->scatter[i] = stats_median(tally->ns[i], tally->count[i]);
		if (tally->count[i] == 0)
			out->median_ns[i] = out->scatter[i] = NAN;
	}
}

static uint64_t now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* What was no work, in ns; warming up afterwards is. */
static uint64_t rest(struct meter *meter, unsigned rest_ms)
{
	uint64_t ns = (uint64_t)rest_ms * 1000000;

	meter->ops->rest(meter, ns);
	return ns;
}

static int take_priority(const struct priority *priority)
{
	const struct sched_param none = {0};

	if (sched_setscheduler(0, priority->policy, &none) < 0 || setpriority(PRIO_PROCESS, 0, priority->nice) < 0)
		return -errno;
	return 0;
}

static int measure(const struct priority *priority, uint64_t seed, struct turn *out)
{
	static struct tally tally;
	const struct meter_room room = {.target_bytes = 8 << 20};
	struct random random = {seed};
	struct meter *meter = NULL;
	struct pc_why why;
	uint64_t start, ran, rested = 0, due = 0;
	int r = meter_real_new(&meter, NULL, &why);

	if (r == 0)
		r = meter->ops->epoch(meter, &room);
	if (r == 0)
		r = take_priority(
			priority); /* not before: what came so far would take the lowest of them half a minute */
	start = now();
	ran = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (uint64_t worked = 0; r == 0 && worked < turn_ns; worked = now() - start - rested) {
		if (priority->rest_ms > 0 && worked >= due) {
			rested += rest(meter, priority->rest_ms);
			due = worked + work_ns;
		}
		r = take_round(meter, &random, &tally);
	}
	sum_up(&tally, (double)(now() - start - rested), (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - ran), out);
	meter_free(meter);
	return r;
}

/* --- processes --------------------------------------------------------------------------------------------------- */

static void __attribute__((noreturn)) be_measurer(const struct priority *priority, uint64_t seed, int out)
{
	struct turn turn;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	_exit(measure(priority, seed, &turn) == 0 && write(out, &turn, sizeof(turn)) == (ssize_t)sizeof(turn) ? 0 : 1);
}

static void __attribute__((noreturn)) be_load(int cpu)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (crew_pin(cpu) < 0 || setpriority(PRIO_PROCESS, 0, 0) < 0)
		_exit(1);
	for (volatile unsigned turns = 0;; turns++)
		;
}

/* One on every CPU that we may use. How many. */
static size_t start_load(pid_t *pids)
{
	cpu_set_t allowed;
	size_t count = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return 0;
	for (size_t cpu = 0; cpu < CPU_SETSIZE && count < CREW_MOST; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		pids[count] = fork();
		if (pids[count] == 0)
			be_load((int)cpu);
		if (pids[count] > 0)
			count++;
	}
	return count;
}

static bool take_turn(const struct priority *priority, bool loaded, uint64_t seed, struct turn *out)
{
	pid_t load[CREW_MOST], pid;
	size_t count = loaded ? start_load(load) : 0;
	int ends[2], status = -1;
	bool told = false;

	if (pipe(ends) == 0) {
		pid = fork();
		if (pid == 0)
			be_measurer(priority, seed, ends[1]);
		close(ends[1]);
		told = pid > 0 && read(ends[0], out, sizeof(*out)) == (ssize_t)sizeof(*out);
		close(ends[0]);
		if (pid > 0)
			waitpid(pid, &status, 0);
	}
	for (size_t i = 0; i < count; i++) {
		kill(load[i], SIGKILL);
		waitpid(load[i], NULL, 0);
	}
	return told;
}

/* --- the report -------------------------------------------------------------------------------------------------- */

static struct turn turns[LOADS][PRIORITIES][REPEATS_MOST];

static double median_of(const struct turn *from, size_t repeats, double (*what)(const struct turn *, size_t, unsigned),
                        unsigned which)
{
	double values[REPEATS_MOST];
	size_t count = 0;

	for (size_t i = 0; i < repeats; i++) {
		values[count] = what(from, i, which);
		if (!isnan(values[count]))
			count++;
	}
	return count > 0 ? stats_median(values, count) : NAN;
}

static double ran(const struct turn *from, size_t i, unsigned which)
{
	(void)which;
	return from[i].ran;
}

static double kept(const struct turn *from, size_t i, unsigned which)
{
	(void)which;
	return from[i].kept;
}

static double dropped(const struct turn *from, size_t i, unsigned which)
{
	(void)which;
	return from[i].dropped;
}

static double scatter(const struct turn *from, size_t i, unsigned which)
{
	return from[i].scatter[which];
}

/* Next to nice 0, the first row of the load that `from` belongs to. */
static double slower(const struct turn *from, size_t i, unsigned which)
{
	size_t load = (size_t)(from - &turns[0][0][0]) / (PRIORITIES * (size_t)REPEATS_MOST);

	return from[i].median_ns[which] / turns[load][0][i].median_ns[which];
}

static void print_row(size_t load, size_t priority, size_t repeats)
{
	const struct turn *from = turns[load][priority];

	printf("%-8s %-6s %4.0f %7.0f %6.1f  ", priorities[priority].name, load == 0 ? "as is" : "loaded",
	       100 * median_of(from, repeats, ran, 0), median_of(from, repeats, kept, 0),
	       100 * median_of(from, repeats, dropped, 0));
	for (unsigned i = 0; i < CASES; i++)
		printf("  %5.3f %4.1f", median_of(from, repeats, slower, i),
		       100 * median_of(from, repeats, scatter, i));
	printf("\n");
}

static void print_all(size_t repeats)
{
	printf("                 ran    kept   drop  ");
	for (unsigned i = 0; i < CASES; i++)
		printf("  %6s %3lluK", ask_of(i).kernel->name, (unsigned long long)ask_of(i).bytes >> 10);
	printf("\n                   %%      /s      %%  ");
	for (unsigned i = 0; i < CASES; i++)
		printf("  ratio  +-%%");
	printf("\n");
	for (size_t load = 0; load < LOADS; load++)
		for (size_t priority = 0; priority < PRIORITIES; priority++)
			print_row(load, priority, repeats);
}

int main(int argc, char **argv)
{
	size_t repeats = argc > 1 ? strtoul(argv[1], NULL, 10) : 9;
	struct random random = {clock_ns(CLOCK_MONOTONIC)};
	unsigned order[LOADS * PRIORITIES];

	if (repeats < 1 || repeats > REPEATS_MOST) {
		fprintf(stderr, "usage: priority [REPEATS], 1 to %d of them\n", REPEATS_MOST);
		return 2;
	}
	for (unsigned i = 0; i < LOADS * PRIORITIES; i++)
		order[i] = i;
	for (size_t repeat = 0; repeat < repeats; repeat++) {
		random_shuffle(&random, order, LOADS * PRIORITIES);
		for (unsigned i = 0; i < LOADS * PRIORITIES; i++) {
			unsigned load = order[i] / PRIORITIES, priority = order[i] % PRIORITIES;

			if (!take_turn(&priorities[priority], load > 0, random_next(&random),
			               &turns[load][priority][repeat])) {
				fprintf(stderr, "priority: %s cannot be measured here\n", priorities[priority].name);
				return 1;
			}
		}
	}
	print_all(repeats);
	return 0;
}
