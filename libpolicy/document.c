/*
 * The one reader of policy.yaml: strict on shape, lenient only where a later version may add something.
 */
#include "libpolicy/document.h"

#include <errno.h>
#include <pageclear/policy.h>
#include <stdlib.h>
#include <string.h>

#include "libpolicy/file.h"
#include "libpolicy/tree.h"

enum { THREADS_MAX = 65536, PROBE_LINES_MAX = 64, PROBE_NS_MAX = 1000000000, GAIN_MAX = 1000000000 };

static const char *const intent_names[] = {
	[PAGECLEAR_HOT] = "hot", [PAGECLEAR_COLD] = "cold", [PAGECLEAR_SCRUB] = "scrub"};
static const char *const prior_names[] = {[PC_UNKNOWN] = "unknown", [PC_CACHED] = "cached", [PC_FLUSHED] = "flushed"};

enum { INTENTS = sizeof(intent_names) / sizeof(intent_names[0]) };

const char *pc_intent_name(unsigned intent)
{
	return intent < INTENTS ? intent_names[intent] : "unknown";
}

const char *pc_prior_name(enum pc_prior prior)
{
	return (unsigned)prior < PC_PRIORS ? prior_names[prior] : "unknown";
}

/* -1 if the node's text is none of the names. */
static int name_index(const struct pc_node *node, const char *const *names, int count)
{
	for (int i = 0; node->kind == PC_SCALAR && i < count; i++)
		if (strcmp(node->text, names[i]) == 0)
			return i;
	return -1;
}

/* In a policy a number out of range is a malformed policy. */
static int malformed(int r)
{
	return r == -ERANGE ? -EBADMSG : r;
}

static int required(const struct pc_node *map, const char *key, const struct pc_node **out, struct pc_why *why)
{
	*out = pc_node_member(map, key);
	if (*out != NULL)
		return 0;
	pc_why(why, -EBADMSG, "%u:%u: %s is missing", map->line, map->column, key);
	return -EBADMSG;
}

static int required_kind(const struct pc_node *map, const char *key, enum pc_node_kind kind, const struct pc_node **out,
                         struct pc_why *why)
{
	int r = required(map, key, out, why);

	if (r == 0 && (*out)->kind != kind)
		r = pc_why(why, -EBADMSG, "%u:%u: %s: expected a %s", (*out)->line, (*out)->column, key,
		           kind == PC_MAPPING ? "mapping" : "sequence");
	return r;
}

enum field_type { TEXT, U64, UNSIGNED, DOUBLE, BOOL };

/* A scalar member of a mapping and where it goes. An absent one that isn't required leaves its place as it is. */
struct field {
	char key[12];
	uint8_t type; /* enum field_type */
	bool required;
	uint16_t offset, size;
	uint64_t least, most; /* of numbers */
};

#define FIELD(structure, member, key, type, required, least, most)                                                     \
	{                                                                                                              \
		key, type, required, offsetof(structure, member), sizeof(((structure *)0)->member), least, most        \
	}

static int read_field(void *out, const struct pc_node *node, const struct field *field, struct pc_why *why)
{
	void *place = (char *)out + field->offset;
	uint64_t number = 0;
	int r;

	switch (field->type) {
	case TEXT:
		return malformed(pc_node_text(node, place, field->size, why));
	case DOUBLE:
		return malformed(pc_node_double(node, (double)field->least, (double)field->most, place, why));
	case BOOL:
		return pc_node_bool(node, place, why);
	case UNSIGNED:
		r = malformed(pc_node_u64(node, field->least, field->most, &number, why));
		*(unsigned *)place = (unsigned)number;
		return r;
	default:
		return malformed(pc_node_u64(node, field->least, field->most, place, why));
	}
}

/* Fields are listed as they are written: mostly the next one is the one that is wanted. */
static const struct pc_node *member_after(const struct pc_node *last, const struct pc_node *map, const char *key)
{
	const struct pc_node *next = last != NULL ? last->next : map->first;

	return next != NULL && strcmp(next->key, key) == 0 ? next : pc_node_member(map, key);
}

static int read_fields(void *out, const struct pc_node *map, const struct field *fields, size_t count,
                       struct pc_why *why)
{
	const struct pc_node *last = NULL;
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++) {
		const struct pc_node *node = member_after(last, map, fields[i].key);

		last = node != NULL ? node : last;
		if (node != NULL)
			r = read_field(out, node, &fields[i], why);
		else if (fields[i].required)
			r = pc_why(why, -EBADMSG, "%u:%u: %s is missing", map->line, map->column, fields[i].key);
	}
	return r;
}

