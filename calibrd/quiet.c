/* Disturbances; see quiet.h. */
#include "calibrd/quiet.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "calibrd/clock.h"
#include "calibrd/crew.h"
#include "kernels/ticks.h"

enum {
	STEAL_EVERY_NS = 10000000, /* /proc/stat counts in 10 ms units: reading it more often tells nothing */
	REFERENCE_ROUNDS = 250,    /* half of what the best loop is the best of: some seconds of a calibration */
	WARM_UP_NS = 10000000,
	STAT_BYTES = 65536, /* enough for the lines of some 600 CPUs; beyond, no time counts as stolen */
};

/* --- samples ----------------------------------------------------------------------------------------------------- */

static long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

/*
 * The readings of the thread's own clock enclose those of the wall clock, and the counts of switches enclose both: what
 * the marks themselves take makes a loss look smaller, never larger, and no loss goes without its switch. Smaller by
 * 0.8 us on a Zen 3 guest, 3 us with cold caches, where a loss to another process begins at several.
 * CLOCK_MONOTONIC_RAW, as NTP may slew the other one by 0.05 % against the scheduler's.
 */
struct quiet_mark quiet_mark(void)
{
	struct quiet_mark mark = {.switches = switches(), .cpu = sched_getcpu()};

	mark.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	mark.wall_ns = clock_ns(CLOCK_MONOTONIC_RAW);
	return mark;
}

enum quiet_loss quiet_judge(const struct quiet_mark *before, const struct quiet_mark *after, double timed_ns)
{
	double wall = (double)(after->wall_ns - before->wall_ns), ran = (double)(after->cpu_ns - before->cpu_ns);
	double bears = after->switches != before->switches ? timed_ns : wall;

	if (after->cpu != before->cpu)
		return QUIET_MOVED;
	return wall - ran > bears / 100 ? QUIET_LOST : QUIET_KEPT;
}

enum quiet_loss quiet_disturbed(const struct quiet_mark *before, double timed_ns)
{
	struct quiet_mark after = {.wall_ns = clock_ns(CLOCK_MONOTONIC_RAW)};

	after.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	after.cpu = sched_getcpu();
	after.switches = switches();
	return quiet_judge(before, &after, timed_ns);
}

void quiet_count(struct quiet *quiet, enum quiet_loss loss)
{
	quiet->taints.samples++;
	quiet->taints.lost += loss == QUIET_LOST;
	quiet->taints.moved += loss == QUIET_MOVED;
}

void quiet_taints(const struct quiet *quiet, struct taints *out)
{
	struct quiet_mark now = quiet_mark();
	uint64_t wall = now.wall_ns - quiet->started.wall_ns, ran = now.cpu_ns - quiet->started.cpu_ns;

	*out = quiet->taints;
	out->passed_ms = (uint32_t)(wall / 1000000);
	out->lost_ms = (uint32_t)((wall > ran ? wall - ran : 0) / 1000000);
}

/* --- stolen time ------------------------------------------------------------------------------------------------- */

uint64_t quiet_stolen(const char *stat, int cpu)
{
	char name[16];
	const char *line;
	unsigned long long steal = 0;

	snprintf(name, sizeof(name), "\ncpu%d ", cpu);
	line = strstr(stat, name);
	if (line == NULL || sscanf(line + 1, "%*s %*u %*u %*u %*u %*u %*u %*u %llu", &steal) != 1)
		return 0;
	return steal;
}

static uint64_t stolen_so_far(const struct quiet *quiet)
{
	char text[STAT_BYTES];
	ssize_t got = quiet->stat_fd < 0 ? -1 : pread(quiet->stat_fd, text, sizeof(text) - 1, 0);

	if (got <= 0)
		return 0;
	text[got] = '\0';
	return quiet_stolen(text, quiet->cpu);
}

static void read_stolen(struct quiet *quiet)
{
	quiet->stolen = stolen_so_far(quiet);
	quiet->stolen_read_ns = quiet->stolen_since_ns = clock_ns(CLOCK_MONOTONIC);
}

/* A tick may end what was stolen bit by bit over minutes, and is more than a hundredth of any second: a single one
 * waits for a second one, until it is too old to matter. */
