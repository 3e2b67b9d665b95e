/* One time line of what the database tells; see history_line.h. */
#include "calibctl/history_line.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibctl/words.h"
#include "pageclear/policy.h"

/* --- order ------------------------------------------------------------------------------------------------------- */

static int64_t number_of(const struct history_event *event)
{
	if (event->calibration != NULL)
		return event->calibration->id;
	return event->published != NULL ? (int64_t)event->published->generation : event->verification->verification.id;
}

/* What follows from the other comes later, where both have the same second. */
static int rank_of(const struct history_event *event)
{
	return event->calibration != NULL ? 0 : event->published != NULL ? 1 : 2;
}

static int newest_first(const void *a, const void *b)
{
	const struct history_event *left = a, *right = b;

	if (left->at != right->at)
		return left->at > right->at ? -1 : 1;
	if (rank_of(left) != rank_of(right))
		return rank_of(right) - rank_of(left);
	return number_of(left) > number_of(right) ? -1 : 1;
}

int history_arrange(struct history *history, size_t most)
{
	size_t count = history->calibration_count + history->published_count + history->verification_count;
	struct history_event *event = calloc(count + 1, sizeof(*event));

	if (event == NULL)
		return -ENOMEM;
	history->events = event;
	for (size_t i = 0; i < history->calibration_count; i++) {
		const struct calibration *one = &history->calibrations[i];

		*event++ = (struct history_event){.at = one->finished > 0 ? one->finished : one->started,
		                                  .calibration = one};
	}
	for (size_t i = 0; i < history->published_count; i++)
		*event++ = (struct history_event){.at = history->published[i].at, .published = &history->published[i]};
	for (size_t i = 0; i < history->verification_count; i++)
		*event++ = (struct history_event){.at = history->verifications[i].verification.at,
		                                  .verification = &history->verifications[i]};
	qsort(history->events, count, sizeof(*history->events), newest_first);
	history->count = count < most ? count : most;
	history->topology = count > 0 ? history_topology(&history->events[0]) : NULL;
	return 0;
}

void history_release(struct history *history)
{
	for (size_t i = 0; i < history->calibration_count; i++)
		store_calibration_free(&history->calibrations[i]);
	for (size_t i = 0; i < history->verification_count; i++)
		store_verification_free(&history->verifications[i].verification);
	free(history->calibrations);
	free(history->published);
	free(history->verifications);
	free(history->events);
	*history = (struct history){0};
}

void history_sum_up(struct history_verification *out, const struct verified *series, size_t count)
{
	double sum = 0;

	out->series = count;
	for (size_t i = 0; i < count; i++) {
		sum += series[i].mean;
		if (i == 0 || series[i].mean > out->worst.mean)
			out->worst = series[i];
	}
	out->mean = count > 0 ? sum / (double)count : NAN;
}

const char *history_topology(const struct history_event *event)
{
	if (event->calibration != NULL)
		return event->calibration->topology;
	return event->published != NULL ? event->published->topology : event->verification->verification.topology;
}

/* --- words ------------------------------------------------------------------------------------------------------- */

static bool is_there(const char *text)
{
	return text != NULL && text[0] != '\0';
}

static void say_calibration(char out[HISTORY_WORDS], const struct calibration *calibration)
{
	long long id = calibration->id, seconds = calibration->finished - calibration->started;
	char knee[WORDS_SHORT];

	words_size(calibration->knee_bytes, knee);
	if (calibration->state == CALIBRATION_RUNNING) {
		words_append(out, HISTORY_WORDS, "calibration %lld, %s effort: running", id, calibration->effort);
		return;
	}
	if (calibration->state == CALIBRATION_FAILED) {
		words_append(out, HISTORY_WORDS, "calibration %lld, %s effort: failed after %lld s", id,
		             calibration->effort, seconds);
	} else {
		words_append(out, HISTORY_WORDS, "calibration %lld, %s effort: %lld s", id, calibration->effort,
		             seconds);
		if (calibration->knee_bytes > 0)
			words_append(out, HISTORY_WORDS, ", knee %s", knee);
		words_append(out, HISTORY_WORDS, ", quality %s", calibration->quality);
	}
	if (is_there(calibration->reasons))
		words_append(out, HISTORY_WORDS, " (%s)", calibration->reasons);
	if (is_there(calibration->faulted))
		words_append(out, HISTORY_WORDS, "; failed their trial: %s", calibration->faulted);
}

const char *history_standing(const struct history *history, const struct published *published)
{
	if (history->now.generation != published->generation)
		return NULL;
	if (history->now.state == NOW_RECORDED)
		return "in force";
	return history->now.state == NOW_EDITED ? "in force, edited since" : NULL;
}

static void say_published(char out[HISTORY_WORDS], const struct history *history, const struct published *published)
{
	static const struct {
		const char *source, *words;
	} sources[] = {{"calibration", "from calibration"},
	               {"restart", "published at a start, from calibration"},
	               {"rollback", "rolled back, to the rules of calibration"},
	               {"import", "imported; calibration"}};
	const char *words = published->source, *stands = history_standing(history, published);

	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		if (strcmp(published->source, sources[i].source) == 0)
			words = sources[i].words;
	words_append(out, HISTORY_WORDS, "generation %" PRIu64 ": ", published->generation);
	if (published->calibration > 0)
		words_append(out, HISTORY_WORDS, "%s %lld", words, (long long)published->calibration);
	else
		words_append(out, HISTORY_WORDS, "%s",
		             strcmp(published->source, "rollback") == 0 ? "rolled back" : published->source);
	if (stands != NULL)
		words_append(out, HISTORY_WORDS, "; %s", stands);
}

static void say_verification(char out[HISTORY_WORDS], const struct history_verification *verified)
{
	const struct verification *verification = &verified->verification;
	const struct verified *worst = &verified->worst;
	char mean[WORDS_SHORT], most[WORDS_SHORT];

	words_percent(verified->mean, mean);
	words_percent(worst->mean, most);
	words_append(out, HISTORY_WORDS, "verification %lld of ", (long long)verification->id);
	if (verification->generation > 0)
		words_append(out, HISTORY_WORDS, "generation %" PRIu64, verification->generation);
	else
		words_append(out, HISTORY_WORDS, "a policy other than those published");
	words_append(out, HISTORY_WORDS, ", %s effort: %s", verification->effort,
	             verification->passed ? "passed" : "failed");
	if (verified->series > 0) {
		words_append(out, HISTORY_WORDS, ", mean regret %s, at most %s (%s", mean, most,
		             pc_intent_name(worst->intent));
		if (worst->intent != PAGECLEAR_SCRUB)
			words_append(out, HISTORY_WORDS, ", %s", pc_prior_name(worst->prior));
		words_append(out, HISTORY_WORDS, ")");
	}
	if (is_there(verification->against))
		words_append(out, HISTORY_WORDS, "; against %s", verification->against);
}

void history_words(const struct history *history, const struct history_event *event, char out[HISTORY_WORDS])
{
	out[0] = '\0';
	if (event->calibration != NULL)
		say_calibration(out, event->calibration);
	else if (event->published != NULL)
		say_published(out, history, event->published);
	else
		say_verification(out, event->verification);
	if (history->topology != NULL && strcmp(history_topology(event), history->topology) != 0)
		words_append(out, HISTORY_WORDS, "; another topology: %s", history_topology(event));
}
