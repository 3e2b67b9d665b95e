/* What systemd and the bus are told; see service_parts.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "calibrd/rest.h"
#include "calibrd/service_parts.h"

/* Before the text; calibrating and verifying have their progress instead. */
static const char *word_of(const char *state)
{
	static const char *const words[][2] = {
		{"starting", "Starting"},   {"waiting", "Waiting"}, {"calibrating", "Measuring"},
		{"verifying", "Verifying"}, {"idle", "Idle"},       {"failed", "Failed"}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i][0], state) == 0)
			return words[i][1];
	return state;
}

void standing_say(struct service *service, const char *state, const char *format, ...)
{
	struct standing *standing = &service->standing;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(standing->reason, sizeof(standing->reason), format, arguments);
	va_end(arguments);
	standing->state = state;
	standing->phase[0] = '\0';
	standing->progress = 0;
	sd_notifyf(0, "STATUS=%s: %s", word_of(state), standing->reason);
	bus_changed(service->bus);
}

void standing_progress(struct service *service)
{
	const struct run *run = &service->job.run;
	struct standing *standing = &service->standing;
	double left = (1 - run->share) * rest_wall_seconds(service->job.seconds, service->config.duty_percent);

	if (run->epochs == 0)
		return;
	snprintf(standing->phase, sizeof(standing->phase), "pass %u of %u", run->epoch + 1, run->epochs);
	standing->progress = run->share;
	progress_say(&service->progress, word_of(standing->state), run->epoch, run->epochs, run->share, left);
	bus_changed(service->bus);
}

/* What the database has is in force once this process has put it, or found it, in its place. */
static uint64_t generation_in_force(const struct service *service)
{
	return service->old != NULL && service->where[0] != '\0' ? service->old->generation : 0;
}

void standing_policy(struct service *service)
{
	uint64_t generation = generation_in_force(service);

	log_context(service->topology->id, generation);
	if (generation != service->told_generation || strcmp(service->where, service->told_path) != 0)
		bus_policy_changed(service->bus, generation, service->where);
	service->told_generation = generation;
	strcpy(service->told_path, service->where);
	bus_changed(service->bus);
}

void standing_view(void *context, struct bus_view *out)
{
	const struct service *service = context;
	const struct standing *standing = &service->standing;

	*out = (struct bus_view){
		.state = standing->state,
		.phase = standing->phase,
		.reason = standing->reason,
		.progress = standing->progress,
		.topology = service->topology != NULL ? service->topology->id : "",
		.generation = generation_in_force(service),
		.policy_path = service->where,
		.job = service->job.task != TASK_NONE ? service->job.number : 0,
	};
}
