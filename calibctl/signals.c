/* Ctrl-C and SIGTERM; see signals.h. */
#include "calibctl/signals.h"

#include <stdio.h>

volatile sig_atomic_t signals_caught;

static void note(int signal_number)
{
	signals_caught = signal_number;
}

/* Whoever had us ignore it (nohup, a shell that starts us in the background) means that. */
static void catch_one(int signal_number)
{
	const struct sigaction action = {.sa_handler = note, .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};
	struct sigaction inherited;

	if (sigaction(signal_number, NULL, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
		sigaction(signal_number, &action, NULL);
}

void signals_catch(void)
{
	catch_one(SIGINT);
	catch_one(SIGTERM);
}

void signals_hold(sigset_t *before)
{
	sigset_t both;

	sigemptyset(&both);
	sigaddset(&both, SIGINT);
	sigaddset(&both, SIGTERM);
	sigprocmask(SIG_BLOCK, &both, before);
}

void signals_release(const sigset_t *before)
{
	sigprocmask(SIG_SETMASK, before, NULL);
}

void signals_die(int signal_number)
{
	if (fflush(stdout) != 0 || ferror(stdout))
		return;
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}
