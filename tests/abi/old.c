/*
 * A program of version 0.1 that was never built again: uses all of that header, and says on standard output what it
 * got. Whatever library it meets, the answers must be the same, and nothing beyond its structs may be written.
 */
#include <pageclear/policy.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

_Static_assert(SIZE_MAX >> 32 == 0 || (sizeof(struct pageclear_query) == 24 && sizeof(struct pageclear_choice) == 48),
               "the structs of version 0.1, as its programs have them");

enum { GUARD = 64 };

static int wrong;

static void expect(int right, const char *what)
{
	if (right)
		return;
	fprintf(stderr, "old: %s\n", what);
	wrong = 1;
}

/* In a frame of bytes that nobody may touch. */
struct framed {
	unsigned char before[GUARD];
	struct pageclear_choice choice;
	unsigned char after[GUARD];
};

static int is_whole(const struct framed *framed)
{
	for (size_t i = 0; i < GUARD; i++)
		if (framed->before[i] != 0xa5 || framed->after[i] != 0xa5)
			return 0;
	return 1;
}

static void choose(const struct pageclear_policy *policy, size_t len, unsigned intent, unsigned threads)
{
	const struct pageclear_query query = {.size = sizeof(query), .len = len, .intent = intent, .threads = threads};
	struct framed framed;

	memset(&framed, 0xa5, sizeof(framed));
	framed.choice.size = sizeof(framed.choice);
	int r = pageclear_policy_choose(policy, &query, &framed.choice);
	expect(r == 0 && is_whole(&framed), "choose: an error, or a byte beyond the struct");
	printf("%zu %u %u: %s %zu [%zu, %zu) size %zu\n", len, intent, threads, framed.choice.kernel,
	       framed.choice.chunk, framed.choice.from, framed.choice.to, framed.choice.size);
}

/* A size below the first version's is no version's: refused, and the choice left alone. */
static void choose_with_small_structs(const struct pageclear_policy *policy)
{
	struct pageclear_query query = {.size = sizeof(query) - 1, .len = 4096};
	struct framed framed, kept;

	memset(&framed, 0xa5, sizeof(framed));
	framed.choice.size = sizeof(framed.choice);
	kept = framed;
	printf("small query: %d\n", pageclear_policy_choose(policy, &query, &framed.choice));
	expect(memcmp(&framed, &kept, sizeof(kept)) == 0, "a refused choice was written to");
	query.size = sizeof(query);
	kept.choice.size = framed.choice.size = offsetof(struct pageclear_choice, to);
	printf("small choice: %d\n", pageclear_policy_choose(policy, &query, &framed.choice));
	expect(memcmp(&framed, &kept, sizeof(kept)) == 0, "a refused choice was written to");
}

static void clear(const struct pageclear_policy *policy)
{
	static unsigned char bytes[3][70000];
	struct iovec ranges[] = {{bytes[0], sizeof(bytes[0])}, {bytes[1] + 1, 100}};

	memset(bytes, 1, sizeof(bytes));
	pageclear_zero_ranges(ranges, 2, PAGECLEAR_SCRUB);
	pageclear_policy_zero(policy, bytes[1], sizeof(bytes[1]), PAGECLEAR_COLD | PAGECLEAR_FLUSHED);
	pageclear_zero(bytes[2], sizeof(bytes[2]), PAGECLEAR_WIPE);
	expect(bytes[0][0] == 0 && memcmp(bytes[0], bytes[0] + 1, sizeof(bytes) - 1) == 0, "not cleared");
	bytes[0][0] = 1;
	pageclear_zero(bytes[0], 1, PAGECLEAR_HOT); /* the part that this program has inside */
	expect(bytes[0][0] == 0, "not cleared inline");
}

int main(int argc, char **argv)
{
	const struct pageclear_policy *policy = NULL;

	expect(pageclear_policy_open(&policy, argc > 1 ? argv[1] : NULL) == 0, "open");
	for (size_t len = 0; len < SIZE_MAX / 8; len = len * 8 + 1)
		choose(policy, len, PAGECLEAR_COLD | PAGECLEAR_FLUSHED, 1);
	choose(policy, SIZE_MAX, PAGECLEAR_HOT, 0);
	choose(policy, 1 << 20, PAGECLEAR_SCRUB, 64);
	choose_with_small_structs(policy);
	clear(policy);
	expect(pageclear_policy_close(policy) == NULL, "close");
	expect(pageclear_policy_builtin(&policy) == 0 && pageclear_policy_close(policy) == NULL, "builtin");
	printf("reload %d, status %d\n", pageclear_reload(), pageclear_status(NULL, 0));
	return wrong;
}
