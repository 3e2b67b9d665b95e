#include "libpolicy/process.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "libpolicy/policy.h"
#include "libpolicy/search.h"

struct pc_words pc_process_words;

/* Guarded by the lock, which no clear ever takes. */
static struct {
	pthread_mutex_t lock;
	enum {
		NEVER,    /* nothing found yet: libc */
		SEARCHED, /* search says what the words are */
		MIXED,    /* both are being overwritten, or a fork left them so */
	} state;
	bool calibrated; /* the words, at least in part, whatever the state */
	int trouble;     /* -errno of the last look if it could not be had; 0 */
	struct pc_search search;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Only a search that found something replaces what is in force. */
static int load(void)
{
	static struct pc_search found; /* too large for a small thread's stack; guarded like the rest */
	struct pageclear_policy *policy;
	int r = pc_search(&policy, &found, process.state == NEVER ? NULL : &process.search);

	process.trouble = r;
	if (r < 0)
		return r;
	process.state = MIXED;
	process.calibrated = process.calibrated || found.used < PC_CANDIDATES;
	/* The child of a fork in another thread must see neither new words nor half a search beside the state of
	 * before, nor the state beside what is yet to come. */
	atomic_thread_fence(memory_order_seq_cst);
	pc_words_copy(&pc_process_words, &policy->words);
	process.calibrated = found.used < PC_CANDIDATES;
	process.search = found;
	atomic_thread_fence(memory_order_seq_cst);
	process.state = SEARCHED;
	pc_policy_free(policy);
	return 0;
}

/* A thread that held the lock while another forked does not exist in the child: let go for it. What it was at, the
 * state says. */
static void after_fork_in_child(void)
{
	if (pthread_mutex_trylock(&process.lock) == 0)
		pthread_mutex_unlock(&process.lock);
	else
		pthread_mutex_init(&process.lock, NULL);
}

/* Who is cancelled holding it would keep it for ever: files are read meanwhile, and reads end cancelled threads. */
static int lock(void)
{
	int cancellation;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation);
	pthread_mutex_lock(&process.lock);
	return cancellation;
}

static void unlock(int cancellation)
{
	pthread_mutex_unlock(&process.lock);
	pthread_setcancelstate(cancellation, NULL);
}

__attribute__((constructor)) static void start(void)
{
	int kept = errno, cancellation;

	/* Where there is no memory even for that, a child forked beside a reload would wait in its own; its clears
	 * don't. */
	pthread_atfork(NULL, NULL, after_fork_in_child);
	cancellation = lock();
	load(); /* without memory even for the built-in policy libc serves until a reload */
	unlock(cancellation);
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
	bool searched = process.state == SEARCHED;

	if (searched && pc_search_holds(&process.search)) {
		process.trouble = 0;
		return 0;
	}
	before = process.search;
	int r = load();
	if (r < 0)
		return r;
	return !searched || !same_source(&before, &process.search);
}

int pageclear_reload(void)
{
	int cancellation = lock(), r = reload();

	unlock(cancellation);
	return r;
}

static const char *in_words(void)
{
	if (process.state == SEARCHED)
		return process.search.text;
	if (process.state == NEVER)
		return "libc only; the policy could not be looked for: reload";
	return "one of two policies or a harmless mixture: the parent process was replacing one; reload";
}

int pageclear_status(char *text, size_t size)
{
	if (text == NULL && size > 0)
		return -EINVAL;
	int cancellation = lock(), kept = errno;
	bool calibrated = process.calibrated;
	errno = -process.trouble; /* for %m */
	if (size > 0 && process.trouble < 0 && process.state == SEARCHED)
		snprintf(text, size, "%s; the last look since failed: %m", in_words());
	else if (size > 0)
		snprintf(text, size, "%s", in_words());
	errno = kept;
	unlock(cancellation);
	return calibrated ? 0 : 1;
}
