/*
 * calibctl: shows, explains, checks and steers. Here: the table of verbs, and the way to one of them.
 */
#include <stdio.h>
#include <string.h>

#include "calibctl/args.h"
#include "calibctl/output.h"
#include "calibrd/log.h"

const struct verb calibctl_verbs[] = {
	{"show", verb_show, "", "the policy, as a report (the default)"},
	{"explain", verb_explain, "SIZE [INTENT]", "which rule holds for a size, and what was measured there"},
	{"kernels", verb_kernels, "", "the ways of clearing: which run here, which are chosen where"},
	{"topology", verb_topology, "", "the facts about this host that a calibration is valid for"},
	{"history", verb_history, "", "calibrations, publications and verifications, newest first"},
	{"diff", verb_diff, "[A [B]]", "what differs between two policies, and whether it matters in cost"},
	{"rollback", verb_rollback, "GENERATION", "publish a policy of the past again"},
	{"import", verb_import, "FILE", "have calibrd publish a policy that was measured elsewhere"},
	{"verify", verb_verify, "", "what the policy's choices cost at fresh sizes, next to the best"},
	{"status", verb_status, "", "whether all is well: policy, library, database, host, calibrd"},
	{"calibrate", verb_calibrate, "", "have calibrd measure this host now"},
	{"cancel", verb_cancel, "", "end what calibrd is at"},
	{"wait", verb_wait, "", "until calibrd is at nothing any more"},
	{"bench", verb_bench, "[KIND]", "measure this host's kernels, as others have published theirs"},
	{"emit", verb_emit, "FORMAT", "what was measured, for glibc, systemd or a C compiler"},
	{"help", verb_help, "[VERB]", "this list, or the options of a verb"},
};
const size_t calibctl_verb_count = sizeof(calibctl_verbs) / sizeof(calibctl_verbs[0]);

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < calibctl_verb_count; i++)
		if (strcmp(calibctl_verbs[i].name, name) == 0)
			return &calibctl_verbs[i];
	return NULL;
}

/* True if a word stands among the options, wherever: a call for help must not depend on the rest being right. */
static bool mentions(char **words, const char *option)
{
	for (; *words != NULL && strcmp(*words, "--") != 0; words++)
		if (strcmp(*words, option) == 0)
			return true;
	return false;
}

/* The verb's own page where the first word behind the options is one. */
static enum outcome help(struct calibctl *ctl, struct args *args)
{
	char *topic[2] = {NULL};

	for (char **word = args->next; *word != NULL && topic[0] == NULL; word++)
		if (find_verb(*word) != NULL)
			topic[0] = *word;
	return verb_help(ctl, &(struct args){.verb = "help", .next = topic});
}

static enum outcome run(struct calibctl *ctl, struct args *args)
{
	if (mentions(args->next, "--version")) {
		puts("calibctl " PAGECLEAR_VERSION);
		return DONE;
	}
	if (mentions(args->next, "--help") || mentions(args->next, "-h"))
		return help(ctl, args);
	if (args_parse_leading(args, ctl) != DONE)
		return USAGE;
	const struct verb *verb = *args->next == NULL ? &calibctl_verbs[0] : find_verb(*args->next);
	if (verb == NULL)
		return args_misused(args, "unknown verb '%s'", *args->next);
	if (*args->next != NULL)
		args->next++;
	args->verb = verb->name;
	return verb->run(ctl, args);
}

int main(int argc, char **argv)
{
	struct calibctl ctl = {0};
	struct args args = {.next = argv + (argc > 0)};

	log_program = "calibctl"; /* calibrd's modules speak here as well */
	return (int)output_end(run(&ctl, &args));
}
