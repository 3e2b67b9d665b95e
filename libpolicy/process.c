#include "libpolicy/process.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "libpolicy/policy.h"
#include "libpolicy/search.h"

struct pc_words pc_process_words;

/* Guarded by the lock, which no clear ever takes. */
static struct {
	pthread_mutex_t lock;
	bool searched; /* false: what search holds is not to be believed */
	struct pc_search search;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Only a search that found something replaces what is in force. */
static int load(void)
{
	static struct pc_search found; /* too large for a small thread's stack; guarded like the rest */
	struct pageclear_policy *policy;
	int r = pc_search(&policy, &found);

	if (r < 0)
		return r;
	pc_words_copy(&pc_process_words, &policy->words);
	pageclear_policy_close(policy);
	process.search = found;
	process.searched = true;
	return 0;
}

/* A thread that held the lock while another forked does not exist in the child: let go for it, believe nothing. */
static void after_fork_in_child(void)
{
	if (pthread_mutex_trylock(&process.lock) == 0) {
		pthread_mutex_unlock(&process.lock);
		return;
	}
	pthread_mutex_init(&process.lock, NULL);
	process.searched = false;
}

__attribute__((constructor)) static void start(void)
{
	int kept = errno;

	pthread_atfork(NULL, NULL, after_fork_in_child);
	pthread_mutex_lock(&process.lock);
	load(); /* where it could not look, libc serves until a reload can */
	pthread_mutex_unlock(&process.lock);
	errno = kept;
}

static bool same_source(const struct pc_search *a, const struct pc_search *b)
{
	if (a->used != b->used)
		return false;
	if (a->used == PC_CANDIDATES)
		return true;
	return pc_identity_same(&a->seen[a->used], &b->seen[b->used]) &&
	       (a->used > 0 || strcmp(a->named, b->named) == 0);
}

static int reload(void)
{
	static struct pc_search before; /* as in load() */
	bool searched = process.searched;

	if (searched && pc_search_holds(&process.search))
		return 0;
	before = process.search;
	int r = load();
	if (r < 0)
		return r;
	return !searched || !same_source(&before, &process.search);
}

int pageclear_reload(void)
{
	pthread_mutex_lock(&process.lock);
	int r = reload();
	pthread_mutex_unlock(&process.lock);
	return r;
}

int pageclear_status(char *text, size_t size)
{
	if (text == NULL && size > 0)
		return -EINVAL;
	pthread_mutex_lock(&process.lock);
	bool calibrated = process.searched && process.search.used < PC_CANDIDATES;
	const char *what =
		process.searched ? process.search.text : "libc only; the policy could not be looked for: reload";
	if (size > 0)
		snprintf(text, size, "%s", what);
	pthread_mutex_unlock(&process.lock);
	return calibrated ? 0 : 1;
}
