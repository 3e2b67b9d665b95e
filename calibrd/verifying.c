/* One verification: what the policy in force costs at fresh sizes, measured by the child. See service_parts.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "calibrd/log.h"
#include "calibrd/service_parts.h"

/* --- the end ------------------------------------------------------------------------------------------------------ */

static int remember(struct service *service, struct pc_why *why)
{
	const struct verify_report *report = &service->job.run.report;
	struct verification *row = &service->job.verification;
	struct verified series[VERIFY_SERIES];

	for (size_t i = 0; i < report->count; i++)
		series[i] = report->series[i].told;
	row->at = time(NULL);
	row->passed = report->passed;
	return store_verify(service->store, row, series, report->count, why);
}

/* What is wrong, in one line. */
static void tell(const struct verify_report *report, char *text, size_t size)
{
	const struct verified *worst = verify_worst(report, VERIFY_TOLERANCE / 100.0);

	if (worst == NULL)
		snprintf(text, size, "within tolerance everywhere");
	else
		snprintf(text, size,
		         "%s, %s: regret %.1f %% in the mean (noise %.1f %%), at worst %.1f %% at %llu bytes",
		         pc_intent_name(worst->intent), pc_prior_name(worst->prior), 100 * worst->mean,
		         100 * worst->floor, 100 * worst->worst, (unsigned long long)worst->worst_bytes);
}

int verifying_conclude(struct service *service, struct pc_why *why)
{
	struct job *job = &service->job;
	char text[160];
	int r;

	r = remember(service, why);
	if (r < 0)
		return r;
	agenda_went_well(&service->agenda, TASK_VERIFY);
	tell(&job->run.report, text, sizeof(text));
	if (job->run.report.passed)
		log_info("verification %lld: %s", (long long)job->verification.id, text);
	else
		log_event(LOG_VERIFICATION_EXCEEDED, LOG_LEVEL_WARNING, "verification %lld: %s",
		          (long long)job->verification.id, text);
	bus_verification_finished(service->bus, job->number, job->run.report.passed ? "passed" : "beyond",
	                          job->verification.id, text);
	return 0;
}

int verifying_refuted(struct service *service, const struct pc_why *finding, struct pc_why *why)
{
	int r = settle_bar(service->store, service->topology->id, service->job.run.faulted, why);

	log_event(LOG_VERIFICATION_EXCEEDED, LOG_LEVEL_WARNING, "%s", finding->text);
	if (r == 0)
		bus_verification_finished(service->bus, service->job.number, "beyond", 0, finding->text);
	return r;
}

void verifying_failed(struct service *service, const char *outcome, const struct pc_why *why)
{
	bus_verification_finished(service->bus, service->job.number, outcome, 0, why->text);
}

/* --- the beginning ------------------------------------------------------------------------------------------------ */

static int make_order(const struct service *service, enum effort effort, struct order *order, struct pc_why *why)
{
	int r = job_order(service, ORDER_VERIFY, order, why);

	if (r < 0)
		return r;
	order->effort = (uint32_t)effort;
	order->knee_bytes = service->old->knee_bytes;
	order->tolerance = VERIFY_TOLERANCE / 100.0;
	snprintf(order->policy, sizeof(order->policy), "%s", service->where);
	return 0;
}

static void begin_record(struct service *service, enum effort effort)
{
	struct verification *row = &service->job.verification;

	*row = (struct verification){.generation = service->old->generation, .soft = service->topology->soft};
	snprintf(row->topology, sizeof(row->topology), "%s", service->topology->id);
	snprintf(row->effort, sizeof(row->effort), "%s", effort_limits[effort].name);
}

int verifying_start(struct service *service, enum effort effort, struct pc_why *why)
{
	struct job *job = &service->job;
	struct order order;
	int r;

	if (service->old == NULL || service->where[0] == '\0')
		return pc_why(why, -ENOENT, "no policy for this host is published: there is nothing to verify");
	r = make_order(service, effort, &order, why);
	if (r < 0)
		return r;
	begin_record(service, effort);
	job->task = TASK_VERIFY;
	job->wish = service->agenda.wish;
	job->number = ++service->jobs;
	job->seconds = verify_seconds(effort);
	log_info("verifying for about %.0f s (effort %s)", job->seconds, job->verification.effort);
	standing_say(service, "verifying", "%s", service->agenda.reason);
	r = job_start(service, &order, why);
	if (r < 0)
		job_abandon(service, "failed", why);
	return r;
}
