/* Progress; see progress.h. */
#include "calibrd/progress.h"

#include <stdio.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "calibrd/log.h"

enum { BAR = 40 };

static void draw(unsigned epoch, unsigned epochs, double share, double seconds)
{
	static const char full[BAR + 1] = "########################################";
	int width = (int)(share * BAR);

	fprintf(stderr, "\rmeasuring [%.*s%*s] %3.0f %%, pass %u of %u, %.0f s left ", width, full, BAR - width, "",
	        100 * share, epoch + 1, epochs, seconds);
	fflush(stderr);
}

void progress_say(struct progress *progress, const char *what, unsigned epoch, unsigned epochs, double share,
                  double seconds)
{
	int tenth = 1 + (int)(10 * share);

	sd_notifyf(0, "STATUS=%s: pass %u of %u, %.0f %%, about %.0f s left", what, epoch + 1, epochs, 100 * share,
	           seconds);
	if (!progress->foreground)
		return;
	if (isatty(STDERR_FILENO))
		draw(epoch, epochs, share, seconds);
	else if (tenth > progress->last)
		log_info("measuring: %.0f %%, pass %u of %u, about %.0f s left", 100 * share, epoch + 1, epochs,
		         seconds);
	progress->last = tenth;
}

void progress_end(struct progress *progress)
{
	if (progress->foreground && progress->last > 0 && isatty(STDERR_FILENO))
		fputc('\n', stderr);
	progress->last = 0;
}