#define READ_FIELDS(out, map, fields, why) read_fields(out, map, fields, sizeof(fields) / sizeof((fields)[0]), why)

static int read_format(const struct pc_node *root, struct pc_why *why)
{
	const struct pc_node *node;
	uint64_t format;

	if (root->kind != PC_MAPPING)
		return pc_why(why, -EBADMSG, "%u:%u: expected a mapping", root->line, root->column);
	int r = required(root, "format", &node, why);
	if (r == 0)
		r = malformed(pc_node_u64(node, 1, UINT64_MAX, &format, why));
	if (r == 0 && format > PC_DOCUMENT_FORMAT)
		r = pc_why(why, -EPROTONOSUPPORT, "%u:%u: format %llu is newer than this version's %d", node->line,
		           node->column, (unsigned long long)format, PC_DOCUMENT_FORMAT);
	return r;
}

static int read_header(struct pc_document *document, const struct pc_node *root, struct pc_why *why)
{
	static const char *const qualities[] = {"good", "noisy", "emulated"};
	static const struct field fields[] = {
		FIELD(struct pc_document, generation, "generation", U64, false, 0, UINT64_MAX),
		FIELD(struct pc_document, version, "version", TEXT, false, 0, 0),
		FIELD(struct pc_document, written, "written", TEXT, false, 0, 0),
		FIELD(struct pc_document, quality, "quality", TEXT, false, 0, 0),
	};
	const struct pc_node *quality = pc_node_member(root, "quality");
	int r = READ_FIELDS(document, root, fields, why);

	if (r == 0 && quality != NULL && name_index(quality, qualities, 3) < 0)
		r = pc_why(why, -EBADMSG, "%u:%u: quality: expected good, noisy or emulated", quality->line,
		           quality->column);
	return r;
}

