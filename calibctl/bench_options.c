/*
 * bench's own options: lists of sizes and kernels, runs, priors, the format.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibctl/bench.h"
#include "calibctl/words.h"
#include "calibrd/sizes.h"

/* As they are given. */
struct given {
	const char *sizes, *kernels, *prior, *runs, *format;
};

static const char *const kinds[BENCH_KINDS] = {
	[BENCH_TABLE] = "table", [BENCH_XEN] = "xen", [BENCH_HUGEPAGE] = "hugepage"};
static const char *const formats[BENCH_FORMATS] = {[BENCH_TEXT] = "text", [BENCH_CSV] = "csv", [BENCH_JSON] = "json"};

/* Enough of each that the spread means something, and half a minute at most. */
static const unsigned usual_runs[BENCH_KINDS] = {[BENCH_TABLE] = 5, [BENCH_XEN] = 5, [BENCH_HUGEPAGE] = 12};

const char *bench_kind_name(enum bench_kind kind)
{
	return kinds[kind];
}

static int find_word(const char *const *words, int count, const char *word)
{
	for (int i = 0; i < count; i++)
		if (strcmp(words[i], word) == 0)
			return i;
	return -1;
}

/* --- lists ------------------------------------------------------------------------------------------------------- */

/* Copies the next item and moves on; false behind the last. An item that does not fit is cut, and so matches nothing.
 */
static bool next_item(const char **list, char *item, size_t size)
{
	size_t length;

	if (*list == NULL)
		return false;
	length = strcspn(*list, ",");
	snprintf(item, size, "%.*s", (int)(length < size ? length : size - 1), *list);
	*list = (*list)[length] == ',' ? *list + length + 1 : NULL;
	return true;
}

static int add_size(struct bench_request *out, uint64_t bytes, struct pc_why *why)
{
	size_t at = 0;

	while (at < out->size_count && out->sizes[at] < bytes)
		at++;
	if (at < out->size_count && out->sizes[at] == bytes)
		return 0;
	if (out->size_count == BENCH_SIZES)
		return pc_why(why, -ERANGE, "--sizes: more than %d sizes", BENCH_SIZES);
	memmove(out->sizes + at + 1, out->sizes + at, (out->size_count - at) * sizeof(out->sizes[0]));
	out->sizes[at] = bytes;
	out->size_count++;
	return 0;
}

int bench_parse_sizes(struct bench_request *out, const char *list, struct pc_why *why)
{
	char item[64];
	int r = 0;

	out->size_count = 0;
	while (r == 0 && next_item(&list, item, sizeof(item))) {
		uint64_t bytes;

		r = size_parse(item, &bytes);
		if (r == -ERANGE)
			r = pc_why(why, r, "--sizes: '%s' is more than 64 bits hold", item);
		else if (r < 0)
			r = pc_why(why, r, "--sizes: '%s' is no size", item);
		else if (bytes == 0)
			r = pc_why(why, -ERANGE, "--sizes: there is nothing to measure in %s", item);
		else
			r = add_size(out, bytes, why);
	}
	return r;
}

int bench_parse_kernels(struct bench_request *out, const char *list, struct pc_why *why)
{
	char item[64];

	out->kernels = 0;
	while (next_item(&list, item, sizeof(item))) {
		const struct pc_kernel *kernel = pc_kernel_find(item);

		if (kernel == NULL)
			return pc_why(why, -EINVAL,
			              "--kernels: no kernel is called '%s'; 'calibctl kernels' lists them", item);
		out->kernels |= 1u << pc_kernel_index(kernel);
	}
	return 0;
}

/* --- options ----------------------------------------------------------------------------------------------------- */

static int parse_prior(struct bench_request *out, const char *word, struct pc_why *why)
{
	int prior = word == NULL ? PC_UNKNOWN : words_prior(word);

	if (word != NULL && prior != PC_CACHED && prior != PC_FLUSHED)
		return pc_why(why, -EINVAL, "--prior '%s' is none of cached, flushed", word);
	if (word != NULL)
		out->priors = 1u << prior;
	else /* a page that the OS hands out was not touched for long */
		out->priors = (out->kind == BENCH_HUGEPAGE ? 0 : 1u << PC_CACHED) | 1u << PC_FLUSHED;
	return 0;
}

