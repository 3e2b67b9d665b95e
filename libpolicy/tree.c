/*
 * libyaml's events become nodes in an arena. Depth is counted here, event by event, never read off libyaml's marks:
 * libyaml itself takes time in the square of the depth, so the parse ends at the first event that goes too deep.
 */
#include "libpolicy/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum {
	MAX_BYTES = 65536,
	MAX_DEPTH = 8,
	MAX_MEMBERS = 128, /* a mapping: keeps the search for duplicate keys linear in the input */
	BLOCK_BYTES = 32 * 1024,
};

struct block {
	struct block *next;
	size_t used, room;
	_Alignas(max_align_t) char bytes[];
};

struct pc_tree {
	struct pc_node *root;
	struct block *blocks;
};

/* A mapping or sequence whose end has not come yet. */
struct level {
	struct pc_node *node, *last;
	const char *key; /* read, its value not yet */
	unsigned key_line, key_column;
};

struct builder {
	struct pc_tree *tree;
	struct pc_why *why;
	struct level levels[MAX_DEPTH];
	unsigned depth;
	unsigned documents;
};

static void *tree_alloc(struct pc_tree *tree, size_t size)
{
	const size_t align = _Alignof(max_align_t);
	struct block *block = tree->blocks;

	size = (size + align - 1) / align * align;
	if (block == NULL || block->room - block->used < size) {
		size_t room = size > BLOCK_BYTES ? size : BLOCK_BYTES;

		block = malloc(sizeof(*block) + room);
		if (block == NULL)
			return NULL;
		*block = (struct block){.next = tree->blocks, .room = room};
		tree->blocks = block;
	}
	void *memory = block->bytes + block->used;
	block->used += size;
	return memory;
}

static int refuse(const struct builder *builder, const yaml_mark_t *mark, const char *what)
{
	return pc_why(builder->why, -EBADMSG, "%zu:%zu: %s", mark->line + 1, mark->column + 1, what);
}

/* Why the parse must not go on with this event, or NULL. */
static const char *objection(const struct builder *builder, const yaml_event_t *event)
{
	const yaml_char_t *anchor = NULL, *tag = NULL;

	switch (event->type) {
	case YAML_ALIAS_EVENT:
		return "aliases are not allowed";
	case YAML_DOCUMENT_START_EVENT:
		if (builder->documents > 0)
			return "only one document is allowed";
		return NULL;
	case YAML_SCALAR_EVENT:
		anchor = event->data.scalar.anchor;
		tag = event->data.scalar.tag;
		if (memchr(event->data.scalar.value, 0, event->data.scalar.length) != NULL)
			return "text with a zero byte";
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = event->data.sequence_start.anchor;
		tag = event->data.sequence_start.tag;
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = event->data.mapping_start.anchor;
		tag = event->data.mapping_start.tag;
		break;
	default:
		break;
	}
	if (anchor != NULL)
		return "anchors are not allowed";
	return tag != NULL ? "tags are not allowed" : NULL;
}

static const char *copy_text(struct pc_tree *tree, const yaml_event_t *event)
{
	size_t size = event->data.scalar.length + 1;
	char *text = tree_alloc(tree, size);

	return text == NULL ? NULL : memcpy(text, event->data.scalar.value, size);
}

static int take_key(struct builder *builder, struct level *level, const yaml_event_t *event)
{
	const yaml_mark_t *mark = &event->start_mark;

	if (event->type != YAML_SCALAR_EVENT)
		return refuse(builder, mark, "a key must be a scalar");
	if (level->node->count == MAX_MEMBERS)
		return refuse(builder, mark, "too many members in one mapping");
	if (pc_node_member(level->node, (const char *)event->data.scalar.value) != NULL)
		return refuse(builder, mark, "duplicate key");

	level->key = copy_text(builder->tree, event);
	level->key_line = (unsigned)mark->line + 1;
	level->key_column = (unsigned)mark->column + 1;
	return level->key == NULL ? -ENOMEM : 0;
}

static struct pc_node *node_new(struct pc_tree *tree, enum pc_node_kind kind, const yaml_mark_t *mark)
{
	struct pc_node *node = tree_alloc(tree, sizeof(*node));

	if (node != NULL)
		*node = (struct pc_node){
			.kind = kind, .line = (unsigned)mark->line + 1, .column = (unsigned)mark->column + 1};
	return node;
}

/* Hangs a finished or just opened node below the innermost open one. */
static void attach(struct builder *builder, struct pc_node *node)
{
	if (builder->depth == 0) {
		builder->tree->root = node;
		return;
	}
	struct level *level = &builder->levels[builder->depth - 1];

	node->key = level->key;
	node->key_line = level->key == NULL ? 0 : level->key_line;
	node->key_column = level->key == NULL ? 0 : level->key_column;
	level->key = NULL;
	if (level->last == NULL)
		level->node->first = node;
	else
		level->last->next = node;
	level->last = node;
	level->node->count++;
}

static int take_value(struct builder *builder, const yaml_event_t *event)
{
	enum pc_node_kind kind = event->type == YAML_SCALAR_EVENT           ? PC_SCALAR
	                         : event->type == YAML_SEQUENCE_START_EVENT ? PC_SEQUENCE
	                                                                    : PC_MAPPING;

	if (kind != PC_SCALAR && builder->depth == MAX_DEPTH)
		return refuse(builder, &event->start_mark, "nested too deeply");
	struct pc_node *node = node_new(builder->tree, kind, &event->start_mark);
	if (node == NULL)
		return -ENOMEM;
	if (kind == PC_SCALAR) {
		node->text = copy_text(builder->tree, event);
		if (node->text == NULL)
			return -ENOMEM;
		node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	}
	attach(builder, node);
	if (kind != PC_SCALAR)
		builder->levels[builder->depth++] = (struct level){.node = node};
	return 0;
}

