/*
 * bench-regret [--effort EFFORT] [--seed N] POLICY...: measures once, at fresh sizes, and judges each policy on the
 * same measurements; of several also what each gains, side by side, and whether they agree, point by point. The word
 * `builtin` is the policy that the library has without any file. A report: it passes no verdict.
 */
#include <inttypes.h>
#include <math.h>
#include <pageclear/policy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "calibrd/memory.h"
#include "calibrd/stats.h"
#include "calibrd/topology.h"
#include "calibrd/trial.h"
#include "calibrd/verify.h"
#include "libpolicy/document.h"
#include "libpolicy/policy.h"

/* Design, "five calibrations agree": costs within this of each other, or within the floor of that point. */
static const double agreement = 0.03;

static const char builtin[] = "builtin"; /* as in $PAGECLEAR_POLICY */

struct bench {
	struct verify_config config;
	size_t count;
	const char *paths[VERIFY_POLICIES];
	const struct pageclear_policy *policies[VERIFY_POLICIES];
	struct verify_data data;
	struct verify_report reports[VERIFY_POLICIES];
};

/* --- what takes part --------------------------------------------------------------------------------------------- */

static int open_policy(struct bench *bench, size_t i, struct pc_why *why)
{
	struct pageclear_policy *policy;
	struct pc_document *document = NULL;
	int r;

	if (strcmp(bench->paths[i], builtin) == 0) {
		r = pageclear_policy_builtin(&bench->policies[i]);
		return r < 0 ? pc_why(why, r, "out of memory") : 0;
	}
	r = pc_policy_load(&policy, bench->paths[i], why);
	if (r == 0) {
		bench->policies[i] = policy;
		r = pc_document_read(&document, bench->paths[i], why);
	}
	if (r < 0) {
		struct pc_why reason = *why;

		return pc_why(why, r, "%s: %s", bench->paths[i], reason.text);
	}
	if (bench->config.knee_bytes == 0) /* all see the same victims: those of the first that knows a knee */
		bench->config.knee_bytes = document->knee_bytes;
	pc_document_free(document);
	return 0;
}

static int open_policies(struct bench *bench, struct pc_why *why)
{
	int r = 0;

	for (size_t i = 0; i < bench->count && r == 0; i++)
		r = open_policy(bench, i, why);
	return r;
}

static int describe_host(struct verify_config *config, struct pc_why *why)
{
	struct topology *topology;
	int r = topology_detect(&topology, &(struct topology_source){0}, why);

	if (r < 0)
		return r;
	config->l1_bytes = topology_cache_bytes(topology, 1);
	config->l2_bytes = topology_cache_bytes(topology, 2);
	config->memory_bytes = memory_available(NULL) / 4;
	config->memory_bytes -= config->memory_bytes < METER_OVERHEAD ? config->memory_bytes : METER_OVERHEAD;
	topology_free(topology);
	for (unsigned k = 0; k < pc_kernel_count; k++)
		if (pc_kernel_runs(&pc_kernels[k]) && trial_run(&pc_kernels[k], TRIAL_DEADLINE_MS) == TRIAL_PASSED)
			config->kernels |= 1u << k;
	return 0;
}

static int measure(struct bench *bench, struct pc_why *why)
{
	struct meter *meter = NULL;
	int r = describe_host(&bench->config, why);

	bench->config.policies = bench->policies;
	bench->config.policy_count = bench->count;
	bench->config.unhinted = true;
	if (r == 0)
		r = meter_real_new(&meter, NULL, why);
	if (r == 0)
		r = verify_measure(meter, &bench->config, &bench->data, why);
	meter_free(meter);
	return r;
}

/* --- one policy -------------------------------------------------------------------------------------------------- */

static const char *series_name(unsigned intent, enum pc_prior prior)
{
	static char name[32];

	snprintf(name, sizeof(name), "%s%s%s", pc_intent_name(intent), intent == PAGECLEAR_SCRUB ? "" : ", ",
	         intent == PAGECLEAR_SCRUB ? "" : pc_prior_name(prior));
	return name;
}

