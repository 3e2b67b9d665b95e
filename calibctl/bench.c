/*
 * bench: measures this host's kernels in the foreground, as others have published such figures: the kernel patch's
 * table, Xen's clear against displacement, arm64's huge page. Reads no policy and changes nothing.
 */
#include "calibctl/bench.h"

#include <errno.h>
#include <stdio.h>

#include "calibctl/output.h"
#include "calibctl/signals.h"
#include "calibctl/tried.h"

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
	if (signals_caught != 0)
		signals_die(signals_caught);
	return stand->kernels != 0 ? DONE : PROBLEM;
}

enum outcome verb_bench(struct calibctl *ctl, struct args *args)
{
	struct bench_stand stand = {.memory_bytes = tried_memory(), .stop = &signals_caught};

	if (bench_options_parse(&stand.request, args, ctl, stand.memory_bytes) != DONE)
		return USAGE;
	if (stand.memory_bytes == 0)
		return output_failed(&(struct pc_why){"not enough memory is available to measure anything"});
	signals_catch(); /* what was measured so far is worth printing */
	return measure(&stand);
}