bool quiet_steal(struct quiet *quiet, uint64_t stolen, uint64_t at_ns)
{
	/* The counter has been seen to fall after a live migration. */
	uint64_t ticks = stolen > quiet->stolen ? stolen - quiet->stolen : 0;
	double hundredth = (double)(at_ns - quiet->stolen_since_ns) / 100;
	bool much = (double)ticks * 1e9 / (double)sysconf(_SC_CLK_TCK) > hundredth;

	quiet->stolen_read_ns = at_ns;
	if (ticks == 1 && much)
		return false;
	quiet->stolen = stolen;
	quiet->stolen_since_ns = at_ns;
	return much;
}

/* Of several short rounds since the last look the last one pays for all. */
static bool time_was_stolen(struct quiet *quiet)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	return now - quiet->stolen_read_ns >= STEAL_EVERY_NS && quiet_steal(quiet, stolen_so_far(quiet), now);
}

/* --- rounds ------------------------------------------------------------------------------------------------------ */

/* A fixed chain of dependent multiplications: its time moves only with the clock speed and with stolen time. */
static uint64_t reference_ticks(struct quiet *quiet)
{
	uint64_t x = quiet->sink | 1, before = pc_ticks();

	for (int i = 0; i < 2000; i++)
		x = x * 0x9e3779b97f4a7c15u + 1;
	quiet->sink += x;
	return pc_ticks() - before;
}

void quiet_reference(struct quiet *quiet, uint64_t ticks)
{
	if (ticks < quiet->reference_best)
		quiet->reference_best = ticks;
	if (ticks < quiet->reference_recent)
		quiet->reference_recent = ticks;
	if (++quiet->reference_rounds < REFERENCE_ROUNDS)
		return;
	quiet->reference_best = quiet->reference_recent;
	quiet->reference_recent = UINT64_MAX;
	quiet->reference_rounds = 0;
}

void quiet_epoch(struct quiet *quiet)
{
	quiet->reference_best = quiet->reference_recent = UINT64_MAX;
	quiet->reference_rounds = 0;
}

static int pin_here(struct quiet *quiet)
{
	int cpu = sched_getcpu(), r = cpu < 0 ? -errno : crew_pin(cpu);

	if (r == 0)
		quiet->cpu = quiet->taints.cpu = cpu;
	return r;
}

int quiet_round_begin(struct quiet *quiet)
{
	int r = 0;

	if (sched_getcpu() != quiet->cpu) {
		r = pin_here(quiet);
		read_stolen(quiet);
		quiet_epoch(quiet); /* another CPU, another speed */
	}
	quiet->reference_before = reference_ticks(quiet);
	quiet_reference(quiet, quiet->reference_before);
	return r;
}

/* A quarter slower than the fastest loop of late: frequency or a neighbour on this core moved by more than we compare.
 */
static bool ran_slow(struct quiet *quiet)
{
	uint64_t faster = quiet->reference_before, after = reference_ticks(quiet);

	if (after < faster)
		faster = after; /* one slow loop is an interrupt inside the loop, two are the CPU */
	return faster > quiet->reference_best + quiet->reference_best / 4;
}

bool quiet_round_end(struct quiet *quiet)
{
	bool slow = ran_slow(quiet), stolen = time_was_stolen(quiet), strayed = sched_getcpu() != quiet->cpu;

	quiet->taints.rounds++;
	quiet->taints.stolen += stolen;
	quiet->taints.strayed += !stolen && strayed;
	quiet->taints.slow += !stolen && !strayed && slow;
	return stolen || strayed || slow;
}

/* --- rests ------------------------------------------------------------------------------------------------------- */

/* A CPU that has been idle runs slowly until its governor looks again, every 10 ms (intel_pstate's sampling interval,
 * the usual rate limit of schedutil). */
static void warm_up(struct quiet *quiet)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + WARM_UP_NS;

	while (clock_ns(CLOCK_MONOTONIC) < end)
		reference_ticks(quiet);
}

void quiet_rested(struct quiet *quiet, uint64_t ns)
{
	quiet->started.wall_ns += ns;
	warm_up(quiet);
	read_stolen(quiet);
}

/* --- life -------------------------------------------------------------------------------------------------------- */

int quiet_start(struct quiet *quiet)
{
	int r;

	*quiet = (struct quiet){.stat_fd = -1};
	quiet_epoch(quiet);
	r = pin_here(quiet);
	if (r < 0)
		return r;
	quiet->stat_fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	read_stolen(quiet);
	quiet->started = quiet_mark();
	return 0;
}

void quiet_stop(struct quiet *quiet)
{
	if (quiet->stat_fd >= 0)
		close(quiet->stat_fd);
	quiet->stat_fd = -1;
}