/* Cost over libc's as a factor of gain. */
static double gain(unsigned intent, double own)
{
	if (intent != PAGECLEAR_SCRUB)
		return exp(-own);
	return 1 / fmax(0.05, 1 + own);
}

/* "1.20x", or "-" for what could not be told. */
static void print_gain(const char *name, unsigned intent, double own)
{
	if (isnan(own))
		printf("  %s     - ", name);
	else
		printf("  %s %5.2fx", name, gain(intent, own));
}

static void print_points(const struct bench *bench, const struct pageclear_policy *policy, const struct verified *told)
{
	for (size_t i = 0; i < bench->data.count; i++) {
		const struct verify_point *point = &bench->data.points[i];
		struct verify_outcome at;

		if (!verify_point_serves(point, told->intent) ||
		    (point->shape != VERIFY_SCRUB && (point->shape == VERIFY_CACHED) != (told->prior == PC_CACHED)))
			continue;
		verify_point_judge(point, told->intent, policy, &at);
		printf("  %-14s %9" PRIu64 " B  regret %+6.1f %%  floor %4.1f %%",
		       series_name(told->intent, told->prior), point->bytes, 100 * at.regret, 100 * at.floor);
		print_gain("gain", told->intent, at.own);
		print_gain("unhinted", told->intent, at.unhinted);
		print_gain("best", told->intent, at.best);
		printf("  %-9s (best %s), %zu rounds\n", pc_kernels[at.chosen.kernel].name,
		       pc_kernels[at.better.kernel].name, point->rounds);
	}
}

static int print_policy(struct bench *bench, size_t i, struct pc_why *why)
{
	struct verify_report *report = &bench->reports[i];
	int r = verify_judge(&bench->data, bench->policies[i], VERIFY_TOLERANCE / 100.0, report, why);

	printf("== %s\n", bench->paths[i]);
	for (size_t s = 0; s < report->count && r == 0; s++) {
		const struct verified *told = &report->series[s].told;

		print_points(bench, bench->policies[i], told);
		printf("%-14s regret: mean %.1f %%, p95 %.1f %%, worst %.1f %% at %" PRIu64
		       " B; floor: mean %.1f %%, p95 %.1f %%; gain: %.2fx, best %.2fx",
		       series_name(told->intent, told->prior), 100 * told->mean, 100 * told->p95, 100 * told->worst,
		       told->worst_bytes, 100 * told->floor, 100 * told->floor_p95, told->gain, told->best_gain);
		if (!isnan(told->unhinted))
			printf(", unhinted %.2fx", told->unhinted);
		puts(told->passed ? ": within" : ": BEYOND");
	}
	return r;
}

/* --- side by side ---------------------------------------------------------------------------------------------------
 */

static void print_row(const struct bench *bench, size_t s)
{
	const struct verified *first = &bench->reports[0].series[s].told;

	printf("  %-14s", series_name(first->intent, first->prior));
	for (size_t i = 0; i < bench->count; i++) {
		const struct verified *told = &bench->reports[i].series[s].told;

		printf("  %5.2fx  %5.1f %%  ", told->gain, 100 * told->mean);
		if (isnan(told->unhinted))
			printf("     -");
		else
			printf("%5.2fx", told->unhinted);
	}
	printf("  %5.2fx\n", first->best_gain);
}

/* What each policy is worth: its gain over libc, its mean regret, and its gain where nobody hints; and what the best
 * kernel at every size would gain. */
static void print_worth(const struct bench *bench)
{
	printf("== side by side: gain, regret, gain unhinted; best possible last\n  %-14s", "");
	for (size_t i = 0; i < bench->count; i++) {
		const char *slash = strrchr(bench->paths[i], '/');

		printf("  %-24.24s", slash == NULL ? bench->paths[i] : slash + 1);
	}
	puts("  best");
	for (size_t s = 0; s < bench->reports[0].count; s++)
		print_row(bench, s);
}

/* --- all of them ------------------------------------------------------------------------------------------------- */

/* How far the policies' costs lie apart at a point. */
struct spread {
	double apart, floor;
	struct interval sure; /* 95 %, of the dearest choice over the cheapest */
};

