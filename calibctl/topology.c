/*
 * topology: the facts about this host that a calibration is valid for.
 */
#include "calibrd/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibctl/args.h"
#include "calibctl/output.h"
#include "calibctl/subject.h"
#include "calibctl/words.h"
#include "kernels/cpu.h"

/* --- for people -------------------------------------------------------------------------------------------------- */

enum { FACT = 160 };

/* "2 CPUs", "CPUs unknown" */
static void append_count(char out[FACT], const char *before, unsigned count, const char *name)
{
	if (count == 0)
		words_append(out, FACT, "%s%ss unknown", before, name);
	else
		words_append(out, FACT, "%s%u %s%s", before, count, name, count == 1 ? "" : "s");
}

static void print_core(const struct topology_core *core, const char *label)
{
	char text[FACT];

	snprintf(text, sizeof(text), "%s", core->signature);
	if (core->kind != '-')
		words_append(text, FACT, ", %s", core->kind == 'P' ? "performance" : "efficiency");
	append_count(text, ", ", core->cpus, "CPU");
	output_field(label, "%s", text);
}

static void print_cache(const struct topology_cache *cache, const char *label)
{
	const char *type = cache->type == 'D' ? " data" : cache->type == 'I' ? " instructions" : "";
	char text[FACT], size[WORDS_SHORT] = "size unknown";

	if (cache->bytes > 0)
		words_size(cache->bytes, size);
	snprintf(text, sizeof(text), "L%u%s %s", cache->level, type, size);
	if (cache->line > 0)
		words_append(text, FACT, ", %u-byte lines", cache->line);
	append_count(text, ", ", cache->ways, "way");
	if (cache->shared_cpus == 1)
		words_append(text, FACT, ", each CPU's own");
	else
		append_count(text, ", shared by ", cache->shared_cpus, "CPU");
	output_field(label, "%s", text);
}

static void print_counts(const struct topology *topology)
{
	char text[FACT] = "";

	append_count(text, "", topology->packages, "package");
	append_count(text, ", ", topology->physical_cores, "core");
	append_count(text, ", ", topology->threads, "thread");
	append_count(text, ", ", topology->numa_nodes, "NUMA node");
	output_field("counts", "%s", text);
}

static void print_hard(const struct topology *topology)
{
	char features[FACT], page[WORDS_SHORT] = "unknown";

	pc_cpu_feature_names(topology->features, features, sizeof(features));
	if (topology->page_bytes > 0)
		words_size(topology->page_bytes, page);
	output_line(STYLE_HEADING, "\nHard facts (with other ones this host is measured anew)");
	output_field("arch", "%s", topology->arch);
	for (size_t i = 0; i < topology->core_count; i++)
		print_core(&topology->cores[i], i == 0 ? "CPU" : "");
	output_field("features", "%s", features[0] == '\0' ? "none that a kernel needs" : features);
	for (size_t i = 0; i < topology->cache_count; i++)
		print_cache(&topology->caches[i], i == 0 ? "caches" : "");
	print_counts(topology);
	output_field("page", "%s", page);
}

static void print_soft(const struct topology *topology)
{
	output_line(STYLE_HEADING, "\nSoft facts (a change asks for a verification)");
	output_field("microcode", "%s", topology->microcode);
	output_field("OS kernel", "%s", topology->os_release);
	output_field("hypervisor", "%s", topology->hypervisor);
	output_field("huge pages", "%s", topology->thp);
	output_field("libc", "%s", topology->libc);
	output_field("CPUs", "%s allowed", topology->cpus_allowed);
	output_field("revisions", "%08x over all kernels", topology->kernel_revisions);
}

/* The policy's own id against this host's. */
static bool is_other(const struct subject *subject, const struct topology *topology)
{
	return subject->document != NULL && strcmp(subject->document->topology, topology->id) != 0;
}

static void print_policy(const struct subject *subject, const struct topology *topology)
{
	struct pc_why text;

	if (subject->document == NULL) {
		output_field("policy", "%s", subject->verdict.text);
		return;
	}
	subject_print_path(subject);
	if (is_other(subject, topology)) {
		pc_why_say(&text, "the policy was made for topology %s: this host has changed, or it is another one's",
		           subject->document->topology);
		output_warning(text.text);
	} else {
		output_field("", "made for this topology");
	}
}

static void print(const struct subject *subject, const struct topology *topology)
{
	output_field("topology", "%s", topology->id);
	output_field("host", "%s", topology->name);
	print_policy(subject, topology);
	if (topology->disagreements[0] != '\0')
		output_field("disagreed", "%s", topology->disagreements);
	print_hard(topology);
	print_soft(topology);
}

