/* One calibration: the child's start, its records, what becomes of them. See service_parts.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "calibrd/crew.h"
#include "calibrd/log.h"
#include "calibrd/memory.h"
#include "calibrd/meter.h"
#include "calibrd/service_parts.h"
#include "calibrd/settle.h"
#include "calibrd/surroundings.h"
#include "calibrd/verdict.h"

/* As calibrd.yaml has it: with less nothing beyond the caches' smallest could be measured. */
static const uint64_t least_memory = 16 << 20;

/* --- the end ------------------------------------------------------------------------------------------------------ */

void measuring_stop(struct service *service)
{
	progress_end(&service->progress);
	service->records = sd_event_source_disable_unref(service->records);
	service->deadline = sd_event_source_disable_unref(service->deadline);
	if (service->running)
		run_free(&service->run);
	service->running = false;
	service->before = look_free(service->before);
	/* Texts of conclude()'s, which is over. */
	service->calibration.reasons = service->calibration.faulted = service->calibration.surroundings = NULL;
}

static int abandon(struct service *service, const struct pc_why *why)
{
	struct pc_why trouble;

	measuring_stop(service);
	if (store_fail(service->store, service->calibration.id, why->text, &trouble) < 0)
		log_error("%s", trouble.text);
	return service_fail(service, why);
}

static void name_faulted(uint32_t faulted, char *text, size_t size)
{
	size_t at = 0;

	text[0] = '\0';
	for (unsigned k = 0; k < pc_kernel_count && at < size; k++)
		if ((faulted >> k & 1) != 0)
			at += (size_t)snprintf(text + at, size - at, "%s%s", at > 0 ? " " : "", pc_kernels[k].name);
	if (faulted != 0)
		log_warning("left out, since their trial failed on this host: %s", text);
}

static int cannot_look(struct pc_why *why, int r)
{
	return pc_why(why, r, "cannot read in /proc and /sys what else goes on here: %s", strerror(-r));
}

/* What the record of a calibration points to while it is written. */
struct notes {
	struct verdict verdict;
	char faulted[PC_KERNEL_MAX * PC_KERNEL_NAME], surroundings[SURROUNDINGS_TEXT];
};

/* After the child's end, which adds its time to ours. */
static int look_around(const struct service *service, struct surroundings *out, struct pc_why *why)
{
	struct look *after = NULL;
	int r = look_new(&after, NULL);

	if (r == 0)
		r = surroundings_find(out, service->before, after, service->run.taints.cpu, NULL);
	look_free(after);
	return r < 0 ? cannot_look(why, r) : 0;
}

static int judge(const struct service *service, struct notes *notes, struct pc_why *why)
{
	const struct run *run = &service->run;
	struct surroundings around;
	int r = look_around(service, &around, why);

	if (r < 0)
		return r;
	surroundings_text(&around, &run->taints, notes->surroundings);
	verdict_reach(&(struct verdict_facts){.data = &run->data,
	                                      .kernels = run->passed,
	                                      .tainted = run_tainted(run),
	                                      .emulated = strstr(service->topology->hypervisor, "TCG") != NULL,
	                                      .taints = &run->taints,
	                                      .surroundings = &around},
	              &notes->verdict);
	name_faulted(run->faulted, notes->faulted, sizeof(notes->faulted));
	return 0;
}

static int remember(struct service *service, struct notes *notes, struct pc_why *why)
{
	struct run *run = &service->run;
	struct calibration *calibration = &service->calibration;
	int r = judge(service, notes, why);

	if (r < 0)
		return r;
	calibration->state = CALIBRATION_DONE;
	calibration->finished = time(NULL);
	calibration->knee_bytes = run_knee(run);
	snprintf(calibration->quality, sizeof(calibration->quality), "%s", notes->verdict.quality);
	calibration->reasons = notes->verdict.reasons;
	calibration->faulted = notes->faulted;
	calibration->surroundings = notes->surroundings;
	log_info("quality: %s (%s)", notes->verdict.quality, notes->verdict.reasons);
	r = settle_probe(&service->config, &run->data, &run->probes, calibration, why);
	return r < 0 ? r : store_finish(service->store, calibration, &run->data, why);
}

