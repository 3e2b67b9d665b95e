/*
 * Explicit policies: from document to look-up table, and the look-up.
 */
#include "libpolicy/policy.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu.h"
#include "libpolicy/builtin.h"
#include "libpolicy/rate.h"
#include "libpolicy/search.h"

#if defined(__x86_64__)
const char pc_arch[] = "x86_64";
#elif defined(__aarch64__)
const char pc_arch[] = "aarch64";
#else
const char pc_arch[] = "other";
#endif

enum {
	STRUCT_MOST = 4096, /* a caller's struct is never larger; more is a size that was never set */
	/* The sizes of the first version, for good: a caller's struct may be older than this library's. */
	QUERY_FIRST = offsetof(struct pageclear_query, threads) + sizeof(unsigned),
	CHOICE_FIRST = offsetof(struct pageclear_choice, to) + sizeof(size_t),
};

/* Where the next list and span go: behind the policy, in the same allocation. */
struct layout {
	struct pc_list *list;
	struct pc_span *span;
	struct pc_why *lacking;
};

static size_t rules_in(const struct pc_document *document)
{
	size_t rules = 0;

	for (size_t i = 0; i < document->table_count; i++)
		rules += document->tables[i].rule_count;
	return rules;
}

static bool has_word(const char *text, const char *word, size_t len)
{
	while (*text != '\0') {
		size_t n = strcspn(text, " ");

		if (n == len && memcmp(text, word, len) == 0)
			return true;
		text += n;
		text += *text == ' ';
	}
	return false;
}

static void add_lacking(struct pc_why *lacking, const char *name)
{
	size_t used = strlen(lacking->text), len = strlen(name);

	if (has_word(lacking->text, name, len) || used + len + 2 > sizeof(lacking->text) / 2)
		return;
	if (used > 0)
		lacking->text[used++] = ' ';
	memcpy(lacking->text + used, name, len + 1);
}

static const struct pc_kernel *resolve(const struct pc_rule *rule, struct pc_why *lacking)
{
	const struct pc_kernel *kernel = pc_kernel_find(rule->kernel);

	if (kernel != NULL && pc_kernel_runs(kernel))
		return kernel;
	add_lacking(lacking, rule->kernel);
	return &pc_kernels[0];
}

static size_t clamp_chunk(uint64_t chunk)
{
	if (chunk > SIZE_MAX)
		return 0;
	return chunk > 0 && chunk < PC_CHUNK_LEAST ? PC_CHUNK_LEAST : (size_t)chunk;
}

static size_t clamp_size(uint64_t size)
{
	return size > SIZE_MAX ? SIZE_MAX : (size_t)size;
}

static void index_list(struct pc_list *list, const struct pc_span *span)
{
	for (unsigned h = 0; h < PC_HALF_OCTAVES; h++) {
		/* Size 0 looks in half octave 0 as well. */
		span = pc_span_at(span, h == 0 ? 0 : clamp_size(pc_half_octave_least(h)));
		list->first[h] = span;
	}
}

static void add_list(struct layout *layout, const struct pc_table *table)
{
	struct pc_list *list = layout->list++;
	const struct pc_span *spans = layout->span;

	list->upto = table->threads;
	for (size_t i = 0; i < table->rule_count; i++) {
		const struct pc_rule *rule = &table->rules[i];
		const struct pc_kernel *kernel = resolve(rule, layout->lacking);
		bool last = i + 1 == table->rule_count, stands_in = strcmp(kernel->name, rule->kernel) != 0;

		/* A chunk is the named kernel's: libc in its place may take twice as long in pieces. */
		*layout->span++ = (struct pc_span){.name = kernel->name,
		                                   .clear = kernel->clear,
		                                   .chunk = stands_in ? 0 : clamp_chunk(rule->chunk),
		                                   .from = clamp_size(rule->from),
		                                   .to = last ? SIZE_MAX : clamp_size(rule[1].from),
		                                   .kernel = kernel,
		                                   .pinned = rule->pinned};
	}
	index_list(list, spans);
}

/* The first of the row's lists. */
static const struct pc_list *add_row(struct layout *layout, const struct pc_document *document, unsigned intent,
                                     enum pc_prior prior)
{
	struct pc_rule libc = {.kernel = "libc"};
	const struct pc_table nothing = {.threads = 1, .rule_count = 1, .rules = &libc};
	const struct pc_table *table;
	const struct pc_list *first = layout->list;

	for (unsigned threads = 1;
	     (table = pc_document_table(document, intent, prior, threads)) != NULL && table->threads >= threads;
	     threads = table->threads + 1)
		add_list(layout, table);
	if (layout->list == first)
		add_list(layout, &nothing);
	layout->list[-1].upto = UINT_MAX;
	return first;
}

static void set_probe(struct pc_words *words, const struct pc_document *document, double ticks_per_ns)
{
	double slow = document->probe.slow_ns * ticks_per_ns;

	if (slow < 1) /* no probe, no rate, or a clock that can't tell */
		return;
	atomic_init(&words->probe_lines, document->probe.lines);
	atomic_init(&words->probe_slow, (uint64_t)slow);
	atomic_init(&words->probe_from, document->probe.from);
}

int pc_policy_build(struct pageclear_policy **out, const struct pc_document *document, double ticks_per_ns,
                    struct pc_why *lacking)
{
	/* A row without a table gets one list of one span. */
	size_t lists = document->table_count + PC_ROWS, spans = rules_in(document) + PC_ROWS;
	struct pageclear_policy *policy =
		calloc(1, sizeof(*policy) + lists * sizeof(struct pc_list) + spans * sizeof(struct pc_span));

