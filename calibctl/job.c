#include "calibctl/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double year = 366 * 86400;

static bool is_one_of(const char *word, const char *const words[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(word, words[i]) == 0)
			return true;
	return false;
}

bool job_is_measuring(const struct client_view *view)
{
	static const char *const measuring[] = {"calibrating", "verifying"};

	return is_one_of(view->state, measuring, sizeof(measuring) / sizeof(measuring[0]));
}

bool job_is_pending(const struct client_view *view)
{
	bool waits = strcmp(view->state, "waiting") == 0 && view->generation == 0;

	return view->job != 0 || job_is_measuring(view) || waits || strcmp(view->state, "starting") == 0;
}

void job_words(const struct client_view *view, char out[JOB_WORDS])
{
	if (!job_is_measuring(view)) {
		snprintf(out, JOB_WORDS, "%s", view->state);
		return;
	}
	snprintf(out, JOB_WORDS, "%s, %.0f %%%s%s", view->state, 100 * view->progress,
	         view->phase[0] != '\0' ? ", " : "", view->phase);
}

bool job_says_same(const char *a, const char *b)
{
	static const char figures[] = "0123456789.";

	for (;; a++, b++) {
		a += strspn(a, figures);
		b += strspn(b, figures);
		if (*a != *b || *a == '\0')
			return *a == *b;
	}
}

enum outcome job_judge(const struct client_end *end)
{
	static const char *const well[] = {"good", "emulated", "passed"};

	if (is_one_of(end->outcome, well, sizeof(well) / sizeof(well[0])))
		return DONE;
	return end->verifying && strcmp(end->outcome, "failed") == 0 ? UNREADABLE : PROBLEM;
}

/* strtod() takes signs, hexadecimals and words besides. */
bool job_parse_seconds(const char *text, double *seconds)
{
	char *end = NULL;

	*seconds = strtod(text, &end);
	return text[strspn(text, "0123456789.")] == '\0' && end != text && *end == '\0' && *seconds <= year;
}
