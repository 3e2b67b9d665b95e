/* Layers, files and the walk from a file's keys to the table; see config.h. */
#include "calibrd/config.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libpolicy/file.h"
#include "libpolicy/tree.h"

enum { MOST_BYTES = 65536, NAME_MAX_BYTES = 80 };

static const char *const host_files[] = {"/usr/lib/pageclear/calibrd.yaml", "/etc/pageclear/calibrd.yaml"};
static const char host_folder[] = "/etc/pageclear/calibrd.yaml.d";

/* --- from keys to the table -------------------------------------------------------------------------------------- */

static const struct config_key *find_key(const char *name)
{
	for (size_t i = 0; i < config_key_count; i++)
		if (strcmp(config_keys[i].name, name) == 0)
			return &config_keys[i];
	return NULL;
}

/* True if there are keys "NAME.something". */
static bool is_section(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < config_key_count; i++)
		if (strncmp(config_keys[i].name, name, len) == 0 && config_keys[i].name[len] == '.')
			return true;
	return false;
}

/* What may stand below prefix ("" or "memory."), each once: keys of one section stand together in the table. */
static void list_known(const char *prefix, char *out, size_t size)
{
	size_t skip = strlen(prefix), len = 0, before = 0;
	const char *last = "";

	out[0] = '\0';
	for (size_t i = 0; i < config_key_count && len < size; i++) {
		const char *rest = config_keys[i].name + skip;
		size_t n = strncmp(config_keys[i].name, prefix, skip) == 0 ? strcspn(rest, ".") : 0;

		if (n == 0 || (n == before && strncmp(rest, last, n) == 0))
			continue;
		len += (size_t)snprintf(out + len, size - len, "%s%.*s", len == 0 ? "" : ", ", (int)n, rest);
		last = rest;
		before = n;
	}
}

static int unknown_key(const char *prefix, const struct pc_node *node, struct pc_why *why)
{
	char known[160];

	list_known(prefix, known, sizeof(known));
	return pc_why(why, -EBADMSG, "%u:%u: unknown key \"%s%.40s\", expected one of %s", node->key_line,
	              node->key_column, prefix, node->key, known);
}

static int wrong_map(const char *name, const struct pc_node *node, struct pc_why *why)
{
	return pc_why(why, -EBADMSG, "%u:%u: %s%sexpected a mapping of keys to values", node->line, node->column, name,
	              name[0] == '\0' ? "" : ": ");
}

static int read_value(struct config *config, const char *prefix, const struct pc_node *node, struct pc_why *why)
{
	char name[NAME_MAX_BYTES];
	int len = snprintf(name, sizeof(name), "%s%s", prefix, node->key);
	bool sound = (size_t)len < sizeof(name) && strchr(node->key, '.') == NULL; /* sections are mappings, not dots */
	const struct config_key *key = sound ? find_key(name) : NULL;

	return key == NULL ? unknown_key(prefix, node, why) : key->read(config, name, node, why);
}

static int read_section(struct config *config, const struct pc_node *section, struct pc_why *why)
{
	char prefix[NAME_MAX_BYTES];
	int r = section->kind == PC_MAPPING ? 0 : wrong_map(section->key, section, why);

	snprintf(prefix, sizeof(prefix), "%s.", section->key);
	for (const struct pc_node *node = section->first; node != NULL && r == 0; node = node->next)
		r = read_value(config, prefix, node, why);
	return r;
}

static int read_root(struct config *config, const struct pc_node *root, struct pc_why *why)
{
	int r = root->kind == PC_MAPPING ? 0 : wrong_map("", root, why);

	for (const struct pc_node *node = root->first; node != NULL && r == 0; node = node->next)
		r = is_section(node->key) ? read_section(config, node, why) : read_value(config, "", node, why);
	return r;
}

/* --- layers ------------------------------------------------------------------------------------------------------ */

int config_defaults(struct config *config, struct pc_why *why)
{
	*config = (struct config){0};
	for (size_t i = 0; i < config_key_count; i++) {
		const struct config_key *key = &config_keys[i];
		bool list = key->standard[0] == '[';
		struct pc_node node = {.kind = list ? PC_SEQUENCE : PC_SCALAR, .text = list ? NULL : key->standard};
		int r = key->read(config, key->name, &node, why);

		if (r < 0)
			return r;
	}
	return 0;
}

