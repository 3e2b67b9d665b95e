/*
 * A function in a short-lived child: with a deadline, its output bounded, always reaped. Knows nothing of what it runs.
 */
#include "calibrd/topology_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calibrd/clock.h"

static int64_t now_ms(void)
{
	return (int64_t)(clock_ns(CLOCK_MONOTONIC) / 1000000);
}

/*
 * The parent's handlers, blocked signals and half-filled stdout are not the child's. A crash is expected here, so it
 * leaves no core. Should the parent die first, the alarm ends a child that hangs.
 */
static void become_child(int fd, unsigned deadline_ms)
{
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_DUMPABLE, 0);
	alarm(deadline_ms / 1000 + 2);
	__fpurge(stdout);
	if (dup2(fd, STDOUT_FILENO) < 0)
		_exit(127);
}

/* Signals wait until the child has its own handlers: none of the parent's runs in it. */
static pid_t start(void (*work)(int, const void *), const void *argument, int fd, unsigned deadline_ms)
{
	sigset_t all, before;
	pid_t child;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	child = fork();
	if (child == 0) {
		become_child(fd, deadline_ms);
		work(fd, argument);
		_exit(0);
	}
	error = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return child < 0 ? -error : child;
}

/* One more piece of output. 1 the end of it, 0 there may be more, -errno. */
static int read_piece(struct topology_report *report, int fd, size_t *room, size_t most)
{
	ssize_t got;

	if (report->len == *room) {
		size_t wanted = *room == 0 ? 16384 : *room * 2;
		char *grown;

		if (wanted > most + 1)
			wanted = most + 1;
		grown = realloc(report->bytes, wanted + 1);
		if (grown == NULL)
			return -ENOMEM;
		report->bytes = grown;
		*room = wanted;
	}
	got = read(fd, report->bytes + report->len, *room - report->len);
	if (got < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -errno;
	report->len += (size_t)got;
	report->bytes[report->len] = '\0';
	if (report->len > most)
		report->end = TOPOLOGY_FLOODED;
	return got == 0 || report->len > most;
}

static int collect(struct topology_report *report, int fd, struct topology_limits limits)
{
	const int64_t deadline = now_ms() + limits.deadline_ms;
	size_t room = 0;
	int result = 0;

	while (result == 0) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		int64_t left = deadline - now_ms();
		int count = left > 0 ? poll(&ready, 1, (int)left) : 0;

		if (count < 0 && errno != EINTR)
			return -errno;
		if (count == 0) {
			report->end = TOPOLOGY_HUNG;
			return 0;
		}
		if (count > 0)
			result = read_piece(report, fd, &room, limits.most);
	}
	return result < 0 ? result : 0;
}

/*
 * Once its output has ended a child is on its way out, and a signal no longer changes how: killing it always means that
 * waiting never hangs. Where the parent ignores SIGCHLD nothing is left to wait for, and the output alone has to tell.
 */
static void reap(struct topology_report *report, pid_t child)
{
	int status = 0;
	pid_t reaped;

	kill(child, SIGKILL);
	do
		reaped = waitpid(child, &status, 0);
	while (reaped < 0 && errno == EINTR);
	if (reaped != child || report->end != TOPOLOGY_EXITED)
		return;
	report->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		report->end = TOPOLOGY_DIED;
}

int topology_child_run(struct topology_report *report, void (*work)(int fd, const void *argument), const void *argument,
                       struct topology_limits limits)
{
	int ends[2], result;
	pid_t child;

	memset(report, 0, sizeof(*report));
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	child = start(work, argument, ends[1], limits.deadline_ms);
	close(ends[1]);
	result = child < 0 ? (int)child : collect(report, ends[0], limits);
	close(ends[0]);
	if (child > 0)
		reap(report, child);
	if (result < 0) {
		free(report->bytes);
		report->bytes = NULL;
		report->len = 0;
	}
	return result;
}
