/*
 * How far a calibration is, for people: a line that rewrites itself on a terminal, a line every tenth elsewhere, and
 * systemd's STATUS=.
 */
#ifndef CALIBRD_PROGRESS_H
#define CALIBRD_PROGRESS_H

#include <stdbool.h>

struct progress {
	bool foreground; /* somebody waits in front of standard error */
	int last;        /* tenth that was said last */
};

/* what: "Measuring"; share: of the budget, 0..1; seconds: what is left of it. */
void progress_say(struct progress *progress, const char *what, unsigned epoch, unsigned epochs, double share,
                  double seconds);

/* Ends the line. */
void progress_end(struct progress *progress);

#endif
