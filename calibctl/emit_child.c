/* Asking a program; see emit_child.h. */
#include "calibctl/emit_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "calibrd/clock.h"

static const char variable[] = "GLIBC_TUNABLES=";

/* This process' environment but for GLIBC_TUNABLES; for free(). `own` must outlive it. */
static char **make_environment(char *own)
{
	size_t count = 0, kept = 0;
	char **copy;

	while (environ[count] != NULL)
		count++;
	copy = calloc(count + 2, sizeof(*copy));
	if (copy == NULL)
		return NULL;
	for (size_t i = 0; i < count; i++)
		if (strncmp(environ[i], variable, strlen(variable)) != 0)
			copy[kept++] = environ[i];
	copy[kept] = own;
	return copy;
}

/* said: for its standard error; -1: that goes nowhere. */
static int start(const struct child_ask *ask, int out, int said, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	char *own = NULL, **environment = NULL;
	int r = posix_spawn_file_actions_init(&actions);

	if (r != 0)
		return -r;
	if (ask->tunables != NULL && asprintf(&own, "%s%s", variable, ask->tunables) < 0)
		own = NULL, r = ENOMEM;
	if (r == 0 && (environment = make_environment(own)) == NULL)
		r = ENOMEM;
	if (r == 0)
		r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (r == 0)
		r = said >= 0 ? posix_spawn_file_actions_adddup2(&actions, said, STDERR_FILENO)
		              : posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn(pid, ask->program, &actions, NULL, ask->arguments, environment);
	posix_spawn_file_actions_destroy(&actions);
	free(environment);
	free(own);
	return -r;
}

static int64_t now_ms(void)
{
	return (int64_t)(clock_ns(CLOCK_MONOTONIC) / 1000000);
}

/* Until its end, or what stops it. */
static int listen_to(int in, const struct child_ask *ask, char *text)
{
	const int64_t end = now_ms() + ask->deadline_ms;
	size_t used = 0;

	for (;;) {
		struct pollfd ready = {.fd = in, .events = POLLIN};
		int64_t left = end - now_ms();
		int r = left <= 0 ? 0 : poll(&ready, 1, (int)left);

		if (r == 0)
			return -ETIMEDOUT;
		if (r < 0 && errno == EINTR)
			continue;
		/* One byte more than may be kept tells that there is more. */
		ssize_t n = r < 0 ? r : read(in, text + used, ask->most + 1 - used);
		if (n < 0)
			return -errno;
		text[used += (size_t)n] = '\0';
		if (n == 0)
			return 0;
		if (used > ask->most)
			return -EFBIG;
	}
}

static int end_of(pid_t pid, int r)
{
	int status;

	if (r < 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return r == 0 && status != 0 ? -EIO : r;
}

static int run(const struct child_ask *ask, int said, char *answer)
{
	int ends[2];
	pid_t pid = -1;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	int r = start(ask, ends[1], said, &pid);
	close(ends[1]);
	if (r == 0)
		r = end_of(pid, listen_to(ends[0], ask, answer));
	close(ends[0]);
	return r;
}

/* The line that says why it failed: ": that line", or "". Whatever has the other end open still is not waited for. */
static void find_blame(int said, const char *begin, char *out, size_t size)
{
	char text[4096], *rest = NULL;
	ssize_t n = read(said, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
		if (strncmp(line, begin, strlen(begin)) == 0) {
			strcpy(out, ": ");
			pc_shown(out + 2, size - 2, line);
			return;
		}
}

/* Its standard error is a pipe that is not read before it has ended: what does not fit is lost, and does not stop it.
 */
static int run_to_blame(const struct child_ask *ask, char *answer, char *blame, size_t size)
{
	int said[2];

	if (ask->blame == NULL)
		return run(ask, -1, answer);
	if (pipe2(said, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	int r = run(ask, said[1], answer);
	if (r == -EIO)
		find_blame(said[0], ask->blame, blame, size);
	close(said[0]);
	close(said[1]);
	return r;
}

int child_ask(const struct child_ask *ask, char **text, struct pc_why *why)
{
	char *answer = malloc(ask->most + 2), blame[192] = "";
	int r;

	if (answer == NULL)
		return pc_why(why, -ENOMEM, "out of memory");
	r = run_to_blame(ask, answer, blame, sizeof(blame));
	if (r < 0) {
		free(answer);
		return pc_why(why, r, "%s: %s%s", ask->program,
		              r == -EIO         ? "it failed"
		              : r == -EFBIG     ? "it says too much"
		              : r == -ETIMEDOUT ? "it does not come to an end"
		                                : strerror(-r),
		              blame);
	}
	*text = answer;
	return 0;
}
