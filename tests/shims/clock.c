/*
 * shim-clock.so, for LD_PRELOAD: the wall clock, set to what the file $SHIM_CLOCK says (seconds since 1970) and
 * standing still there; the right time while the file is absent or empty. Other clocks are left alone, as setting the
 * time does.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

typedef int clock_function(clockid_t, struct timespec *);

static int is_set(time_t *now)
{
	const char *path = getenv("SHIM_CLOCK");
	FILE *file = path != NULL ? fopen(path, "re") : NULL;
	long long seconds;
	int found = file != NULL && fscanf(file, "%lld", &seconds) == 1;

	if (file != NULL)
		fclose(file);
	if (found)
		*now = (time_t)seconds;
	return found;
}

static void real(clockid_t clock, struct timespec *now)
{
	static clock_function *next;

	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "clock_gettime");
	next(clock, now);
}

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int clock_gettime(clockid_t clock, struct timespec *now)
{
	real(clock, now);
	if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
		is_set(&now->tv_sec);
	return 0;
}

EXPORTED time_t time(time_t *out)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (out != NULL)
		*out = now.tv_sec;
	return now.tv_sec;
}

EXPORTED int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	*out = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
	return 0;
}
