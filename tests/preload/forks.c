/*
 * Threads that clear and fork all the time, while a signal's handler clears as well: every child and every thread finds
 * its own bytes zero. With libpolicy linked in (-DLIBPOLICY) one more thread clears by it and reloads.
 */
#include "calls.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef LIBPOLICY
#include <pageclear/policy.h>
#endif

enum { THREADS = 4, ROUNDS = 25, LEN = 300000 };

static volatile sig_atomic_t handled;

static int is_zero(const unsigned char *at, size_t len)
{
	return at[0] == 0 && memcmp(at, at + 1, len - 1) == 0;
}

static void handle(int number)
{
	unsigned char bytes[LEN]; /* several threads may be in here at once */

	(void)number;
	bytes[0] = bytes[LEN - 1] = 1;
	call_memset(bytes, 0, LEN);
	call_explicit_bzero(bytes, LEN);
	if (!is_zero(bytes, LEN))
		_exit(3);
	handled++;
}

static void clear_once(unsigned char *bytes, int round)
{
	memset(bytes, 1, LEN);
	call_clear(round % CALLS, bytes, LEN);
	if (!is_zero(bytes, LEN))
		_exit(2);
}

static void fork_once(unsigned char *bytes, int round)
{
	int status;
	pid_t child = fork();

	if (child < 0)
		fail("no child");
	if (child == 0) {
		clear_once(bytes, round);
#ifdef LIBPOLICY
		pageclear_reload();
		pageclear_zero(bytes, LEN, PAGECLEAR_SCRUB);
#endif
		_exit(is_zero(bytes, LEN) ? 0 : 2);
	}
	while (waitpid(child, &status, 0) < 0)
		;
	if (status != 0)
		fail("a child ended with status %#x", (unsigned)status);
}

static void *work(void *argument)
{
	unsigned char *bytes = malloc(LEN);

	(void)argument;
	if (bytes == NULL)
		fail("no memory");
	for (int round = 0; round < ROUNDS; round++) {
		clear_once(bytes, round);
#ifdef LIBPOLICY
		bytes[LEN / 2] = 1;
		pageclear_zero(bytes, LEN, PAGECLEAR_COLD);
		pageclear_reload();
#endif
		fork_once(bytes, round);
	}
	free(bytes);
	return NULL;
}

int main(void)
{
	const struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
	pthread_t threads[THREADS];

	if (signal(SIGALRM, handle) == SIG_ERR || setitimer(ITIMER_REAL, &often, NULL) != 0)
		fail("no timer");
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			fail("no thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	setitimer(ITIMER_REAL, &never, NULL);
	if (handled == 0)
		fail("no signal came");
#ifdef LIBPOLICY
	char text[200];
	if (pageclear_status(text, sizeof(text)) < 0)
		fail("no status");
#endif
	puts("done");
	return 0;
}
