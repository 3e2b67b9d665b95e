/*
 * An allocator that clears by libpolicy whatever it hands out and takes back, under a lock of its own: called before
 * the library's constructor has run, by that constructor, and by every reload. A lock that the library waited for, or
 * an allocation of it inside a clear, would be the end. Linked in or preloaded; -DPROGRAM makes the program.
 */
#include <errno.h>
#include <pageclear/policy.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The allocator's own account: calls, those before the library's constructor, and what went wrong. */
struct account {
	unsigned long calls, early, reentered, dirty;
};

const struct account *allocator_account(void);

#if !defined(PROGRAM) || defined(TOGETHER)
enum { ARENA = 64 << 20, HEAD = 16 };

static unsigned char arena[ARENA] __attribute__((aligned(16)));
static size_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int inside;
static struct account account;

const struct account *allocator_account(void)
{
	return &account;
}

static size_t *length_of(void *block)
{
	__asm__("" : "+r"(block)); /* the compiler takes a block for the beginning of an object */
	return (size_t *)(void *)((unsigned char *)block - HEAD);
}

/* Before libpolicy's constructor has run there is no policy; asking for it would take the library's own lock. */
static void clear(void *block, size_t len)
{
	account.calls++;
	account.reentered += inside != 0;
	inside = 1;
	pageclear_zero(block, len, (unsigned)(account.calls % 3));
	pageclear_policy_zero(NULL, block, len, PAGECLEAR_WIPE);
	inside = 0;
	for (size_t i = 0; i < len; i++)
		account.dirty += ((unsigned char *)block)[i] != 0;
}

static void *allocate(size_t len)
{
	size_t room = (len + 15) / 16 * 16;

	if (len > ARENA || room + HEAD > ARENA - used) {
		errno = ENOMEM;
		return NULL;
	}
	unsigned char *block = arena + used + HEAD;
	used += HEAD + room;
	*length_of(block) = len;
	memset(block, 0xA5, len);
	clear(block, len);
	return block;
}

void *malloc(size_t len)
{
	pthread_mutex_lock(&lock);
	void *block = allocate(len);
	pthread_mutex_unlock(&lock);
	return block;
}

void free(void *block)
{
	int kept = errno;

	if (block == NULL)
		return;
	pthread_mutex_lock(&lock);
	clear(block, *length_of(block));
	pthread_mutex_unlock(&lock);
	errno = kept;
}

void *calloc(size_t count, size_t len)
{
	if (len != 0 && count > SIZE_MAX / len) {
		errno = ENOMEM;
		return NULL;
	}
	return malloc(count * len);
}

void *realloc(void *block, size_t len)
{
	unsigned char *moved = malloc(len);

	if (moved != NULL && block != NULL) {
		memcpy(moved, block, *length_of(block) < len ? *length_of(block) : len);
		free(block);
	}
	return moved;
}

/* As early as a constructor can be: libpolicy's comes later where it is linked in. */
__attribute__((constructor(101))) static void early(void)
{
	char text[200];
	void *block = malloc(70000);

	free(block);
	if (pageclear_status(text, sizeof(text)) == 1 && strncmp(text, "libc only", 9) == 0)
		account.early = account.calls;
}
#endif

#ifdef PROGRAM
static void *work(void *unused)
{
	for (unsigned i = 0; i < 30; i++) {
		void *block = malloc(300 + 999 * i);

		free(block);
		if (pageclear_reload() < 0 || pageclear_status(NULL, 0) < 0)
			_exit(3);
	}
	return unused;
}

static int reload_anew(void)
{
	const struct pageclear_policy *policy;

	setenv("PAGECLEAR_POLICY", "builtin", 1);
	if (pageclear_reload() < 0 || pageclear_policy_open(&policy, NULL) != 0)
		return 1;
	pageclear_policy_close(policy);
	unsetenv("PAGECLEAR_POLICY");
	return pageclear_reload() < 0;
}

int main(void)
{
	pthread_t threads[4];
	const struct account *account_now = allocator_account();
	unsigned long before = account_now->calls;
	char text[300];

	alarm(60);
	if (pageclear_status(text, sizeof(text)) < 0 || before == 0 || reload_anew() != 0)
		return 2;
	for (int i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			return 2;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	fprintf(stderr, "%s\n", text);
	printf("calls before main: %s, early: %s, reentered %lu, dirty %lu\n", before > 0 ? "some" : "none",
	       account_now->early > 0 ? "some" : "none", account_now->reentered, account_now->dirty);
	return account_now->calls > before ? 0 : 2;
}
#endif
