/*
 * libcpuid, in a child of its own; nobody else includes its header. The message it sends is raw text, a NUL, and one
 * struct topology_cpuid; a child that dies over identifying has sent the text before.
 */
#include "calibrd/topology_parts.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAGIC = 0x70634944, DEADLINE_MS = 5000, MOST_BYTES = 4 << 20 };

#if defined(__x86_64__)
#include <libcpuid/libcpuid.h>

/* Serialised, a CPU takes some 4.5 KB: of a larger host the first CPU stands for all. */
enum { MOST_CPUS = 512 };

#define FUNCTIONS(f)                                                                                                   \
	f(cpuid_lib_version) f(cpuid_set_warn_function) f(cpuid_get_all_raw_data) f(cpuid_get_raw_data)                \
		f(cpuid_deserialize_all_raw_data) f(cpuid_serialize_all_raw_data) f(cpuid_serialize_raw_data)          \
			f(cpu_identify_all) f(cpuid_free_system_id) f(cpuid_free_raw_data_array)

struct library {
#define MEMBER(name) __typeof__(name) *name;
	FUNCTIONS(MEMBER)
};

/* The soname is that of the headers compiled with: no other has these structs. False: *trouble says what is missing. */
static bool load(struct library *lib, const char **trouble)
{
	void *handle = dlopen(LIBCPUID_SONAME, RTLD_NOW | RTLD_LOCAL);
	bool whole = handle != NULL;

#define FIND(name) whole = whole && (lib->name = (__typeof__(name) *)dlsym(handle, #name)) != NULL;
	FUNCTIONS(FIND)
	if (!whole)
		*trouble = dlerror();
	return whole;
}

const char *topology_cpuid_version(void)
{
	const char *trouble;
	struct library lib;

	return load(&lib, &trouble) ? lib.cpuid_lib_version() : "";
}

/* This host: cpuid_get_all_raw_data() says OK to no CPU at all where it may not move between them. */
static int gather_here(const struct library *lib, struct cpu_raw_data_array_t *raws)
{
	if (lib->cpuid_get_all_raw_data(raws) == 0 && raws->num_raw > 0)
		return 0;
	raws->raw = calloc(1, sizeof(*raws->raw));
	raws->num_raw = 1;
	raws->with_affinity = false;
	return raws->raw == NULL || lib->cpuid_get_raw_data(raws->raw) != 0 ? -1 : 0;
}

static int gather(const struct library *lib, struct cpu_raw_data_array_t *raws, const char *raw_file)
{
	int result = raw_file == NULL ? gather_here(lib, raws) : lib->cpuid_deserialize_all_raw_data(raws, raw_file);

	return result != 0 || raws->num_raw == 0 || raws->raw == NULL ? -1 : 0;
}

/* An empty file name means stdout, which is the pipe by now. */
static void send_raw(const struct library *lib, struct cpu_raw_data_array_t *raws)
{
	if (raws->num_raw > MOST_CPUS)
		lib->cpuid_serialize_raw_data(raws->raw, "");
	else
		lib->cpuid_serialize_all_raw_data(raws, "");
	putchar('\0');
	fflush(stdout);
}

static char kind_of(cpu_purpose_t purpose)
{
	return purpose == PURPOSE_PERFORMANCE ? 'P' : purpose == PURPOSE_EFFICIENCY ? 'E' : '-';
}

static void take_type(struct topology_cpuid_type *type, const struct cpu_id_t *id)
{
	*type = (struct topology_cpuid_type){
		.family = id->ext_family,
		.model = id->ext_model,
		.stepping = id->stepping,
		.cores = id->num_cores,
		.threads = id->num_logical_cpus,
		.kind = kind_of(id->purpose),
		.caches =
			{
				{id->l1_data_cache, id->l1_data_cacheline, id->l1_data_assoc, id->l1_data_instances},
				{id->l1_instruction_cache, id->l1_instruction_cacheline, id->l1_instruction_assoc,
	                         id->l1_instruction_instances},
				{id->l2_cache, id->l2_cacheline, id->l2_assoc, id->l2_instances},
				{id->l3_cache, id->l3_cacheline, id->l3_assoc, id->l3_instances},
				{id->l4_cache, id->l4_cacheline, id->l4_assoc, id->l4_instances},
			},
	};
	snprintf(type->vendor, sizeof(type->vendor), "%.15s", id->vendor_str);
}