/* False if it cannot be told. */
static bool spread(const struct bench *bench, const struct verify_point *point, unsigned intent, struct spread *out)
{
	struct verify_outcome least = {.own = INFINITY}, most = {.own = -INFINITY};

	for (size_t i = 0; i < bench->count; i++) {
		struct verify_outcome at;

		if (!verify_point_judge(point, intent, bench->policies[i], &at))
			return false;
		if (at.own < least.own)
			least = at;
		if (at.own > most.own)
			most = at;
	}
	*out = (struct spread){most.own - least.own, least.floor,
	                       verify_point_between(point, intent, &most.chosen, &least.chosen)};
	return true;
}

static bool agree(const struct spread *spread)
{
	return spread->apart <= fmax(agreement, spread->floor);
}

static void print_agreement(const struct bench *bench)
{
	unsigned all = 0, told = 0, agreed = 0, unsure = 0;

	for (size_t i = 0; i < bench->data.count; i++)
		for (unsigned intent = PAGECLEAR_HOT; intent <= PAGECLEAR_SCRUB; intent++) {
			const struct verify_point *point = &bench->data.points[i];
			struct spread at;

			if (!verify_point_serves(point, intent))
				continue;
			all++;
			if (!spread(bench, point, intent, &at))
				continue;
			told++;
			if (agree(&at)) {
				agreed++;
				continue;
			}
			unsure += at.sure.low <= agreement ? 1 : 0;
			printf("  %s at %" PRIu64 " B: %.1f %% apart (surely %.1f %%), floor %.1f %%:",
			       series_name(intent, point->shape == VERIFY_CACHED ? PC_CACHED : PC_FLUSHED),
			       point->bytes, 100 * at.apart, 100 * at.sure.low, 100 * at.floor);
			for (size_t p = 0; p < bench->count; p++)
				printf(" %s",
				       pc_kernels[verify_choice(bench->policies[p], point->shape, point->bytes, intent)
				                          .kernel]
				               .name);
			putchar('\n');
		}
	printf("== agreement: at %u of %u points (%.1f %%) all choices cost within 3 %% of each other or within the "
	       "floor; at %u of the others that they cost more is not sure (95 %%); %u more could not be measured "
	       "undisturbed\n",
	       agreed, told, told == 0 ? 0.0 : 100.0 * agreed / told, unsure, all - told);
}

/* --- the command line -------------------------------------------------------------------------------------------- */

static int parse(struct bench *bench, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--effort") == 0 && i + 1 < argc)
			bench->config.effort = effort_find(argv[++i]);
		else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
			bench->config.seed = strtoull(argv[++i], NULL, 0);
		else if (argv[i][0] == '-' || bench->count == VERIFY_POLICIES)
			return -1;
		else
			bench->paths[bench->count++] = argv[i];
	}
	return bench->count > 0 && bench->config.effort < EFFORTS ? 0 : -1;
}

int main(int argc, char **argv)
{
	static struct bench bench = {.config = {.effort = EFFORT_STANDARD}}; /* too large for a stack */
	struct pc_why why = {""};
	int r;

	bench.config.seed = (uint64_t)time(NULL);
	if (parse(&bench, argc, argv) < 0) {
		fprintf(stderr,
		        "usage: %s [--effort quick|standard|thorough] [--seed N] POLICY.YAML|builtin... (%d at most)\n",
		        argv[0], VERIFY_POLICIES);
		return 2;
	}
	r = open_policies(&bench, &why);
	if (r == 0)
		r = measure(&bench, &why);
	if (r == 0)
		printf("fresh sizes, %.0f s, seed %" PRIu64 "; best kernel picked and valued on different epochs\n",
		       verify_seconds(bench.config.effort), bench.config.seed);
	for (size_t i = 0; i < bench.count && r == 0; i++)
		r = print_policy(&bench, i, &why);
	if (r == 0 && bench.count > 1) {
		print_worth(&bench);
		print_agreement(&bench);
	}
	verify_data_free(&bench.data);
	for (size_t i = 0; i < bench.count; i++)
		pageclear_policy_close(bench.policies[i]);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", argv[0], why.text);
	return r < 0;
}