/* --- for programs ------------------------------------------------------------------------------------------------ */

/* Unknown is 0 inside, null outside. */
static json_t *known(uint64_t number)
{
	return number == 0 ? json_null() : output_json_bytes(number);
}

static json_t *json_cores(const struct topology *topology)
{
	json_t *cores = json_array();

	for (size_t i = 0; i < topology->core_count; i++) {
		const struct topology_core *core = &topology->cores[i];
		const char kind[] = {core->kind, '\0'};

		json_array_append_new(cores,
		                      json_pack("{s:o, s:o, s:o}", "signature", output_json_text(core->signature),
		                                "kind", core->kind == '-' ? json_null() : output_json_text(kind),
		                                "cpus", known(core->cpus)));
	}
	return cores;
}

static json_t *json_caches(const struct topology *topology)
{
	json_t *caches = json_array();

	for (size_t i = 0; i < topology->cache_count; i++) {
		const struct topology_cache *cache = &topology->caches[i];
		const char type[] = {cache->type, '\0'};

		json_array_append_new(caches, json_pack("{s:i, s:o, s:o, s:o, s:o, s:o}", "level", (int)cache->level,
		                                        "type", output_json_text(type), "bytes", known(cache->bytes),
		                                        "line_bytes", known(cache->line), "ways", known(cache->ways),
		                                        "shared_by_cpus", known(cache->shared_cpus)));
	}
	return caches;
}

static json_t *json_hard(const struct topology *topology)
{
	char features[FACT];

	pc_cpu_feature_names(topology->features, features, sizeof(features));
	return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "arch", output_json_text(topology->arch),
	                 "cores", json_cores(topology), "features", features, "caches", json_caches(topology),
	                 "packages", known(topology->packages), "physical_cores", known(topology->physical_cores),
	                 "threads", known(topology->threads), "numa_nodes", known(topology->numa_nodes), "page_bytes",
	                 known(topology->page_bytes));
}

static json_t *json_soft(const struct topology *topology)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:I}", "microcode", output_json_text(topology->microcode),
	                 "os_release", output_json_text(topology->os_release), "hypervisor",
	                 output_json_text(topology->hypervisor), "thp", output_json_text(topology->thp), "libc",
	                 output_json_text(topology->libc), "cpus_allowed", output_json_text(topology->cpus_allowed),
	                 "kernel_revisions", (json_int_t)topology->kernel_revisions);
}

static json_t *json_all(const struct subject *subject, const struct topology *topology, bool raw)
{
	json_t *json =
		json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "topology", topology->id, "name",
	                  output_json_text(topology->name), "policy", subject_json(subject), "policy_matches",
	                  subject->document == NULL ? json_null() : json_boolean(!is_other(subject, topology)), "hard",
	                  json_hard(topology), "soft", json_soft(topology), "disagreements",
	                  topology->disagreements[0] == '\0' ? json_null() : output_json_text(topology->disagreements));

	if (json != NULL && raw)
		json_object_set_new(json, "raw", output_json_text(topology->raw));
	return json;
}

/* ----------------------------------------------------------------------------------------------------------------- */

static enum outcome print_raw(const struct topology *topology)
{
	if (topology->raw == NULL)
		return output_failed(&(struct pc_why){"this CPU gives no raw CPUID dump"});
	fputs(topology->raw, stdout);
	return DONE;
}

static enum outcome tell(const struct subject *subject, const struct topology *topology, const struct calibctl *ctl,
                         bool raw)
{
	enum outcome outcome = is_other(subject, topology) ? PROBLEM : DONE;

	if (ctl->json)
		return output_json(json_all(subject, topology, raw), outcome);
	if (raw)
		return print_raw(topology);
	print(subject, topology);
	return outcome;
}

enum outcome verb_topology(struct calibctl *ctl, struct args *args)
{
	bool raw = false;
	const struct arg_option options[] = {{"--raw", NULL, &raw}, {0}};
	struct arg_words none = {0};
	struct subject subject = {0};
	struct topology *topology = NULL;
	struct pc_why why;
	enum outcome outcome;

	if (args_parse(args, ctl, options, &none) != DONE)
		return USAGE;
	enum outcome tried = subject_try(&subject, ctl);
	if (topology_detect(&topology, &(struct topology_source){0}, &why) < 0)
		outcome = output_failed(&why);
	else
		outcome = tell(&subject, topology, ctl, raw);
	topology_free(topology);
	subject_close(&subject);
	return tried > outcome ? tried : outcome;
}