/* libcpuid begins a new type with every run of like CPUs; types that tell the same but for their counts are one. */
static bool same_type(const struct topology_cpuid_type *a, const struct topology_cpuid_type *b)
{
	return strcmp(a->vendor, b->vendor) == 0 && a->family == b->family && a->model == b->model &&
	       a->stepping == b->stepping && a->kind == b->kind;
}

static void merge_type(struct topology_cpuid *answer, const struct topology_cpuid_type *type)
{
	for (uint32_t i = 0; i < answer->type_count; i++) {
		struct topology_cpuid_type *known = &answer->types[i];

		if (!same_type(known, type))
			continue;
		known->cores += type->cores;
		known->threads += type->threads;
		for (size_t level = 0; level < TOPOLOGY_LEVELS; level++)
			if (known->caches[level].instances > 0 && type->caches[level].instances > 0 &&
			    level <= TOPOLOGY_L2)
				known->caches[level].instances += type->caches[level].instances;
		return;
	}
	if (answer->type_count < TOPOLOGY_CORE_TYPES)
		answer->types[answer->type_count++] = *type;
}

static void send(int fd, const struct topology_cpuid *answer)
{
	if (write(fd, answer, sizeof(*answer)) != (ssize_t)sizeof(*answer))
		_exit(1);
}

static void send_answer(const struct library *lib, int fd, struct cpu_raw_data_array_t *raws)
{
	struct topology_cpuid answer = {.magic = MAGIC, .cpus_read = raws->num_raw};
	struct system_id_t system = {0};

	if (lib->cpu_identify_all(raws, &system) != 0 || system.cpu_types == NULL)
		return;
	for (uint8_t i = 0; i < system.num_cpu_types; i++) {
		struct topology_cpuid_type type;

		take_type(&type, &system.cpu_types[i]);
		merge_type(&answer, &type);
	}
	if (system.num_cpu_types > 0)
		snprintf(answer.name, sizeof(answer.name), "%.63s", system.cpu_types[0].brand_str);
	lib->cpuid_free_system_id(&system);
	send(fd, &answer);
}

/* No raw text, and nothing but the trouble. */
static void send_trouble(int fd, const char *trouble)
{
	struct topology_cpuid answer = {.magic = MAGIC};

	snprintf(answer.trouble, sizeof(answer.trouble), "%s", trouble);
	putchar('\0');
	fflush(stdout);
	send(fd, &answer);
}

static void work(int fd, const void *raw_file)
{
	struct cpu_raw_data_array_t raws = {0};
	struct library lib;
	const char *trouble;

	if (!load(&lib, &trouble)) {
		send_trouble(fd, trouble);
		return;
	}
	lib.cpuid_set_warn_function(NULL);
	if (gather(&lib, &raws, raw_file) != 0)
		return; /* NOLINT(clang-analyzer-unix.Malloc): the child ends right after */
	send_raw(&lib, &raws);
	send_answer(&lib, fd, &raws);
	lib.cpuid_free_raw_data_array(&raws);
}

#else
const char *topology_cpuid_version(void)
{
	return "";
}
#endif

/* --- the parent's side: nothing is believed -------------------------------------------------------------- */

static bool within(int32_t value, int32_t least, int32_t most)
{
	return value >= least && value <= most;
}

static bool printable(const char *text, size_t len, const char *also)
{
	for (size_t i = 0; i < len; i++)
		if ((text[i] < ' ' || text[i] > '~') && (text[i] == '\0' || strchr(also, text[i]) == NULL))
			return false;
	return true;
}

/* A text that ends inside its field. */
static bool field(const char *text, size_t size)
{
	const size_t len = strnlen(text, size);

	return len < size && printable(text, len, "");
}

/* A number that can't be is one that libcpuid does not know. */
static void bound(int32_t *value, int32_t most)
{
	if (!within(*value, 0, most))
		*value = -1;
}

