/*
 * Reading a policy is linear in its length, whatever the text: allocations and their bytes are counted over doubling
 * lengths. They are the same on every machine and at every hour, which no time is. tests/cli/linear.bats counts
 * instructions as well, where valgrind is.
 */
#include <errno.h>

#include "libpolicy/document.h"
#include "tests/unit/allocations.h"
#include "tests/unit/harness.h"
#include "tests/unit/shapes.h"

enum {
	LEAST = 8192,
	MOST = 65536,
	FEW = 100,                /* allocations that do not depend on the length: buffers, and their growth */
	FEW_BYTES = 2 * 16 * 1024 /* one step of a buffer's growth, and a block of the tree */
};

struct cost {
	unsigned long count, bytes;
};

static struct cost cost_of(const struct shape *shape, size_t len)
{
	struct pc_document *document = NULL;
	char *text = malloc(len);
	struct cost before;

	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	shape_fill(shape, text, len);
	before = (struct cost){allocations, asked_bytes};
	int r = pc_document_parse(&document, text, len, NULL);
	pc_document_free(document);
	struct cost cost = {allocations - before.count, asked_bytes - before.bytes};
	CU_ASSERT_TRUE(r == 0 || r == -EBADMSG);
	free(text);
	return cost;
}

static void assert_linear(const struct shape *shape)
{
	struct cost last = cost_of(shape, LEAST);

	for (size_t len = 2 * LEAST; len <= MOST; len *= 2) {
		struct cost cost = cost_of(shape, len);
		bool linear = cost.count <= 2 * last.count + FEW && cost.bytes <= 2 * last.bytes + FEW_BYTES;

		CU_ASSERT_TRUE(linear);
		if (!linear)
			printf("\n%s: %zu bytes take %lu allocations of %lu bytes, half of it %lu of %lu\n",
			       shape->name, len, cost.count, cost.bytes, last.count, last.bytes);
		last = cost;
	}
}

/* For the sanitizers, which have an allocator of their own. */
static void test_shapes_are_read(void)
{
	for (size_t i = 0; i < SHAPES; i++)
		cost_of(&shapes[i], MOST);
}

static void test_allocations_are_linear(void)
{
	if (!sees_allocations()) {
		unit_skip("malloc is somebody else's");
		return;
	}
	for (size_t i = 0; i < SHAPES; i++)
		assert_linear(&shapes[i]);
}

/* The least that is asked of a count: that it sees the square where there is one. */
static void test_a_square_is_seen(void)
{
	char *text = NULL;
	unsigned long costs[2];

	if (!sees_allocations()) {
		unit_skip("malloc is somebody else's");
		return;
	}
	for (size_t round = 0; round < 2; round++) {
		unsigned long before = asked_bytes;

		for (size_t len = 1024; len <= (size_t)LEAST << round; len += 1024)
			text = realloc(text, len);
		costs[round] = asked_bytes - before;
		free(text);
		text = NULL;
	}
	CU_ASSERT_TRUE(costs[1] > 2 * costs[0] + FEW_BYTES);
}

static void test_shapes_are_what_they_say(void)
{
	char text[MOST];

	for (size_t i = 0; i < SHAPES; i++) {
		memset(text, 0, sizeof(text));
		shape_fill(&shapes[i], text, sizeof(text));
		CU_ASSERT_PTR_NULL(memchr(text, 0, sizeof(text)));
		for (size_t j = 0; j < i; j++)
			CU_ASSERT_TRUE(strcmp(shapes[i].name, shapes[j].name) != 0);
	}
}

static const struct unit_test tests[] = {
	{"shapes_are_what_they_say", test_shapes_are_what_they_say},
	{"shapes_are_read", test_shapes_are_read},
	{"allocations_are_linear", test_allocations_are_linear},
	{"a_square_is_seen", test_a_square_is_seen},
};

UNIT_MAIN("tree_cost", tests)
