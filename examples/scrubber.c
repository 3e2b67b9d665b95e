/*
 * A pool of pages whose cleaning is somebody else's work: who frees a page hands it to a background thread, which
 * scrubs it (the caches are spared for those who do the work) and puts it among the clean ones.
 *
 * Worth copying: a scrub is done page by page with the lock open, so that no one ever waits for more than a page, and
 * the thread looks now and then whether the host has a new policy, since nobody else in this program does.
 */
#include <pageclear/policy.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { PAGES = 64, PAGE_BYTES = 256 * 1024, ROUNDS = 1000, RELOAD_EVERY = 100 };

struct page {
	struct page *next;
	unsigned char *bytes;
};

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t freed, cleaned;
	struct page *dirty, *clean;
	int ends;
};

static void push(struct page **list, struct page *page)
{
	page->next = *list;
	*list = page;
}

static struct page *pop(struct page **list)
{
	struct page *page = *list;

	if (page != NULL)
		*list = page->next;
	return page;
}

static void *scrub(void *argument)
{
	struct pool *pool = (struct pool *)argument;
	unsigned scrubbed = 0;

	pthread_mutex_lock(&pool->lock);
	for (;;) {
		struct page *page = pop(&pool->dirty);

		if (page == NULL && pool->ends)
			break;
		if (page == NULL) {
			pthread_cond_wait(&pool->freed, &pool->lock);
			continue;
		}
		pthread_mutex_unlock(&pool->lock);
		if (++scrubbed % RELOAD_EVERY == 0)
			(void)pageclear_reload(); /* an error leaves what is in force: nothing to be done about */
		pageclear_zero(page->bytes, PAGE_BYTES, PAGECLEAR_SCRUB);
		pthread_mutex_lock(&pool->lock);
		push(&pool->clean, page);
		pthread_cond_signal(&pool->cleaned);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

static struct page *take(struct pool *pool)
{
	struct page *page;

	pthread_mutex_lock(&pool->lock);
	while ((page = pop(&pool->clean)) == NULL)
		pthread_cond_wait(&pool->cleaned, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
	return page;
}

static void give_back(struct pool *pool, struct page *page)
{
	pthread_mutex_lock(&pool->lock);
	push(&pool->dirty, page);
	pthread_cond_signal(&pool->freed);
	pthread_mutex_unlock(&pool->lock);
}

static void finish(struct pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->ends = 1;
	pthread_cond_signal(&pool->freed);
	pthread_mutex_unlock(&pool->lock);
}

int main(void)
{
	static struct page pages[PAGES];
	struct pool pool = {
		PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, NULL, 0};
	static unsigned char bytes[PAGES][PAGE_BYTES];
	unsigned dirty = 0;
	pthread_t scrubber;

	if (pthread_create(&scrubber, NULL, scrub, &pool) != 0) {
		fprintf(stderr, "scrubber: no thread\n");
		return 1;
	}
	for (size_t i = 0; i < PAGES; i++) {
		pages[i].bytes = bytes[i];
		memset(pages[i].bytes, 0xa5, PAGE_BYTES);
		give_back(&pool, &pages[i]);
	}
	for (int i = 0; i < ROUNDS; i++) {
		struct page *page = take(&pool);

		dirty += page->bytes[0] != 0 || memcmp(page->bytes, page->bytes + 1, PAGE_BYTES - 1) != 0;
		memset(page->bytes, i | 1, PAGE_BYTES);
		give_back(&pool, page);
	}
	finish(&pool);
	pthread_join(scrubber, NULL);
	printf("scrubber: %d pages taken, %u of them not clean\n", ROUNDS, dirty);
	return dirty == 0 ? 0 : 1;
}
