/* Disturbances; see quiet.h. */
#include "calibrd/quiet.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kernels/ticks.h"

enum {
	STEAL_EVERY_NS = 10000000, /* /proc/stat counts in 10 ms units: reading it more often tells nothing */
	REFERENCE_ROUNDS = 250,    /* half of what the best loop is the best of: some seconds of a calibration */
	STAT_BYTES = 65536,        /* enough for the lines of some 600 CPUs; beyond, no time counts as stolen */
};

uint64_t quiet_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --- samples ----------------------------------------------------------------------------------------------------- */

struct quiet_mark quiet_mark(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (struct quiet_mark){usage.ru_nivcsw, sched_getcpu(), quiet_clock_ns(CLOCK_MONOTONIC),
	                           quiet_clock_ns(CLOCK_THREAD_CPUTIME_ID)};
}

bool quiet_disturbed(const struct quiet_mark *before, double timed_ns)
{
	struct quiet_mark now = quiet_mark();
	double lost = (double)(now.wall_ns - before->wall_ns) - (double)(now.cpu_ns - before->cpu_ns);

	return now.cpu != before->cpu || (now.switches != before->switches && lost > timed_ns / 100);
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
	quiet->stolen_read_ns = quiet->stolen_since_ns = quiet_clock_ns(CLOCK_MONOTONIC);
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
	uint64_t now = quiet_clock_ns(CLOCK_MONOTONIC);

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
	cpu_set_t set;
	int cpu = sched_getcpu();

	if (cpu < 0)
		return -errno;
	if (cpu >= CPU_SETSIZE)
		return -EOVERFLOW;
	quiet->cpu = cpu;
	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) < 0 ? -errno : 0;
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
bool quiet_round_end(struct quiet *quiet)
{
	uint64_t worst = quiet->reference_before, after = reference_ticks(quiet);

	if (after < worst)
		worst = after; /* one slow loop is an interrupt inside the loop, two are the CPU */
	return time_was_stolen(quiet) || sched_getcpu() != quiet->cpu ||
	       worst > quiet->reference_best + quiet->reference_best / 4;
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
	return 0;
}

void quiet_stop(struct quiet *quiet)
{
	if (quiet->stat_fd >= 0)
		close(quiet->stat_fd);
	quiet->stat_fd = -1;
}