static int read_cpus(struct pc_document *document, const struct pc_node *host, struct pc_why *why)
{
	const struct pc_node *cpus;
	int r = required_kind(host, "cpus", PC_SEQUENCE, &cpus, why);

	if (r < 0)
		return r;
	if (cpus->count == 0 || cpus->count > PC_CPUS_MAX)
		return pc_why(why, -EBADMSG, "%u:%u: cpus: expected 1 to %d", cpus->line, cpus->column, PC_CPUS_MAX);
	for (const struct pc_node *cpu = cpus->first; cpu != NULL; cpu = cpu->next) {
		char *text = document->cpus[document->cpu_count++];

		r = malformed(pc_node_text(cpu, text, sizeof(document->cpus[0]), why));
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_host(struct pc_document *document, const struct pc_node *root, struct pc_why *why)
{
	static const struct field fields[] = {
		FIELD(struct pc_document, topology, "topology", TEXT, true, 0, 0),
		FIELD(struct pc_document, arch, "arch", TEXT, true, 0, 0),
		FIELD(struct pc_document, name, "name", TEXT, false, 0, 0),
		FIELD(struct pc_document, knee_bytes, "knee_bytes", U64, false, 0, UINT64_MAX),
	};
	const struct pc_node *host;
	int r = required_kind(root, "host", PC_MAPPING, &host, why);

	if (r == 0)
		r = READ_FIELDS(document, host, fields, why);
	return r == 0 ? read_cpus(document, host, why) : r;
}

static int read_probe(struct pc_document *document, const struct pc_node *root, struct pc_why *why)
{
	static const struct field fields[] = {
		FIELD(struct pc_document, probe.from, "from", U64, true, 0, UINT64_MAX),
		FIELD(struct pc_document, probe.lines, "lines", UNSIGNED, true, 1, PROBE_LINES_MAX),
		FIELD(struct pc_document, probe.slow_ns, "slow_ns", DOUBLE, true, 0, PROBE_NS_MAX),
	};
	const struct pc_node *probe;

	if (pc_node_member(root, "probe") == NULL)
		return 0;
	int r = required_kind(root, "probe", PC_MAPPING, &probe, why);
	return r == 0 ? READ_FIELDS(document, probe, fields, why) : r;
}

/* A kernel's name need not be known, but it must be one. */
static bool is_kernel_name(const char *name)
{
	return name[0] != '\0' && name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

static int read_rule(struct pc_rule *rule, const struct pc_node *map, struct pc_why *why)
{
	static const struct field fields[] = {
		FIELD(struct pc_rule, from, "from", U64, true, 0, UINT64_MAX),
		FIELD(struct pc_rule, low, "low", U64, false, 0, UINT64_MAX),
		FIELD(struct pc_rule, high, "high", U64, false, 0, UINT64_MAX),
		FIELD(struct pc_rule, kernel, "kernel", TEXT, true, 0, 0),
		FIELD(struct pc_rule, chunk, "chunk", U64, false, 0, UINT64_MAX),
		FIELD(struct pc_rule, gain, "gain", DOUBLE, false, 0, GAIN_MAX),
		FIELD(struct pc_rule, pinned, "pinned", BOOL, false, 0, 0),
	};

	if (map->kind != PC_MAPPING)
		return pc_why(why, -EBADMSG, "%u:%u: expected a rule", map->line, map->column);
	int r = READ_FIELDS(rule, map, fields, why);
	if (r == 0 && !is_kernel_name(rule->kernel))
		r = pc_why(why, -EBADMSG, "%u:%u: a kernel's name has lower case letters, digits and _ only", map->line,
		           map->column);
	return r;
}

/* The first rule holds from 0, each later one from further on: so there is one rule for every size. */
static int check_order(const struct pc_table *table, size_t i, const struct pc_node *map, struct pc_why *why)
{
	if (i == 0 && table->rules[0].from != 0)
		return pc_why(why, -EBADMSG, "%u:%u: the first rule must be from 0", map->line, map->column);
	if (i > 0 && table->rules[i].from <= table->rules[i - 1].from)
		return pc_why(why, -EBADMSG, "%u:%u: from must be above the rule before", map->line, map->column);
	return 0;
}

static int read_rules(struct pc_table *table, const struct pc_node *map, struct pc_why *why)
{
	const struct pc_node *rules;
	int r = required_kind(map, "rules", PC_SEQUENCE, &rules, why);

	if (r < 0)
		return r;
	if (rules->count == 0 || rules->count > PC_RULES_MAX)
		return pc_why(why, -EBADMSG, "%u:%u: rules: expected 1 to %d", rules->line, rules->column,
		              PC_RULES_MAX);
	table->rules = calloc(rules->count, sizeof(*table->rules));
	if (table->rules == NULL)
		return pc_why(why, -ENOMEM, "out of memory");
	for (const struct pc_node *rule = rules->first; rule != NULL; rule = rule->next) {
		r = read_rule(&table->rules[table->rule_count], rule, why);
		if (r == 0)
			r = check_order(table, table->rule_count, rule, why);
		if (r < 0)
			return r;
		table->rule_count++;
	}
	return 0;
}

/* True if this version knows every condition and every value: it must not use a table made for something else. */
static bool conditions_known(const struct pc_table *table, const struct pc_node *when)
{
	uint64_t number;

	for (const struct pc_node *node = when->first; node != NULL; node = node->next) {
		if (strcmp(node->key, "threads") == 0) {
			if (pc_node_u64(node, 1, THREADS_MAX, &number, NULL) < 0)
				return false;
		} else if (strcmp(node->key, "prior") == 0) {
			int prior = name_index(node, prior_names, PC_PRIORS);

			if (prior < 0 || (table->intent == PAGECLEAR_SCRUB && prior != PC_UNKNOWN))
				return false;
		} else {
			return false;
		}
	}
	return true;
}

/* 0, or 1: a table that this version leaves out. */
static int read_conditions(struct pc_table *table, const struct pc_node *map, struct pc_why *why)
{
	const struct pc_node *intent, *when, *node;
	uint64_t threads = 0;
	int r = required(map, "intent", &intent, why);

	if (r == 0 && intent->kind != PC_SCALAR)
		r = pc_why(why, -EBADMSG, "%u:%u: intent: expected a word", intent->line, intent->column);
	if (r < 0)
		return r;
	int known = name_index(intent, intent_names, INTENTS);
	if (known < 0)
		return 1;
	table->intent = (unsigned)known;
	r = required_kind(map, "when", PC_MAPPING, &when, why);
	if (r < 0)
		return r;
	if (!conditions_known(table, when))
		return 1;
	r = required(when, "threads", &node, why);
	if (r == 0)
		r = pc_node_u64(node, 1, THREADS_MAX, &threads, why);
	table->threads = (unsigned)threads;
	if (r == 0 && table->intent != PAGECLEAR_SCRUB) {
		r = required(when, "prior", &node, why);
		if (r == 0)
			table->prior = (enum pc_prior)name_index(node, prior_names, PC_PRIORS);
	}
	return r;
}

static bool is_repeated(const struct pc_document *document, const struct pc_table *table)
{
	for (size_t i = 0; i < document->table_count; i++) {
		const struct pc_table *other = &document->tables[i];

		if (other->intent == table->intent && other->prior == table->prior && other->threads == table->threads)
			return true;
	}
	return false;
}

/* A table counts only once it is whole; its rules are freed with the document from the moment they exist. */
static int read_table(struct pc_document *document, const struct pc_node *map, struct pc_why *why)
{
	struct pc_table table = {0};

	if (map->kind != PC_MAPPING)
		return pc_why(why, -EBADMSG, "%u:%u: expected a table", map->line, map->column);
	int r = read_conditions(&table, map, why);
	if (r != 0)
		return r < 0 ? r : 0;
	if (is_repeated(document, &table))
		return pc_why(why, -EBADMSG, "%u:%u: a second table for the same conditions", map->line, map->column);
	if (document->table_count == PC_TABLES_MAX)
		return pc_why(why, -EBADMSG, "%u:%u: clear: expected at most %d tables", map->line, map->column,
		              PC_TABLES_MAX);
	r = read_rules(&table, map, why);
	document->tables[document->table_count++] = table;
	return r;
}

static int read_tables(struct pc_document *document, const struct pc_node *root, struct pc_why *why)
{
	const struct pc_node *clear;
	int r = required_kind(root, "clear", PC_SEQUENCE, &clear, why);

	if (r < 0)
		return r;
	size_t most = clear->count < PC_TABLES_MAX ? clear->count : PC_TABLES_MAX;
	document->tables = calloc(most + 1, sizeof(*document->tables)); /* + 1: never calloc(0) */
	if (document->tables == NULL)
		return pc_why(why, -ENOMEM, "out of memory");
	for (const struct pc_node *table = clear->first; table != NULL && r == 0; table = table->next)
		r = read_table(document, table, why);
	return r;
}

static int read_root(struct pc_document *document, const struct pc_node *root, struct pc_why *why)
{
	int r = read_format(root, why);

	if (r == 0)
		r = read_header(document, root, why);
	if (r == 0)
		r = read_host(document, root, why);
	if (r == 0)
		r = read_probe(document, root, why);
	if (r == 0)
		r = read_tables(document, root, why);
	return r;
}

int pc_document_parse(struct pc_document **out, const char *text, size_t len, struct pc_why *why)
{
	struct pc_tree *tree;
	int r = pc_tree_parse(&tree, text, len, why);

	if (r < 0)
		return r;
	struct pc_document *document = calloc(1, sizeof(*document));
	r = document == NULL ? pc_why(why, -ENOMEM, "out of memory") : read_root(document, pc_tree_root(tree), why);
	pc_tree_free(tree);
	if (r < 0) {
		pc_document_free(document);
		return r;
	}
	*out = document;
	return 0;
}

int pc_document_read(struct pc_document **out, const char *path, struct pc_why *why)
{
	char *text;
	size_t len;
	int r = pc_file_read(path, PC_DOCUMENT_MAX_BYTES, &text, &len, why);

	if (r < 0)
		return r;
	r = pc_document_parse(out, text, len, why);
	free(text);
	return r;
}

struct pc_document *pc_document_free(struct pc_document *document)
{
	if (document == NULL)
		return NULL;
	for (size_t i = 0; i < document->table_count; i++)
		free(document->tables[i].rules);
	free(document->tables);
	free(document);
	return NULL;
}

/* Enough threads beat too few; among enough the fewest, among too few the most. */
static bool is_nearer(const struct pc_table *table, const struct pc_table *best, unsigned threads)
{
	if (best == NULL)
		return true;
	if (table->threads >= threads)
		return best->threads < threads || table->threads < best->threads;
	return best->threads < threads && table->threads > best->threads;
}

const struct pc_table *pc_document_table(const struct pc_document *document, unsigned intent, enum pc_prior prior,
                                         unsigned threads)
{
	const struct pc_table *best = NULL;

	for (size_t i = 0; i < document->table_count; i++) {
		const struct pc_table *table = &document->tables[i];

		if (table->intent == intent && table->prior == prior && is_nearer(table, best, threads))
			best = table;
	}
	return best;
}

const struct pc_rule *pc_table_rule(const struct pc_table *table, uint64_t len)
{
	size_t i = table->rule_count - 1;

	while (i > 0 && table->rules[i].from > len)
		i--;
	return &table->rules[i];
}
