/* Disturbances from outside, their limits and their words; see verdict_parts.h. */
#include <math.h>
#include <stdio.h>

#include "calibrd/verdict_parts.h"

/*
 * Shares of the time of a calibration beyond which its ratios are no longer the host's own.
 *
 * Time that was taken: samples that lost some are dropped, but what ran meanwhile has used the caches, and a quota lets
 * a burst run at a speed that a longer one would not have.
 * Pressure on memory: pages are being reclaimed, which costs bandwidth and breaks huge pages up.
 * Other processes: how much of caches and bandwidth they use is not known, only for how long they ran. On a Skylake-SP
 * 8 of 36 threads that all clear have used up the memory of their socket (reference/skylakesp-threads.csv), and most
 * work streams through memory for part of its time only: a third of the CPUs that share the cache with the measuring
 * one is where ratios begin to move. So on a guest with two CPUs one busy neighbour is too much, on a cache with 64 one
 * is nothing. CPUs of other caches share the memory only: a half. Threads of the same core share everything: a third of
 * one.
 */
static const double most_throttled = 0.01, most_stolen = 0.02, most_pressure = 0.05, most_core = 1.0 / 3,
		    most_cache = 1.0 / 3, most_host = 0.5;

/* Of the rounds. The reference loop's best is forgotten at each epoch: this is a clock that moves within one. */
static const double most_slow = 0.2;

/* Of the time since the meter began, its thread was stopped, or others ran on its CPU. What was measured is
 * undisturbed, but it is less than was planned, and all of it beside a neighbour. */
static const double most_lost = 0.1;

static const double worth_saying = 0.005; /* of the samples or rounds dropped */

static double part(uint32_t some, uint32_t all)
{
	return all > 0 ? (double)some / all : 0;
}

/* Adds " (lost time 3.0 %, another CPU 0.9 %)". */
void verdict_taints(const struct verdict_facts *facts, struct verdict *out)
{
	const struct taints *taints = facts->taints;
	const char *between = " (";

	if (taints == NULL)
		return;
	const struct {
		const char *what;
		double share;
	} reasons[] = {
		{"lost time", part(taints->lost, taints->samples)},
		{"another CPU", part(taints->moved, taints->samples) + part(taints->strayed, taints->rounds)},
		{"stolen time", part(taints->stolen, taints->rounds)},
		{"a slow CPU", part(taints->slow, taints->rounds)},
	};
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].share >= worth_saying) {
			verdict_say(out, "%s%s %.1f %%", between, reasons[i].what, 100 * reasons[i].share);
			between = ", ";
		}
	if (between[0] == ',')
		verdict_say(out, ")");
}

static bool beyond(double share, double most)
{
	return share > most; /* never for NaN, the unknown */
}

/* The nearest neighbours speak for all: who is busy there is in the counts of the others, too. Where it is not known
 * which CPUs share the cache all of them may. */
static bool others_were_busy(const struct surroundings *around, struct verdict *out)
{
	double host = isnan(around->busy_cache) ? most_cache : most_host;

	if (beyond(around->busy_core, most_core))
		verdict_say(out, "; other processes kept the other threads of this core busy for %.0f %% of the time",
		            100 * around->busy_core);
	else if (beyond(around->busy_cache, most_cache))
		verdict_say(out, "; other processes kept the other CPUs of this cache busy for %.0f %% of the time",
		            100 * around->busy_cache);
	else if (beyond(around->busy_host, host))
		verdict_say(out, "; other processes kept the other CPUs busy for %.0f %% of the time",
		            100 * around->busy_host);
	else
		return false;
	return true;
}

static bool was_throttled(const struct surroundings *around, struct verdict *out)
{
	if (!beyond(around->throttled, most_throttled))
		return false;
	verdict_say(out, "; a CPU quota");
	if (isfinite(around->quota))
		verdict_say(out, " of %.2g CPUs", around->quota);
	verdict_say(out, " stopped this group of processes for %.0f %% of the time", fmax(1, 100 * around->throttled));
	return true;
}

bool verdict_noise(const struct verdict_facts *facts, struct verdict *out)
{
	const struct surroundings *around = facts->surroundings;
	double lost = facts->taints != NULL ? part(facts->taints->lost_ms, facts->taints->passed_ms) : NAN;
	double slow = facts->taints != NULL ? part(facts->taints->slow, facts->taints->rounds) : NAN;
	bool noisy = false;

	if (beyond(lost, most_lost)) {
		verdict_say(out, "; the measuring thread did not run for %.0f %% of the time", 100 * lost);
		noisy = true;
	}
	if (beyond(slow, most_slow)) {
		verdict_say(out, "; the CPU ran slower than its best in %.0f %% of the rounds", 100 * slow);
		noisy = true;
	}
	if (around == NULL)
		return noisy;
	noisy |= was_throttled(around, out);
	if (beyond(around->stolen, most_stolen)) {
		verdict_say(out, "; the hypervisor took %.1f %% of the time", 100 * around->stolen);
		noisy = true;
	}
	if (beyond(around->some[PRESSURE_MEMORY], most_pressure)) {
		verdict_say(out, "; processes waited for memory for %.0f %% of the time",
		            100 * around->some[PRESSURE_MEMORY]);
		noisy = true;
	}
	return others_were_busy(around, out) || noisy;
}

void verdict_clock(const struct verdict_facts *facts, struct verdict *out)
{
	const struct surroundings *around = facts->surroundings;

	if (around == NULL)
		return;
	if (around->governor[0] != '\0')
		verdict_say(out, "; governor %s", around->governor);
	if (around->turbo >= 0)
		verdict_say(out, "%s turbo %s", around->governor[0] != '\0' ? "," : ";",
		            around->turbo > 0 ? "on" : "off");
	if (around->mains == 0)
		verdict_say(out, "; on battery");
}
