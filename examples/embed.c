/*
 * A program that brings its own policy, measured on the machines that it is made for, and must work whatever became of
 * that file: missing, cut short, replaced by a folder or by somebody's idea of a joke, or simply read on another CPU.
 *
 * The library refuses such a file with an error and changes nothing; a kernel that this CPU lacks becomes libc. So all
 * there is to do is: open by path, fall back to the built-in policy, say which it is. Clears by an explicit policy
 * never look at the environment nor at the host's files.
 *
 *     embed POLICY
 */
#include <errno.h>
#include <pageclear/policy.h>
#include <stdio.h>
#include <string.h>

enum { BYTES = 3 << 20 };

static const char *why_not(int error)
{
	switch (error) {
	case -EBADMSG:
		return "malformed, or no regular file";
	case -EPROTONOSUPPORT:
		return "written for a newer libpolicy";
	case -ESTALE:
		return "made for another CPU";
	case -EFBIG:
		return "larger than 64 KiB";
	default:
		return strerror(-error);
	}
}

/* Never fails for what is in the file; NULL only without memory. */
static const struct pageclear_policy *open_or_builtin(const char *path)
{
	const struct pageclear_policy *policy = NULL;
	int r = pageclear_policy_open(&policy, path);

	if (r == 0) {
		printf("embed: own policy\n");
		return policy;
	}
	printf("embed: built-in policy (own: %s)\n", why_not(r));
	r = pageclear_policy_builtin(&policy);
	return r == 0 ? policy : NULL; /* and a NULL policy is no mistake: it means the process's own */
}

/* What would be done, for the log: by whoever wonders later why this host is slow. */
static int say_choice(const struct pageclear_policy *policy, size_t len, unsigned intent)
{
	struct pageclear_choice choice;
	struct pageclear_query query;
	int r;

	memset(&query, 0, sizeof(query));
	query.size = sizeof(query);
	query.len = len;
	query.intent = intent;
	choice.size = sizeof(choice);
	r = pageclear_policy_choose(policy, &query, &choice);
	if (r == 0)
		printf("embed: %zu bytes by %s\n", len, choice.kernel);
	return r;
}

static int is_zero(const unsigned char *bytes, size_t len)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0;
}

int main(int argc, char **argv)
{
	static const unsigned intents[] = {PAGECLEAR_HOT, PAGECLEAR_COLD, PAGECLEAR_WIPE, PAGECLEAR_SCRUB};
	static unsigned char bytes[BYTES];
	const struct pageclear_policy *policy;
	int wrong = 0;
	char text[512];

	if (argc != 2) {
		fprintf(stderr, "usage: embed POLICY\n");
		return 2;
	}
	policy = open_or_builtin(argv[1]);
	for (size_t i = 0; i < sizeof(intents) / sizeof(intents[0]); i++) {
		memset(bytes, 0xa5, BYTES);
		pageclear_policy_zero(policy, bytes, BYTES, intents[i]);
		wrong += !is_zero(bytes, BYTES);
		wrong += policy != NULL && say_choice(policy, BYTES, intents[i]) != 0;
	}
	pageclear_policy_close(policy);
	/* Beside it: what the rest of this process goes by, pageclear_zero's callers in other libraries, say. */
	printf("process: %s", pageclear_status(text, sizeof(text)) == 0 ? "calibrated" : "not calibrated");
	printf(" (%s)\n", text);
	printf("embed: %d clears of %zu went wrong\n", wrong, sizeof(intents) / sizeof(intents[0]));
	return wrong == 0 ? 0 : 1;
}