	if (policy == NULL)
		return -ENOMEM;
	struct pc_list *list = (struct pc_list *)(policy + 1);
	const struct pc_list *rows[PC_ROWS];
	struct layout layout = {.list = list, .span = (struct pc_span *)(list + lists), .lacking = lacking};

	lacking->text[0] = '\0';
	for (unsigned i = 0; i < PC_ROWS; i++) {
		rows[i] = add_row(&layout, document, i / PC_PRIORS, (enum pc_prior)(i % PC_PRIORS));
		pc_words_fill(&policy->words, i, rows[i]->first[0]);
	}
	for (unsigned intent = 0; intent < PC_INTENTS; intent++)
		policy->lists[intent] = rows[pc_row(intent)];
	set_probe(&policy->words, document, ticks_per_ns);
	pc_words_find_plain(&policy->words);
	*out = policy;
	return 0;
}

static int check_host(const struct pc_document *document, struct pc_why *why)
{
	char here[sizeof(document->cpus[0])];

	if (strcmp(document->arch, pc_arch) != 0)
		return pc_why(why, -ESTALE, "made for %s, this is %s", document->arch, pc_arch);
	pc_cpu_signature(here, sizeof(here));
	for (size_t i = 0; i < document->cpu_count; i++)
		if (strcmp(document->cpus[i], here) == 0)
			return 0;
	return pc_why(why, -ESTALE, "made for %s, this is %s", document->cpus[0], here);
}

static int describe(const struct pc_document *document, const struct pc_why *lacking, struct pc_why *why)
{
	bool whole = lacking->text[0] == '\0';

	return pc_why(why, 0, "generation %llu, quality %s, for %s%s%s", (unsigned long long)document->generation,
	              document->quality[0] == '\0' ? "not stated" : document->quality,
	              document->name[0] == '\0' ? document->cpus[0] : document->name,
	              whole ? "" : "; libc stands in for kernels that this CPU or library lacks: ", lacking->text);
}

int pc_policy_load(struct pageclear_policy **out, const char *path, struct pc_why *why)
{
	struct pc_moment begin = {0};
	struct pc_document *document;
	struct pc_why lacking;
	int r = pc_document_read(&document, path, why);

	if (r < 0)
		return r;
	/* The rate takes 20 us: asking a guest's CPU, an exit a question, fills them. */
	if (document->probe.from > 0)
		begin = pc_moment_now();
	r = check_host(document, why);
	if (r == 0) {
		r = pc_policy_build(out, document, pc_rate_since(begin), &lacking);
		r = r < 0 ? pc_why(why, r, "out of memory") : describe(document, &lacking, why);
	}
	pc_document_free(document);
	return r;
}

int pageclear_policy_open(const struct pageclear_policy **out, const char *path)
{
	struct pageclear_policy *policy = NULL;
	struct pc_search search;
	int cancellation, r;

	if (out == NULL)
		return -EINVAL;
	/* Reading a file ends a cancelled thread: what it holds by then would be lost. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation);
	r = path == NULL ? pc_search(&policy, &search, NULL) : pc_policy_load(&policy, path, NULL);
	pthread_setcancelstate(cancellation, NULL);
	if (r < 0)
		return r;
	*out = policy;
	return 0;
}

int pageclear_policy_builtin(const struct pageclear_policy **out)
{
	struct pageclear_policy *policy;
	struct pc_builtin builtin;
	struct pc_why lacking;

	if (out == NULL)
		return -EINVAL;
	pc_builtin_here(&builtin);
	int r = pc_policy_build(&policy, &builtin.document, 0, &lacking);
	if (r == 0)
		*out = policy;
	return r;
}

void pc_policy_free(const struct pageclear_policy *policy)
{
	free((void *)policy);
}

const struct pageclear_policy *pageclear_policy_close(const struct pageclear_policy *policy)
{
	pc_policy_free(policy);
	return NULL;
}

/* What a newer program asks and this library doesn't know must be left at 0. */
static bool is_understood(const struct pageclear_query *query)
{
	const unsigned char *bytes = (const unsigned char *)query;

	for (size_t i = sizeof(*query); i < query->size; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

static const struct pc_span *find_span(const struct pc_list *list, size_t len, unsigned threads)
{
	while (threads > list->upto)
		list++;
	return pc_span_at(list->first[pc_half_octave(len)], len);
}

/* What a caller's struct must be where it isn't this version's. */
static int check_sizes(const struct pageclear_query *query, const struct pageclear_choice *choice)
{
	if (query->size < QUERY_FIRST || choice->size < CHOICE_FIRST)
		return -EINVAL;
	return query->size > STRUCT_MOST || choice->size > STRUCT_MOST || !is_understood(query) ? -E2BIG : 0;
}

int pageclear_policy_choose(const struct pageclear_policy *policy, const struct pageclear_query *query,
                            struct pageclear_choice *choice)
{
	if (policy == NULL || query == NULL || choice == NULL)
		return -EINVAL;
	if (__builtin_expect(query->size != sizeof(*query) || choice->size != sizeof(*choice), 0)) {
		int r = check_sizes(query, choice);

		if (r < 0)
			return r;
		memset((char *)choice + CHOICE_FIRST, 0, choice->size - CHOICE_FIRST);
	}
	unsigned intent = query->intent < PC_INTENTS ? query->intent : PAGECLEAR_HOT;
	const struct pc_span *span = find_span(policy->lists[intent], query->len, query->threads);

	choice->kernel = span->name;
	choice->clear = span->clear;
	choice->chunk = span->chunk;
	choice->from = span->from;
	choice->to = span->to;
	return 0;
}
