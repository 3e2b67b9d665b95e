/*
 * What a later version of the library may be like: its structs have one more member each, and it has one more function.
 * Built with a header that has them, in front of libpolicy/policy.c, whose own choose is called choose_first here. It
 * shows how such a version goes by `size`: a member that a caller does not have is neither read nor written.
 */
#include <pageclear/policy.h>

#define HAS(pointer, type, member) ((pointer)->size >= offsetof(type, member) + sizeof((pointer)->member))

int choose_first(const struct pageclear_policy *policy, const struct pageclear_query *query,
                 struct pageclear_choice *choice);

int pageclear_policy_choose(const struct pageclear_policy *policy, const struct pageclear_query *query,
                            struct pageclear_choice *choice)
{
	int r = choose_first(policy, query, choice);

	if (r == 0 && HAS(choice, struct pageclear_choice, later))
		choice->later = 1000 + (HAS(query, struct pageclear_query, later) ? query->later : 0);
	return r;
}

size_t pageclear_later(void)
{
	return sizeof(struct pageclear_query) + sizeof(struct pageclear_choice);
}
