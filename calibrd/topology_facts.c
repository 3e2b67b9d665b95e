/* Judging facts and writing them down: what can't be, in which order, as which text and hash. Pure. */
#include "calibrd/topology_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu.h"
#include "kernels/kernels.h"

/* --- judging --------------------------------------------------------------------------------------------- */

#define MOST_CACHE (UINT64_C(4) << 30) /* bytes: guests have been told of 1 TiB (glibc BZ 30428) */

enum { LEAST_LINE = 16, MOST_LINE = 1024, MOST_WAYS = 128 };

bool topology_core_add(struct topology_core *cores, size_t *count, const char *signature, char kind, unsigned cpus)
{
	size_t i = 0;

	while (i < *count && (strcmp(cores[i].signature, signature) != 0 || cores[i].kind != kind))
		i++;
	if (i == TOPOLOGY_CORE_TYPES)
		return false;
	if (i == *count) {
		snprintf(cores[i].signature, sizeof(cores[i].signature), "%s", signature);
		cores[i].kind = kind;
		cores[i].cpus = 0;
		(*count)++;
	}
	cores[i].cpus += cpus;
	return true;
}

/* A cache that more CPUs share than there are, or that is smaller than the one below, lies about its size. */
void topology_cache_judge(struct topology_cache *cache, struct topology_cache *below, unsigned threads)
{
	const bool absurd_sharing = cache->shared_cpus > (threads != 0 ? threads : TOPOLOGY_SET_MAX);

	if (cache->bytes > MOST_CACHE || absurd_sharing || (below->level < cache->level && cache->bytes < below->bytes))
		cache->bytes = 0;
	if (absurd_sharing)
		cache->shared_cpus = 0;
	if (cache->line < LEAST_LINE || cache->line > MOST_LINE || (cache->line & (cache->line - 1)) != 0)
		cache->line = 0;
	if (cache->ways > MOST_WAYS || (cache->bytes != 0 && (uint64_t)cache->ways * cache->line > cache->bytes))
		cache->ways = 0;
	if (cache->type != 'I' && cache->bytes != 0 && cache->level >= below->level)
		*below = *cache;
}

static bool same_shape(const struct topology_cache *a, const struct topology_cache *b)
{
	return a->level == b->level && a->type == b->type && a->bytes == b->bytes && a->line == b->line &&
	       a->ways == b->ways && a->shared_cpus == b->shared_cpus;
}

static int place_of(const struct topology_cache *cache)
{
	return (int)cache->level * 4 + (cache->type == 'D' ? 0 : cache->type == 'I' ? 1 : 2);
}

void topology_cache_add(struct topology *topology, const struct topology_cache *cache)
{
	struct topology_cache *caches = topology->caches;
	size_t at = topology->cache_count;

	for (size_t i = 0; i < topology->cache_count; i++)
		if (same_shape(&caches[i], cache))
			return;
	if (topology->cache_count == TOPOLOGY_CACHES) {
		topology_say(topology, "More shapes of caches than can be told apart: L%u%c left out.", cache->level,
		             cache->type);
		return;
	}
	for (; at > 0 && place_of(&caches[at - 1]) > place_of(cache); at--)
		caches[at] = caches[at - 1];
	caches[at] = *cache;
	topology->cache_count++;
}

uint64_t topology_cache_bytes(const struct topology *topology, unsigned level)
{
	if (level == 0 && topology->cache_count > 0)
		level = topology->caches[topology->cache_count - 1].level;
	for (size_t i = 0; i < topology->cache_count; i++)
		if (topology->caches[i].level == level && topology->caches[i].type != 'I')
			return topology->caches[i].bytes;
	return 0;
}