static int parse_runs(struct bench_request *out, const char *text, struct pc_why *why)
{
	char *end;
	unsigned long runs;

	out->runs = usual_runs[out->kind];
	if (text == NULL)
		return 0;
	errno = 0;
	runs = text[0] >= '0' && text[0] <= '9' ? strtoul(text, &end, 10) : 0;
	if (runs < 1 || runs > BENCH_RUNS || errno != 0 || *end != '\0')
		return pc_why(why, -ERANGE, "--runs '%s' is no number from 1 to %d", text, BENCH_RUNS);
	out->runs = (unsigned)runs;
	return 0;
}

static int parse_format(struct bench_request *out, const char *word, bool json, struct pc_why *why)
{
	int format = word == NULL ? BENCH_TEXT : find_word(formats, BENCH_FORMATS, word);

	if (format < 0)
		return pc_why(why, -EINVAL, "--format '%s' is none of text, csv, json", word);
	if (json && word != NULL && format != BENCH_JSON)
		return pc_why(why, -EINVAL, "--json and --format %s contradict each other", word);
	out->format = json ? BENCH_JSON : (enum bench_format)format;
	return 0;
}

/* Mappings of a run: the target, and xen's victim of twice as much. */
static int check_memory(const struct bench_request *out, uint64_t memory_bytes, struct pc_why *why)
{
	uint64_t most = out->kind == BENCH_XEN ? memory_bytes / 3 : memory_bytes;
	char asked[SIZE_TEXT], allowed[SIZE_TEXT];

	for (size_t i = 0; i < out->size_count && memory_bytes > 0; i++)
		if (out->sizes[i] > most)
			return pc_why(
				why, -ERANGE,
				"--sizes: %s is more than the %s that may be taken here: a quarter of what memory is "
				"available%s",
				size_format(out->sizes[i], asked, sizeof(asked)),
				size_format(most, allowed, sizeof(allowed)),
				out->kind == BENCH_XEN ? ", the victim included" : "");
	return 0;
}

static int parse_sizes(struct bench_request *out, const char *list, uint64_t memory_bytes, struct pc_why *why)
{
	int r;

	if (list == NULL)
		return 0;
	if (out->kind == BENCH_HUGEPAGE)
		return pc_why(why, -EINVAL, "--sizes: hugepage measures 2 MiB, the size of the page, and no other");
	r = bench_parse_sizes(out, list, why);
	return r < 0 ? r : check_memory(out, memory_bytes, why);
}

static int understand(struct bench_request *out, const struct given *given, bool json, uint64_t memory_bytes,
                      struct pc_why *why)
{
	int r = parse_sizes(out, given->sizes, memory_bytes, why);

	if (r == 0 && given->kernels != NULL)
		r = bench_parse_kernels(out, given->kernels, why);
	if (r == 0)
		r = parse_prior(out, given->prior, why);
	if (r == 0)
		r = parse_runs(out, given->runs, why);
	return r < 0 ? r : parse_format(out, given->format, json, why);
}

enum outcome bench_options_parse(struct bench_request *out, struct args *args, struct calibctl *ctl,
                                 uint64_t memory_bytes)
{
	struct given given = {0};
	const struct arg_option own[] = {{"--sizes", &given.sizes, NULL},   {"--kernels", &given.kernels, NULL},
	                                 {"--prior", &given.prior, NULL},   {"--runs", &given.runs, NULL},
	                                 {"--format", &given.format, NULL}, {0}};
	struct arg_words words = {.most = 1};
	struct pc_why why;
	int kind;

	*out = (struct bench_request){0};
	if (args_parse(args, ctl, own, &words) != DONE)
		return USAGE;
	kind = words.word[0] == NULL ? BENCH_TABLE : find_word(kinds, BENCH_KINDS, words.word[0]);
	if (kind < 0)
		return args_misused(args, "'%s' is none of table, xen, hugepage", words.word[0]);
	out->kind = (enum bench_kind)kind;
	if (understand(out, &given, ctl->json, memory_bytes, &why) < 0)
		return args_misused(args, "%s", why.text);
	return DONE;
}