/* Families and the rest: what the fields of leaf 1 can hold. */
static bool judge_type(struct topology_cpuid_type *type)
{
	if (type->vendor[0] == '\0' || !field(type->vendor, sizeof(type->vendor)) ||
	    !within(type->family, 0, 15 + 255) || !within(type->model, 0, 255) || !within(type->stepping, 0, 15) ||
	    (type->kind != '-' && type->kind != 'P' && type->kind != 'E'))
		return false;
	bound(&type->cores, TOPOLOGY_SET_MAX);
	bound(&type->threads, TOPOLOGY_SET_MAX);
	for (size_t i = 0; i < TOPOLOGY_LEVELS; i++) {
		bound(&type->caches[i].kib, INT32_MAX);
		bound(&type->caches[i].line, INT32_MAX);
		bound(&type->caches[i].ways, INT32_MAX);
		bound(&type->caches[i].instances, TOPOLOGY_SET_MAX);
	}
	return true;
}

/* The name is for people, and some CPUs have strange bytes in it: the end of its field is all it has to keep to. */
static bool judge(struct topology_cpuid *answer)
{
	if (answer->magic != MAGIC || answer->type_count == 0 || answer->type_count > TOPOLOGY_CORE_TYPES ||
	    answer->cpus_read > UINT16_MAX || strnlen(answer->name, sizeof(answer->name)) == sizeof(answer->name))
		return false;
	for (uint32_t i = 0; i < answer->type_count; i++)
		if (!judge_type(&answer->types[i]))
			return false;
	return true;
}

/* Of one that says what troubles it nothing else is kept. */
static enum topology_outcome outcome_of(struct topology_cpuid *answer)
{
	struct topology_cpuid trouble = {0};

	if (answer->trouble[0] == '\0')
		return judge(answer) ? TOPOLOGY_IDENTIFIED : TOPOLOGY_KILLED;
	if (answer->magic != MAGIC || !field(answer->trouble, sizeof(answer->trouble)))
		return TOPOLOGY_KILLED;
	memcpy(trouble.trouble, answer->trouble, sizeof(trouble.trouble));
	*answer = trouble;
	return TOPOLOGY_ABSENT;
}

enum topology_outcome topology_cpuid_parse(struct topology_cpuid *answer, size_t *text_len, const char *bytes,
                                           size_t len)
{
	const size_t text = strnlen(bytes, len);
	const size_t rest = text < len ? len - text - 1 : 0;
	enum topology_outcome outcome = TOPOLOGY_SILENT;

	memset(answer, 0, sizeof(*answer));
	*text_len = text < len && printable(bytes, text, "\n\t") ? text : 0;
	if (rest == sizeof(*answer)) {
		memcpy(answer, bytes + text + 1, sizeof(*answer));
		outcome = outcome_of(answer);
	} else if (rest != 0) {
		outcome = TOPOLOGY_KILLED;
	}
	if (outcome != TOPOLOGY_IDENTIFIED && outcome != TOPOLOGY_ABSENT)
		memset(answer, 0, sizeof(*answer));
	return outcome;
}

#if defined(__x86_64__)
int topology_cpuid_ask(struct topology_cpuid *answer, char **raw, enum topology_outcome *outcome,
                       struct topology_report *end, const char *raw_file)
{
	const struct topology_limits limits = {.deadline_ms = DEADLINE_MS, .most = MOST_BYTES};
	size_t text_len = 0;
	int result = topology_child_run(end, work, raw_file, limits);

	*raw = NULL;
	if (result < 0)
		return result;
	*outcome = topology_cpuid_parse(answer, &text_len, end->bytes != NULL ? end->bytes : "", end->len);
	if (end->end != TOPOLOGY_EXITED) {
		*outcome = TOPOLOGY_KILLED;
		memset(answer, 0, sizeof(*answer));
	}
	if (text_len > 0)
		*raw = strndup(end->bytes, text_len);
	if (text_len > 0 && *raw == NULL)
		result = -ENOMEM;
	free(end->bytes);
	end->bytes = NULL;
	return result;
}
#else
int topology_cpuid_ask(struct topology_cpuid *answer, char **raw, enum topology_outcome *outcome,
                       struct topology_report *end, const char *raw_file)
{
	(void)raw_file;
	memset(answer, 0, sizeof(*answer));
	memset(end, 0, sizeof(*end));
	*raw = NULL;
	*outcome = TOPOLOGY_UNASKED;
	return 0;
}
#endif