static int read_text(struct config *config, const char *text, size_t len, struct pc_why *why)
{
	struct pc_tree *tree;
	int r = pc_tree_parse(&tree, text, len, why);

	if (r < 0)
		return r;
	r = read_root(config, pc_tree_root(tree), why);
	pc_tree_free(tree);
	return r;
}

int config_read(struct config *config, const char *file, struct pc_why *why)
{
	struct pc_why reason = {""};
	size_t len;
	char *text;
	int r = pc_file_read(file, MOST_BYTES, &text, &len, &reason);

	if (r < 0)
		return pc_why(why, r, "%s: %s", file, reason.text);
	r = read_text(config, text, len, &reason);
	free(text);
	if (r < 0)
		pc_why(why, r, "%s:%s%s", file, reason.text[0] >= '1' && reason.text[0] <= '9' ? "" : " ", reason.text);
	return r;
}

static int read_if_there(struct config *config, const char *file, struct pc_why *why)
{
	struct pc_why reason = {""};
	int r = config_read(config, file, &reason);

	if (r == 0 || r == -ENOENT)
		return 0;
	return pc_why(why, r, "%s", reason.text);
}

/* --- drop-ins ---------------------------------------------------------------------------------------------------- */

static int is_drop_in(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return entry->d_name[0] != '.' && len > 5 && strcmp(entry->d_name + len - 5, ".yaml") == 0;
}

/* Not alphasort(): that one asks the locale. */
static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* An editor's pipe, a folder, a link to /dev/null are none of ours. What can't even be looked at is left to the reader,
 * who says why. */
static bool is_something_else(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

static int read_drop_in(struct config *config, const char *folder, const char *name, struct pc_why *why)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return pc_why(why, -ENAMETOOLONG, "%s: the path is too long", folder);
	return is_something_else(path) ? 0 : read_if_there(config, path, why);
}

static int read_drop_ins(struct config *config, const char *root, struct pc_why *why)
{
	char folder[PATH_MAX];
	struct dirent **names = NULL;
	int r = 0;

	snprintf(folder, sizeof(folder), "%s%s", root, host_folder);
	int count = scandir(folder, &names, is_drop_in, by_bytes);
	if (count < 0)
		return errno == ENOENT ? 0 : pc_why(why, -errno, "%s: %m", folder);
	for (int i = 0; i < count; i++) {
		if (r == 0)
			r = read_drop_in(config, folder, names[i]->d_name, why);
		free(names[i]);
	}
	free(names);
	return r;
}

/* --- all together ------------------------------------------------------------------------------------------------ */

static int read_host(struct config *config, const char *root, struct pc_why *why)
{
	char file[PATH_MAX];
	int r = 0;

	if (strlen(root) > PATH_MAX / 2)
		return pc_why(why, -ENAMETOOLONG, "%.80s...: the path is too long", root);
	for (size_t i = 0; i < sizeof(host_files) / sizeof(host_files[0]) && r == 0; i++) {
		snprintf(file, sizeof(file), "%s%s", root, host_files[i]);
		r = read_if_there(config, file, why);
	}
	return r == 0 ? read_drop_ins(config, root, why) : r;
}

/* One file alone, or the layers below root. */
static int load(struct config *out, const char *file, const char *root, struct pc_why *why)
{
	struct config config;
	int r = config_defaults(&config, why);

	if (r == 0)
		r = file != NULL ? config_read(&config, file, why) : read_host(&config, root, why);
	if (r < 0) {
		config_free(&config);
		return r;
	}
	*out = config;
	return 0;
}

int config_load(struct config *out, const char *file, struct pc_why *why)
{
	return load(out, file, "", why);
}

int config_load_host(struct config *out, const char *root, struct pc_why *why)
{
	return load(out, NULL, root != NULL ? root : "", why);
}

void config_free(struct config *config)
{
	free(config->pins);
	config->pins = NULL;
	config->pin_count = 0;
}
