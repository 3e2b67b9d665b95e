/*
 * Strict YAML: libyaml's events as a small tree of mappings, sequences and scalars with their places in the file.
 * Refused: more than 64 KiB, more than 8 levels, aliases, anchors, tags, directives, duplicate keys, keys that are not
 * scalars, more than one document. Linear in its input. Used by the policy reader and by calibrd's configuration.
 */
#ifndef PC_TREE_H
#define PC_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libpolicy/why.h"

enum pc_node_kind { PC_SCALAR, PC_SEQUENCE, PC_MAPPING };

struct pc_node {
	enum pc_node_kind kind;
	unsigned line, column; /* from 1 */
	const char *key;       /* in a mapping: this member's key; else NULL */
	unsigned key_line, key_column;
	const char *text; /* of a scalar; NUL-terminated, without embedded NUL */
	bool quoted;      /* a quoted scalar is a string, never a number or a truth value */
	size_t count;     /* of children */
	const struct pc_node *first, *next;
};

struct pc_tree;

/* Errors: -EBADMSG with "line:column: what is wrong" in why, -EFBIG, -ENOMEM. An empty document is an empty mapping. */
int pc_tree_parse(struct pc_tree **out, const char *text, size_t len, struct pc_why *why);
const struct pc_node *pc_tree_root(const struct pc_tree *tree);
struct pc_tree *pc_tree_free(struct pc_tree *tree);

/* The member of a mapping, or NULL (also if node is no mapping). */
const struct pc_node *pc_node_member(const struct pc_node *node, const char *key);

/* Plain decimal numbers; 0, or -EBADMSG / -ERANGE with a message that names the place, what was found and what was
 * expected. */
int pc_node_u64(const struct pc_node *node, uint64_t least, uint64_t most, uint64_t *out, struct pc_why *why);
int pc_node_double(const struct pc_node *node, double least, double most, double *out, struct pc_why *why);
int pc_node_bool(const struct pc_node *node, bool *out, struct pc_why *why);
/* Copies at most size - 1 bytes; longer text is an error. */
int pc_node_text(const struct pc_node *node, char *out, size_t size, struct pc_why *why);

#endif