static int conclude(struct service *service)
{
	struct notes notes;
	struct pc_why why;
	int r = 0;

	if (!settle_has_rounds(&service->run.data))
		r = pc_why(&why, -ENODATA,
		           "no sample was taken undisturbed in time: this host is too slow or too busy for effort %s",
		           service->calibration.effort);
	if (r == 0)
		r = remember(service, &notes, &why);
	if (r < 0)
		return abandon(service, &why);
	if (service_worth_publishing(service, &service->calibration))
		r = settle(&(struct settlement){.config = &service->config,
		                                .store = service->store,
		                                .topology = service->topology,
		                                .calibration = &service->calibration,
		                                .data = &service->run.data,
		                                .old = service->old,
		                                .source = "calibration",
		                                .where = service->where},
		           &why);
	if (r >= 0)
		r = service_refresh_old(service, &why);
	measuring_stop(service);
	if (r >= 0 && service->again)
		return service_look_again(service);
	return r < 0 ? service_fail(service, &why) : service_rest(service);
}

static int on_records(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct service *service = context;
	struct pc_why why;
	int r = run_read(&service->run, &why);

	(void)source;
	(void)fd;
	(void)events;
	if (r < 0)
		return abandon(service, &why);
	if (r == 1)
		return conclude(service);
	if (service->run.epochs > 0)
		progress_say(&service->progress, service->run.epoch, service->run.epochs, service->run.share,
		             (1 - service->run.share) * service->seconds);
	return 0;
}

static int on_deadline(sd_event_source *source, uint64_t now, void *context)
{
	struct pc_why why;

	(void)source;
	(void)now;
	pc_why_say(&why, "the measuring process did not end in time and was killed");
	return abandon(context, &why);
}

/* --- a calibration begins ---------------------------------------------------------------------------------------- */

static int make_order(const struct service *service, struct order *order, struct pc_why *why)
{
	uint64_t most = service->config.memory_most_bytes, available = memory_available(NULL) / 4;

	if (available == 0)
		return pc_why(why, -ENOMEM, "cannot tell how much memory is available: is /proc mounted?");
	if (available < least_memory)
		return pc_why(why, -ENOMEM,
		              "only %llu MiB of memory for measuring (a quarter of what is available), %llu are needed",
		              (unsigned long long)available >> 20, (unsigned long long)least_memory >> 20);

	*order = (struct order){
		.magic = ORDER_MAGIC,
		.effort = (uint32_t)service->config.effort,
		.memory_bytes = (most > 0 && most < available ? most : available) - METER_OVERHEAD,
		.l1_bytes = topology_cache_bytes(service->topology, 1),
		.l2_bytes = topology_cache_bytes(service->topology, 2),
		.llc_bytes = topology_cache_bytes(service->topology, 0),
		.seed = (uint64_t)time(NULL),
		.excluded = service->config.exclude,
		.keep = service->old != NULL ? settle_named(service->old) : 0,
		.nice = service->options->once ? 0 : 5,
		.scrub_weight = service->config.scrub_weight,
	};
	return 0;
}

static int watch(struct service *service)
{
	double seconds = run_patience_seconds(service->seconds);
	int r = sd_event_add_io(service->event, &service->records, service->run.records, EPOLLIN, on_records, service);

	if (r >= 0)
		r = sd_event_add_time_relative(service->event, &service->deadline, CLOCK_MONOTONIC,
		                               (uint64_t)(seconds * 1e6), 0, on_deadline, service);
	return r;
}

/* More threads than a quota has CPUs would throttle themselves, and make noisy what one alone measures well. */
static uint32_t whole_cpus(double quota)
{
	return isfinite(quota) ? (uint32_t)fmin(fmax(1, floor(quota)), CREW_MOST) : 0;
}

int measuring_start(struct service *service)
{
	struct calibration *calibration = &service->calibration;
	struct order order;
	struct pc_why why;
	int r = make_order(service, &order, &why);

	if (r < 0)
		return service_fail(service, &why);
	*calibration = (struct calibration){.started = time(NULL), .soft = service->topology->soft};
	snprintf(calibration->topology, sizeof(calibration->topology), "%s", service->topology->id);
	snprintf(calibration->effort, sizeof(calibration->effort), "%s", effort_limits[service->config.effort].name);
	r = store_begin(service->store, service->topology, calibration, &why);
	if (r < 0)
		return service_fail(service, &why);
	service->force = service->again = false;
	service->seconds = effort_limits[service->config.effort].seconds;
	log_info("measuring for about %.0f s (effort %s)", service->seconds, calibration->effort);
	service->running = true;
	r = look_new(&service->before, NULL);
	if (r == 0)
		order.threads_most = whole_cpus(service->before->quota);
	r = r < 0 ? cannot_look(&why, r) : run_start(&service->run, &order, &why);
	if (r == 0 && (r = watch(service)) < 0)
		pc_why(&why, r, "cannot watch the measuring process: %s", strerror(-r));
	return r < 0 ? abandon(service, &why) : 0;
}
