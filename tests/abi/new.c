/*
 * A program of a later version, whose structs have one more member each. A library that has them fills them; today's
 * must zero what it doesn't know of a choice, and refuse a query that asks more than it knows. With -DLATER it also
 * calls a function that today's library does not have.
 */
#include <pageclear/policy.h>
#include <stdio.h>
#include <string.h>

static int ask(const struct pageclear_policy *policy, size_t later, struct pageclear_choice *choice)
{
	struct pageclear_query query;

	memset(&query, 0, sizeof(query));
	query.size = sizeof(query);
	query.len = 1 << 20;
	query.intent = PAGECLEAR_SCRUB;
	query.later = later;
	memset(choice, 0xa5, sizeof(*choice));
	choice->size = sizeof(*choice);
	return pageclear_policy_choose(policy, &query, choice);
}

int main(void)
{
	const struct pageclear_policy *policy = NULL;
	struct pageclear_choice choice, kept;
	int r;

	if (pageclear_policy_builtin(&policy) != 0)
		return 1;
	r = ask(policy, 0, &choice);
	printf("asks nothing new: %d, later %zu, size %s\n", r, choice.later,
	       choice.size == sizeof(choice) ? "kept" : "changed");
	memset(&kept, 0xa5, sizeof(kept));
	kept.size = sizeof(kept);
	r = ask(policy, 7, &choice);
	if (r == 0)
		printf("asks something new: 0, later %zu\n", choice.later);
	else
		printf("asks something new: %d, choice %s\n", r,
		       memcmp(&choice, &kept, sizeof(kept)) == 0 ? "left alone" : "touched");
	pageclear_policy_close(policy);
#ifdef LATER
	printf("one more function: %zu\n", pageclear_later());
#endif
	return 0;
}
