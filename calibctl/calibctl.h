/*
 * The command line's own contracts: the table of verbs, what they share, and what their exit codes mean.
 * A verb prints its results to stdout, complaints to stderr, and returns an outcome.
 */
#ifndef CALIBCTL_CALIBCTL_H
#define CALIBCTL_CALIBCTL_H

#include <stdbool.h>
#include <stddef.h>

/* Exit codes: design section 9. The worst one that applies, UNREADABLE before PROBLEM. */
enum outcome { DONE = 0, PROBLEM = 1, USAGE = 2, UNREADABLE = 3 };

struct args;

/* Options that every verb takes. */
struct calibctl {
	const char *policy;   /* --policy, NULL: look for it */
	const char *database; /* --database, likewise */
	bool json;
};

struct verb {
	const char *name;
	enum outcome (*run)(struct calibctl *ctl, struct args *args);
	const char *arguments; /* as usage shows them, "" if there are none */
	const char *about;     /* one line */
};

extern const struct verb calibctl_verbs[];
extern const size_t calibctl_verb_count;

enum outcome verb_show(struct calibctl *ctl, struct args *args);
enum outcome verb_explain(struct calibctl *ctl, struct args *args);
enum outcome verb_kernels(struct calibctl *ctl, struct args *args);
enum outcome verb_topology(struct calibctl *ctl, struct args *args);
enum outcome verb_history(struct calibctl *ctl, struct args *args);
enum outcome verb_diff(struct calibctl *ctl, struct args *args);
enum outcome verb_rollback(struct calibctl *ctl, struct args *args);
enum outcome verb_verify(struct calibctl *ctl, struct args *args);
enum outcome verb_status(struct calibctl *ctl, struct args *args);
enum outcome verb_calibrate(struct calibctl *ctl, struct args *args);
enum outcome verb_cancel(struct calibctl *ctl, struct args *args);
enum outcome verb_wait(struct calibctl *ctl, struct args *args);
enum outcome verb_import(struct calibctl *ctl, struct args *args);
enum outcome verb_bench(struct calibctl *ctl, struct args *args);
enum outcome verb_emit(struct calibctl *ctl, struct args *args);
enum outcome verb_help(struct calibctl *ctl, struct args *args);

#endif
