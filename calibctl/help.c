/*
 * help: the list of verbs, or one verb's options.
 */
#include <stdio.h>
#include <string.h>

#include "calibctl/args.h"

static const struct {
	const char *verb, *text; /* NULL: every verb */
} options[] = {
	{"explain", "  --prior PRIOR    what was before: cached, flushed or unknown (the default)\n"
                    "  --threads N      CPUs of one last-level cache that clear at the same time (1)\n"},
	{"history", "  -n N             the newest N entries alone\n"},
	{"diff", "  --exit-code      exit status 1 where they differ\n"},
	{"topology", "  --raw            print the raw CPUID dump alone, for reports from the field\n"},
	{"bench", "  --sizes LIST     table: 4 KiB to 64 MiB; xen: of the targets, half of L1D and L2\n"
                  "  --kernels LIST   all that run here; hugepage: libc and the best of each family\n"
                  "  --prior PRIOR    cached or flushed (both; hugepage: flushed)\n"
                  "  --runs N         runs with fresh mappings (5; hugepage: 12)\n"
                  "  --format FORMAT  text, csv or json (text)\n"},
	{"verify", "  --effort EFFORT  quick, standard or thorough: about 15 s, 1 or 5 minutes (standard)\n"
                   "  --against FILE   time another library's memset as well\n"
                   "  --tolerance N    per cent of mean regret beyond the noise floor (2; scrub: thrice)\n"
                   "  --seed N         draw the same sizes again\n"},
	{"calibrate", "  --effort EFFORT  quick, standard or thorough: about 10 s, 1 or 10 minutes (as configured)\n"
                      "  --wait           until it is done, showing how far it is\n"},
	{"emit", "  --verify         show with the meter what the value does; set nothing that does nothing\n"
                 "  --loader FILE    another dynamic loader, whose list of tunables is gone by\n"},
	{"wait", "  --timeout N      at most N seconds; exit status 1 if that is too short\n"},
	{NULL, "  --policy FILE    instead of $PAGECLEAR_POLICY and this host's policy.yaml\n"
               "  --database FILE  instead of this host's calibrd.db\n"
               "                   (neither with calibrate, cancel, wait and import, which ask calibrd)\n"
               "  --json           for programs\n"},
};

static void print_options(const char *verb)
{
	puts("\nOptions:");
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (options[i].verb == NULL || (verb != NULL && strcmp(options[i].verb, verb) == 0))
			fputs(options[i].text, stdout);
}

static void print_explain(void)
{
	puts("\nSIZE is in bytes, or with a unit: 4K, 2MiB, 1.5G.\n"
	     "INTENT is what comes next:\n"
	     "  hot      this CPU uses it right after (the default)\n"
	     "  cold     nobody uses it soon\n"
	     "  scrub    background work that spares the caches");
}

static void print_bench(void)
{
	puts("\nKIND is:\n"
	     "  table      kernels x sizes, GB/s and deviation over runs (the default)\n"
	     "  xen        clear latency, and how much a clear displaces from the private caches\n"
	     "  hugepage   2 MiB in chunks, forward and backward, and where the deviation comes from\n"
	     "LIST is separated by commas: 4K,1M or libc,clzero. Nothing is read or changed; SIGINT or\n"
	     "SIGTERM ends it, and what was measured so far is printed.");
}

static void print_diff(void)
{
	puts("\nA and B are generations or files: 7, ./policy.yaml. B is the policy in force if it is not given,\n"
	     "A the generation before B.");
}

static void print_emit(void)
{
	puts("\nFORMAT is:\n"
	     "  glibc-tunables   a value for GLIBC_TUNABLES\n"
	     "  environment.d    the same as a file for environment.d(5)\n"
	     "  c-header         the policy as constant tables, for C11 and C++17\n"
	     "Where nothing would gain, the first two print nothing; standard error says why.");
}

static enum outcome print_verb(const struct verb *verb)
{
	printf("calibctl %s%s%s [OPTION]...: %s\n", verb->name, verb->arguments[0] != '\0' ? " " : "", verb->arguments,
	       verb->about);
	if (strcmp(verb->name, "explain") == 0)
		print_explain();
	if (strcmp(verb->name, "bench") == 0)
		print_bench();
	if (strcmp(verb->name, "diff") == 0)
		print_diff();
	if (strcmp(verb->name, "emit") == 0)
		print_emit();
	print_options(verb->name);
	return DONE;
}

static enum outcome print_all(void)
{
	puts("calibctl [OPTION]... [VERB]: how this host clears memory best\n\nVerbs:");
	for (size_t i = 0; i < calibctl_verb_count; i++) {
		char usage[32];

		snprintf(usage, sizeof(usage), "%s %s", calibctl_verbs[i].name, calibctl_verbs[i].arguments);
		printf("  %-23s%s\n", usage, calibctl_verbs[i].about);
	}
	print_options(NULL);
	puts("  --help, --version\n"
	     "\nExit status: 0 done, 1 a problem found, 2 wrong usage, 3 something can't be reached or read.");
	return DONE;
}

enum outcome verb_help(struct calibctl *ctl, struct args *args)
{
	struct arg_words words = {.most = 1};

	if (args_parse(args, ctl, NULL, &words) != DONE)
		return USAGE;
	if (words.word[0] == NULL)
		return print_all();
	for (size_t i = 0; i < calibctl_verb_count; i++)
		if (strcmp(calibctl_verbs[i].name, words.word[0]) == 0)
			return print_verb(&calibctl_verbs[i]);
	return args_misused(args, "unknown verb '%s'", words.word[0]);
}
