/*
 * Guest memory that had another tenant is made zero by several threads, except for holes that must stay as they are
 * (pages that are shared, or that a device writes to). Nobody used it for long, and the guest is not there yet: cold,
 * flushed.
 *
 * How many clear at the same time matters, since they share the last-level cache and the memory channels, and only the
 * program knows: so it asks the policy with query.threads. pageclear_zero and pageclear_zero_ranges go by one thread.
 * Where that has the same answer the latter does all of a worker's ranges as one extent; else the answer's own clear is
 * called for each, in pieces of the chunk that was measured to be best.
 */
#define _DEFAULT_SOURCE
#include <pageclear/policy.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { WORKERS = 4, RANGES = 8, HOLE_BYTES = 8192 };
static const size_t range_bytes = 1u << 20;

struct worker {
	pthread_t thread;
	const struct pageclear_policy *policy;
	struct iovec ranges[RANGES];
	int error;
};

static int choose(const struct worker *worker, unsigned threads, struct pageclear_choice *choice)
{
	struct pageclear_query query;

	memset(&query, 0, sizeof(query)); /* members of later versions included */
	query.size = sizeof(query);
	query.len = RANGES * range_bytes;
	query.intent = PAGECLEAR_COLD | PAGECLEAR_FLUSHED;
	query.threads = threads;
	choice->size = sizeof(*choice);
	return pageclear_policy_choose(worker->policy, &query, choice);
}

static void clear_range(const struct pageclear_choice *choice, const struct iovec *range)
{
	unsigned char *at = (unsigned char *)range->iov_base;
	size_t left = range->iov_len;

	while (choice->chunk != 0 && left > choice->chunk) {
		choice->clear(at, choice->chunk);
		at += choice->chunk;
		left -= choice->chunk;
	}
	choice->clear(at, left);
}

static void *work(void *argument)
{
	struct worker *worker = (struct worker *)argument;
	struct pageclear_choice alone, together;

	worker->error = choose(worker, 1, &alone);
	if (worker->error == 0)
		worker->error = choose(worker, WORKERS, &together);
	if (worker->error != 0)
		return NULL;
	if (alone.clear == together.clear && alone.chunk == together.chunk)
		pageclear_zero_ranges(worker->ranges, RANGES, PAGECLEAR_COLD | PAGECLEAR_FLUSHED);
	else
		for (size_t i = 0; i < RANGES; i++)
			clear_range(&together, &worker->ranges[i]);
	return NULL;
}

/* Every range begins with its hole. */
static int start(struct worker *worker, const struct pageclear_policy *policy, unsigned char *bytes)
{
	worker->policy = policy;
	for (size_t i = 0; i < RANGES; i++) {
		worker->ranges[i].iov_base = bytes + i * range_bytes + HOLE_BYTES;
		worker->ranges[i].iov_len = range_bytes - HOLE_BYTES;
	}
	return pthread_create(&worker->thread, NULL, work, worker);
}

static size_t count_wrong(const unsigned char *bytes, size_t size)
{
	size_t wrong = 0;

	for (size_t i = 0; i < size; i++)
		wrong += bytes[i] != (i % range_bytes < HOLE_BYTES ? 0xa5 : 0);
	return wrong;
}

int main(void)
{
	static struct worker workers[WORKERS];
	const size_t share = RANGES * range_bytes, size = WORKERS * share;
	const struct pageclear_policy *policy;
	unsigned char *guest;
	size_t wrong;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || pageclear_policy_open(&policy, NULL) < 0) {
		fprintf(stderr, "populate: out of memory\n");
		return 1;
	}
	guest = (unsigned char *)memory;
	memset(guest, 0xa5, size);
	for (size_t i = 0; i < WORKERS; i++)
		if (start(&workers[i], policy, guest + i * share) != 0) {
			fprintf(stderr, "populate: no thread\n");
			exit(1);
		}
	for (size_t i = 0; i < WORKERS; i++)
		if (pthread_join(workers[i].thread, NULL) != 0 || workers[i].error < 0)
			exit(1);
	wrong = count_wrong(guest, size);
	pageclear_policy_close(policy); /* no thread uses it any more */
	munmap(memory, size);
	printf("populate: %d threads, %d ranges each, %zu bytes are not as they should be\n", WORKERS, RANGES, wrong);
	return wrong == 0 ? 0 : 1;
}