/* A sentence that is there already, or has no room, is not added. */
void topology_say(struct topology *topology, const char *format, ...)
{
	const size_t used = strlen(topology->disagreements);
	const size_t room = sizeof(topology->disagreements) - used;
	char sentence[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	if (strstr(topology->disagreements, sentence) == NULL && strlen(sentence) + 2 <= room)
		snprintf(topology->disagreements + used, room, "%s%s", used == 0 ? "" : " ", sentence);
}

/* --- writing down ---------------------------------------------------------------------------------------- */

/* FNV-1a (Fowler, Noll, Vo; draft-eastlake-fnv): 64 bits. */
static uint64_t fnv1a(uint64_t hash, const char *text)
{
	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}

#define FNV_BASIS UINT64_C(0xcbf29ce484222325)

/* Folded to the bits wanted, as the authors recommend where the number is no power of two. */
static uint64_t fold(uint64_t hash, unsigned bits)
{
	return (hash >> bits ^ hash) & (((uint64_t)1 << bits) - 1);
}

static uint32_t hash_kernels(void)
{
	uint64_t hash = FNV_BASIS;
	char row[64];

	for (unsigned i = 0; i < pc_kernel_count; i++) {
		snprintf(row, sizeof(row), "%s %u\n", pc_kernels[i].name, pc_kernels[i].revision);
		hash = fnv1a(hash, row);
	}
	return (uint32_t)fold(hash, 32);
}

uint32_t topology_features_needed(void)
{
	uint32_t needed = 0;

	for (unsigned i = 0; i < pc_kernel_count; i++)
		needed |= pc_kernels[i].needs;
	return needed;
}

/* "name=7" or "name=unknown" */
static void write_number(FILE *out, const char *name, uint64_t number)
{
	if (number == 0)
		fprintf(out, "%sunknown", name);
	else
		fprintf(out, "%s%" PRIu64, name, number);
}

static void write_features(FILE *out, uint32_t features)
{
	char names[PC_CPU_NAMES];

	pc_cpu_feature_names(features, names, sizeof(names));
	fprintf(out, "features=%s\n", names);
}

static void write_caches(FILE *out, const struct topology *topology)
{
	for (size_t i = 0; i < topology->cache_count; i++) {
		const struct topology_cache *cache = &topology->caches[i];

		fprintf(out, "cache.%zu=L%u%c", i, cache->level, cache->type);
		write_number(out, " bytes ", cache->bytes);
		write_number(out, " line ", cache->line);
		write_number(out, " ways ", cache->ways);
		write_number(out, " cpus ", cache->shared_cpus);
		fputs("\n", out);
	}
}

static void write_cores(FILE *out, const struct topology *topology)
{
	for (size_t i = 0; i < topology->core_count; i++) {
		const struct topology_core *core = &topology->cores[i];

		fprintf(out, "core.%zu=%s kind %c", i, core->signature, core->kind);
		write_number(out, " cpus ", core->cpus);
		fputs("\n", out);
	}
}

static void write_hard(FILE *out, const struct topology *topology)
{
	fprintf(out, "arch=%s\n", topology->arch);
	write_caches(out, topology);
	write_cores(out, topology);
	write_features(out, topology->features);
	write_number(out, "numa_nodes=", topology->numa_nodes);
	write_number(out, "\npackages=", topology->packages);
	write_number(out, "\npage_bytes=", topology->page_bytes);
	write_number(out, "\nphysical_cores=", topology->physical_cores);
	write_number(out, "\nthreads=", topology->threads);
	fputs("\n", out);
}

static void write_soft(FILE *out, const struct topology *topology)
{
	fprintf(out, "cpus_allowed=%s\n", topology->cpus_allowed);
	fprintf(out, "hypervisor=%s\n", topology->hypervisor);
	fprintf(out, "kernel_revisions=%08" PRIx32 "\n", topology->kernel_revisions);
	fprintf(out, "libc=%s\n", topology->libc);
	fprintf(out, "microcode=%s\n", topology->microcode);
	fprintf(out, "os_release=%s\n", topology->os_release);
	fprintf(out, "thp=%s\n", topology->thp);
}

static int write_text(char **out, void (*write)(FILE *, const struct topology *), const struct topology *topology)
{
	size_t size;
	char *text = NULL;
	FILE *stream = open_memstream(&text, &size);
	int failed;

	if (stream == NULL)
		return -ENOMEM;
	write(stream, topology);
	failed = ferror(stream);
	if (fclose(stream) != 0 || failed) {
		free(text);
		return -ENOMEM;
	}
	*out = text;
	return 0;
}

/* These come from files and hypervisors; they must not break lines. */
static void clean(char *text, size_t size)
{
	if (text[0] == '\0')
		snprintf(text, size, "unknown");
	for (; *text != '\0'; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

int topology_write(struct topology *topology)
{
	int result;

	clean(topology->microcode, sizeof(topology->microcode));
	clean(topology->os_release, sizeof(topology->os_release));
	clean(topology->hypervisor, sizeof(topology->hypervisor));
	clean(topology->thp, sizeof(topology->thp));
	clean(topology->libc, sizeof(topology->libc));
	clean(topology->cpus_allowed, sizeof(topology->cpus_allowed));
	clean(topology->name, sizeof(topology->name));
	topology->kernel_revisions = hash_kernels();
	result = write_text(&topology->key, write_hard, topology);
	if (result == 0)
		result = write_text(&topology->soft, write_soft, topology);
	if (result == 0)
		snprintf(topology->id, sizeof(topology->id), "%012" PRIx64, fold(fnv1a(FNV_BASIS, topology->key), 48));
	return result;
}
