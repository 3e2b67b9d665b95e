/* calibrd.yaml: the strict tree with all its readers, then a whole configuration, which must come out within its
 * limits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "calibrd/config.h"
#include "kernels/kernels.h"
#include "libpolicy/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
	if (!right)
		abort();
}

/* Every reader on every node: a wrong kind is an error, never more than that. */
static void visit(const struct pc_node *node)
{
	struct pc_why why;
	uint64_t number = 5;
	double real = 0.5;
	bool truth;
	char text[8];
	size_t count = 0;

	if (pc_node_u64(node, 3, 1000, &number, &why) == 0)
		require(number >= 3 && number <= 1000);
	if (pc_node_double(node, 0, 1, &real, &why) == 0)
		require(real >= 0 && real <= 1);
	pc_node_bool(node, &truth, &why);
	if (pc_node_text(node, text, sizeof(text), &why) == 0)
		require(memchr(text, '\0', sizeof(text)) != NULL);
	for (const struct pc_node *child = node->first; child != NULL; child = child->next, count++) {
		require((child->key != NULL) == (node->kind == PC_MAPPING));
		require(child->key == NULL || pc_node_member(node, child->key) == child);
		visit(child);
	}
	require(count == node->count);
}

static void read_tree(const uint8_t *data, size_t size)
{
	struct pc_tree *tree = NULL;
	struct pc_why why;

	if (pc_tree_parse(&tree, (const char *)data, size, &why) == 0)
		visit(pc_tree_root(tree));
	pc_tree_free(tree);
}

static void check(const struct config *config)
{
	require(config->effort < EFFORTS && config->calibrate <= CALIBRATE_MANUAL);
	require(config->scrub_weight >= 0 && config->scrub_weight <= 1e6);
	require(config->duty_percent >= 1 && config->duty_percent <= 100);
	require(config->quiet_wait_seconds <= 86400 && config->quiet_percent >= 0 && config->quiet_percent <= 100);
	require(config->verify_interval_days <= 3650);
	require((config->exclude & 1) == 0 && config->pin_count <= CONFIG_PINS);
	require(memchr(config->policy, '\0', CONFIG_PATH) != NULL &&
	        memchr(config->database, '\0', CONFIG_PATH) != NULL);
	for (size_t i = 0; i < config->pin_count; i++)
		require(config->pins[i].kernel < pc_kernel_count && config->pins[i].prior < PC_PRIORS);
}

/* Only files are read: this one lies in memory. */
static void read_config(const uint8_t *data, size_t size)
{
	static int file = -1;
	char path[32];
	struct config config;
	struct pc_why why;

	if (file < 0)
		file = memfd_create("config", MFD_CLOEXEC);
	require(file >= 0 && ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	require(config_defaults(&config, &why) == 0);
	if (config_read(&config, path, &why) == 0)
		check(&config);
	config_free(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_tree(data, size);
	read_config(data, size);
	return 0;
}
