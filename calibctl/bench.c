/*
 * bench: measures this host's kernels in the foreground, as others have published such figures: the kernel patch's
 * table, Xen's clear against displacement, arm64's huge page. Reads no policy and changes nothing.
 */
#include "calibctl/bench.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "calibctl/output.h"
#include "calibctl/tried.h"

static volatile sig_atomic_t stopped_by;

static void stop(int signal)
{
	stopped_by = signal;
}

/* Whoever had us ignore it (nohup, a shell that starts us in the background) means that. */
static void listen_for(int signal_number)
{
	const struct sigaction action = {.sa_handler = stop, .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};
	struct sigaction inherited;

	if (sigaction(signal_number, NULL, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
		sigaction(signal_number, &action, NULL);
}

/* What was measured is worth printing: the first signal only asks for the end. A second one takes no asking. */
static void listen_for_stop(void)
{
	listen_for(SIGINT);
	listen_for(SIGTERM);
}

/* Whoever started us is to see that a signal ended it: a shell's loop then ends as well. */
static void die_of(int signal_number)
{
	if (fflush(stdout) != 0 || ferror(stdout)) /* main() says so, and that tells more than the signal */
		return;
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

static enum outcome measure(struct bench_stand *stand)
{
	static int (*const run[BENCH_KINDS])(struct bench_stand *, struct pc_why *) = {
		[BENCH_TABLE] = bench_table, [BENCH_XEN] = bench_xen, [BENCH_HUGEPAGE] = bench_hugepage};
	struct pc_why why = {""};
	int r = bench_stand_open(stand, &why);

	if (r == 0)
		r = run[stand->request.kind](stand, &why);
	bench_stand_close(stand);
	if (r == -ECANCELED)
		fputs("calibctl bench: stopped before anything was measured\n", stderr);
	else if (r < 0)
		return output_failed(&why);
	else if (r > 0)
		return UNREADABLE;
	if (stopped_by != 0)
		die_of(stopped_by);
	return stand->kernels != 0 ? DONE : PROBLEM;
}

enum outcome verb_bench(struct calibctl *ctl, struct args *args)
{
	struct bench_stand stand = {.memory_bytes = tried_memory(), .stop = &stopped_by};

	if (bench_options_parse(&stand.request, args, ctl, stand.memory_bytes) != DONE)
		return USAGE;
	if (stand.memory_bytes == 0)
		return output_failed(&(struct pc_why){"not enough memory is available to measure anything"});
	listen_for_stop();
	return measure(&stand);
}
