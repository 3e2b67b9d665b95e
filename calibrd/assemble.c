/* From parts to a document; see assemble.h. */
#include "calibrd/assemble.h"

#include <stdio.h>
#include <string.h>

/* Core types may share a signature (hybrid processors do): readers want to know it once. */
static void add_signature(struct pc_document *out, const char *signature)
{
	for (size_t i = 0; i < out->cpu_count; i++)
		if (strcmp(out->cpus[i], signature) == 0)
			return;
	if (out->cpu_count < PC_CPUS_MAX)
		snprintf(out->cpus[out->cpu_count++], sizeof(out->cpus[0]), "%s", signature);
}

static void describe_host(const struct topology *topology, struct pc_document *out)
{
	snprintf(out->topology, sizeof(out->topology), "%s", topology->id);
	snprintf(out->arch, sizeof(out->arch), "%s", topology->arch);
	snprintf(out->name, sizeof(out->name), "%s", topology->name);
	for (size_t i = 0; i < topology->core_count; i++)
		add_signature(out, topology->cores[i].signature);
}

void assemble(const struct assembly *parts, struct pc_document *out)
{
	struct tm utc;

	*out = (struct pc_document){
		.knee_bytes = parts->knee_bytes,
		.table_count = parts->decision->table_count,
		.tables = parts->decision->tables,
	};
	snprintf(out->version, sizeof(out->version), "%s", PAGECLEAR_VERSION);
	snprintf(out->quality, sizeof(out->quality), "%s", parts->quality);
	if (gmtime_r(&parts->written, &utc) != NULL)
		strftime(out->written, sizeof(out->written), "%Y-%m-%dT%H:%M:%SZ", &utc);
	describe_host(parts->topology, out);
	if (parts->probe->from > 0) {
		out->probe.from = parts->probe->from;
		out->probe.lines = parts->probe->lines;
		out->probe.slow_ns = parts->probe->slow_ns;
	}
}
