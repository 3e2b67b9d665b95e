/* Raw CPUID dumps of any origin, and what the child that asks libcpuid may send. */
#include <stdlib.h>
#include <string.h>

#include "calibrd/topology_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
	if (!right)
		abort();
}

/* NUL within, and nothing that would not stand in a line of a policy. */
static void require_line(const char *text, size_t size)
{
	require(memchr(text, '\0', size) != NULL);
	for (; *text != '\0'; text++)
		require((unsigned char)*text >= ' ' && (unsigned char)*text < 127);
}

static void check_leaves(const struct topology_leaves *leaves)
{
	char text[64], small[2];

	require(leaves->count <= TOPOLOGY_LEAVES);
	topology_leaves_signature(leaves, text, sizeof(text));
	require_line(text, sizeof(text));
	topology_leaves_name(leaves, text, sizeof(text));
	require(memchr(text, '\0', sizeof(text)) != NULL);
	topology_leaves_hypervisor(leaves, text, sizeof(text));
	require(memchr(text, '\0', sizeof(text)) != NULL);
	topology_leaves_signature(leaves, small, sizeof(small));
	topology_leaves_name(leaves, small, sizeof(small));
	topology_leaves_hypervisor(leaves, small, sizeof(small));
	topology_leaves_features(leaves);
}

static void read_dump(const uint8_t *data, size_t size)
{
	struct topology_dump dump;
	char *text = malloc(size + 1);

	require(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	if (topology_dump_parse(&dump, text) == 0) {
		require(dump.core_count <= TOPOLOGY_CORE_TYPES);
		for (size_t i = 0; i < dump.core_count; i++)
			require(memchr(dump.cores[i].signature, '\0', sizeof(dump.cores[i].signature)) != NULL);
		check_leaves(&dump.first);
	}
	free(text);
}

static void read_message(const uint8_t *data, size_t size)
{
	struct topology_cpuid answer;
	size_t text_len;

	if (topology_cpuid_parse(&answer, &text_len, (const char *)data, size) == TOPOLOGY_IDENTIFIED) {
		require(answer.type_count >= 1 && answer.type_count <= TOPOLOGY_CORE_TYPES);
		require(memchr(answer.name, 0, sizeof(answer.name)) != NULL);
		for (uint32_t i = 0; i < answer.type_count; i++)
			require_line(answer.types[i].vendor, sizeof(answer.types[i].vendor));
	}
	require(text_len <= size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_dump(data, size);
	read_message(data, size);
	return 0;
}
