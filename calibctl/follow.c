/* Waiting for calibrd; see follow.h. */
#include "calibctl/follow.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "calibctl/job.h"
#include "calibctl/signals.h"
#include "calibrd/clock.h"

enum { BAR = 30, LINE = 160 };

/* A job that is not calibrd's any more while its end was not told. */
static const double patience_seconds = 10;

struct shown {
	bool terminal;
	int width;  /* of the line that will be rewritten; 0: there is none */
	int tenths; /* of the state that was shown last */
	char state[16], reason[512];
};

struct following {
	struct client *client;
	uint64_t job;
	double deadline, lost_since; /* NAN: not lost */
	sigset_t before;
	struct shown shown;
	struct followed *out;
};

/* --- showing ----------------------------------------------------------------------------------------------------- */

static void end_line(struct shown *shown)
{
	if (shown->width > 0)
		fputc('\n', stderr);
	shown->width = 0;
}

static void draw(struct shown *shown, const struct client_view *view)
{
	static const char full[BAR + 1] = "##############################";
	int filled = (int)(view->progress * BAR);
	char line[LINE];
	int width = snprintf(line, sizeof(line), "%s [%.*s%*s] %3.0f %%%s%s", view->state, filled, full, BAR - filled,
	                     "", 100 * view->progress, view->phase[0] != '\0' ? ", " : "", view->phase);

	fprintf(stderr, "\r%s%*s", line, width < shown->width ? shown->width - width : 0, "");
	shown->width = width;
	fflush(stderr);
}

static void say_line(struct shown *shown, const struct client_view *view, const char *reason)
{
	char words[JOB_WORDS];

	end_line(shown);
	job_words(view, words);
	fprintf(stderr, "calibctl: calibrd is %s%s%s\n", words, reason[0] != '\0' ? ": " : "", reason);
}

/* What has not changed is not said again, on a terminal the bar apart. */
static void show(struct shown *shown, const struct client_view *view)
{
	int tenths = (int)(10 * view->progress);
	bool measuring = job_is_measuring(view);
	bool news = strcmp(view->state, shown->state) != 0 || !job_says_same(view->reason, shown->reason);

	if (!job_is_pending(view))
		return; /* who waits tells the end */
	if (news || (measuring && !shown->terminal && tenths > shown->tenths))
		say_line(shown, view, news ? view->reason : "");
	if (measuring && shown->terminal)
		draw(shown, view);
	shown->tenths = tenths;
	strcpy(shown->state, view->state);
	strcpy(shown->reason, view->reason);
}

/* --- waiting ----------------------------------------------------------------------------------------------------- */

static double look(struct following *following)
{
	const struct client_view *view = &following->out->view;

	if (following->job == 0 || view->job == following->job) /* what comes after it is not waited for */
		show(&following->shown, view);
	if (following->job == 0)
		return job_is_pending(view) ? following->deadline - clock_seconds(CLOCK_MONOTONIC) : 0;
	if (view->job == following->job)
		following->lost_since = NAN;
	else if (isnan(following->lost_since))
		following->lost_since = clock_seconds(CLOCK_MONOTONIC);
	/* fmin() leaves out what is NAN. */
	return fmin(following->deadline, following->lost_since + patience_seconds) - clock_seconds(CLOCK_MONOTONIC);
}

/* 0 the end is there, FOLLOW_TIME_UP, -errno; else -EAGAIN. */
static int judge(const struct following *following, int looked, int listened, struct pc_why *why)
{
	bool over = following->job == 0 ? looked == 0 && !job_is_pending(&following->out->view)
	                                : following->out->end != NULL;

	if (over)
		return 0;
	if (looked != 0)
		return looked < 0 ? looked : -looked; /* properties are for everyone: a refusal is out of order */
	if (listened < 0)
		return listened;
	if (clock_seconds(CLOCK_MONOTONIC) >= following->deadline)
		return pc_why(why, FOLLOW_TIME_UP, "the time is up");
	if (clock_seconds(CLOCK_MONOTONIC) - following->lost_since >= patience_seconds)
		return pc_why(why, -ESRCH, "calibrd knows nothing of job %" PRIu64 " any more, and told no end of it",
		              following->job);
	return -EAGAIN;
}

/* Looks, then listens: what it told before it answered, or left, is known afterwards. */
static int step(struct following *following, struct pc_why *why)
{
	struct pc_why later;
	int looked = client_view(following->client, &following->out->view, why);
	double seconds = looked == 0 ? look(following) : 0;
	int listened = client_listen(following->client, fmax(0, seconds), &following->before, &later);

	following->out->end = client_end(following->client, following->job);
	if (looked == 0 && listened < 0)
		*why = later;
	return judge(following, looked, listened, why);
}

int follow(struct client *client, uint64_t job, double seconds, struct followed *out, struct pc_why *why)
{
	struct following following = {.client = client,
	                              .job = job,
	                              .deadline = clock_seconds(CLOCK_MONOTONIC) + seconds,
	                              .lost_since = NAN,
	                              .shown = {.terminal = isatty(STDERR_FILENO), .tenths = -1},
	                              .out = out};
	int r = -EAGAIN;

	memset(out, 0, sizeof(*out));
	signals_hold(&following.before);
	while (r == -EAGAIN)
		r = signals_caught != 0 ? pc_why(why, -EINTR, "interrupted") : step(&following, why);
	signals_release(&following.before);
	end_line(&following.shown);
	return r;
}