static int take(struct builder *builder, const yaml_event_t *event)
{
	const char *what = objection(builder, event);

	if (what != NULL)
		return refuse(builder, &event->start_mark, what);
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		builder->documents++;
		return 0;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		builder->depth -= builder->depth > 0; /* libyaml ends nothing that has not begun, but who can tell */
		return 0;
	case YAML_SCALAR_EVENT:
	case YAML_SEQUENCE_START_EVENT:
	case YAML_MAPPING_START_EVENT: {
		struct level *level = builder->depth == 0 ? NULL : &builder->levels[builder->depth - 1];

		if (level != NULL && level->node->kind == PC_MAPPING && level->key == NULL)
			return take_key(builder, level, event);
		return take_value(builder, event);
	}
	default:
		return 0;
	}
}

static int parser_error(const yaml_parser_t *yaml, struct pc_why *why)
{
	const char *problem = yaml->problem == NULL ? "not YAML" : yaml->problem;

	if (yaml->error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	if (yaml->error == YAML_READER_ERROR) /* bytes that are no text have an offset, no mark */
		return pc_why(why, -EBADMSG, "%zu:%zu: %s", yaml->mark.line + 1, yaml->mark.column + 1, problem);
	return pc_why(why, -EBADMSG, "%zu:%zu: %s", yaml->problem_mark.line + 1, yaml->problem_mark.column + 1,
	              problem);
}

static int read_events(struct builder *builder, yaml_parser_t *yaml)
{
	yaml_event_type_t type = YAML_NO_EVENT;

	while (type != YAML_STREAM_END_EVENT) {
		yaml_event_t event;

		if (!yaml_parser_parse(yaml, &event))
			return parser_error(yaml, builder->why);
		type = event.type;
		int r = take(builder, &event);
		yaml_event_delete(&event);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_blank(const struct pc_node *root)
{
	return root == NULL || (root->kind == PC_SCALAR && !root->quoted && root->text[0] == '\0');
}

/* Bytes of the line break that ends at `at`: those that libyaml counts as one. */
static size_t break_before(const char *text, size_t at)
{
	if (at >= 1 && (text[at - 1] == '\n' || text[at - 1] == '\r'))
		return 1;
	if (at >= 2 && memcmp(text + at - 2, "\xc2\x85", 2) == 0)
		return 2;
	if (at >= 3 && (memcmp(text + at - 3, "\xe2\x80\xa8", 3) == 0 || memcmp(text + at - 3, "\xe2\x80\xa9", 3) == 0))
		return 3;
	return 0;
}

static unsigned line_at(const char *text, size_t at)
{
	unsigned line = 1;

	for (size_t i = 1; i <= at; i++)
		line += break_before(text, i) > 0 && !(i < at && text[i - 1] == '\r' && text[i] == '\n');
	return line;
}

/* libyaml takes time in the square of the number of directives, before it tells of the first: so none gets there. A
 * quoted text with a line like that is refused too. */
static int refuse_directives(const char *text, size_t len, struct pc_why *why)
{
	for (const char *found = text; (found = memchr(found, '%', (size_t)(text + len - found))) != NULL; found++)
		if (found == text || break_before(text, (size_t)(found - text)) > 0)
			return pc_why(why, -EBADMSG, "%u:1: directives (lines that begin with %%) are not allowed",
			              line_at(text, (size_t)(found - text)));
	return 0;
}

static int build(struct builder *builder, const char *text, size_t len)
{
	const yaml_mark_t start = {0, 0, 0};
	yaml_parser_t yaml;

	if (!yaml_parser_initialize(&yaml))
		return -ENOMEM;
	yaml_parser_set_encoding(&yaml, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&yaml, (const unsigned char *)text, len);
	int r = read_events(builder, &yaml);
	yaml_parser_delete(&yaml);
	if (r < 0)
		return r;
	if (is_blank(builder->tree->root))
		builder->tree->root = node_new(builder->tree, PC_MAPPING, &start);
	return builder->tree->root == NULL ? -ENOMEM : 0;
}

int pc_tree_parse(struct pc_tree **out, const char *text, size_t len, struct pc_why *why)
{
	if (len > MAX_BYTES)
		return pc_why(why, -EFBIG, "larger than %d bytes", MAX_BYTES);

	int r = refuse_directives(text, len, why);
	if (r < 0)
		return r;
	struct pc_tree *tree = calloc(1, sizeof(*tree));
	if (tree == NULL)
		return pc_why(why, -ENOMEM, "out of memory");

	struct builder builder = {.tree = tree, .why = why};
	r = build(&builder, text, len);
	if (r < 0) {
		pc_tree_free(tree);
		return r == -ENOMEM ? pc_why(why, r, "out of memory") : r;
	}
	*out = tree;
	return 0;
}

const struct pc_node *pc_tree_root(const struct pc_tree *tree)
{
	return tree->root;
}

struct pc_tree *pc_tree_free(struct pc_tree *tree)
{
	if (tree == NULL)
		return NULL;
	while (tree->blocks != NULL) {
		struct block *block = tree->blocks;

		tree->blocks = block->next;
		free(block);
	}
	free(tree);
	return NULL;
}

const struct pc_node *pc_node_member(const struct pc_node *node, const char *key)
{
	if (node == NULL || node->kind != PC_MAPPING)
		return NULL;
	for (const struct pc_node *member = node->first; member != NULL; member = member->next)
		if (member->key[0] == key[0] && strcmp(member->key, key) == 0) /* most differ at once: spare the call */
			return member;
	return NULL;
}
