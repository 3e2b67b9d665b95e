/* Threads: 32 that clear beside others that reload, open, ask and fork; and threads with the smallest stack there is.
 * Meant for ThreadSanitizer as well (make check-all). */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "tests/unit/harness.h"
#include "tests/unit/safety.h"

enum { CLEARERS = 32, ROOM = 40000, RELOADS = UNDER_TSAN ? 300 : 100 };

static atomic_bool stop;
static atomic_uint wrong, cleared[CLEARERS];
static const struct pageclear_policy *shared;

static const char probing[] = "probe: {from: 1000, lines: 4, slow_ns: 57}\n";

/* Every way of clearing in turn, each thread in its own memory. */
static bool clear_somehow(unsigned char *bytes, unsigned turn)
{
	size_t len = 257 + turn * 4099 % (ROOM - 300);
	unsigned intent = all_intents[turn % INTENTS];
	struct iovec ranges[] = {{bytes + 1, len / 3}, {NULL, 0}, {bytes + 1 + len / 3, len - len / 3}};

	memset(bytes, 0xA5, len + 2);
	if (turn % 4 == 0)
		pageclear_policy_zero(shared, bytes + 1, len, intent);
	else if (turn % 4 == 1)
		pageclear_zero_ranges(ranges, 3, intent);
	else if (turn % 4 == 2)
		pageclear_policy_zero(NULL, bytes + 1, len, intent);
	else
		pageclear_zero(bytes + 1, len, intent);
	return bytes[0] == 0xA5 && is_all(bytes + 1, len, 0) && bytes[len + 1] == 0xA5;
}

static void *clear_until_told(void *argument)
{
	unsigned thread = (unsigned)(uintptr_t)argument;
	unsigned char *bytes = malloc(ROOM);

	if (bytes == NULL)
		wrong++;
	for (unsigned i = 0; bytes != NULL && !stop; i++) {
		wrong += !clear_somehow(bytes, i + thread);
		cleared[thread]++;
		sched_yield(); /* there may be few CPUs: let those who reload have their turn */
	}
	free(bytes);
	return NULL;
}

/* All that may be asked at any time. */
static void *ask_until_told(void *unused)
{
	struct pageclear_query query = {.size = sizeof(query), .len = 6000, .intent = PAGECLEAR_HOT};
	struct pageclear_choice choice = {.size = sizeof(choice)};
	const struct pageclear_policy *policy;
	char text[300];

	while (!stop) {
		wrong += pageclear_status(text, sizeof(text)) < 0 || text[0] == '\0';
		wrong += pageclear_policy_choose(shared, &query, &choice) != 0 || choice.from != 5000;
		if (pageclear_policy_open(&policy, NULL) == 0)
			pageclear_policy_close(policy);
		else
			wrong++;
		if (pageclear_policy_builtin(&policy) == 0)
			pageclear_policy_close(policy);
		else
			wrong++;
		sched_yield();
	}
	return unused;
}

static void *reload_until_told(void *unused)
{
	while (!stop) {
		wrong += pageclear_reload() < 0;
		sched_yield();
	}
	return unused;
}

/* A file appears, is replaced, is spoilt and goes away again. */
static void publish_something(unsigned i)
{
	const char *path = pc_search_paths[i % 2];

	if (i % 5 == 4)
		publish(path, "format: 1\n");
	else if (i % 7 == 6)
		unlink(path);
	else
		publish(path, i % 3 == 0 ? good_text(i) : probing_text(probing));
}

enum { OTHERS = 4 };
static pthread_t threads[CLEARERS + OTHERS];

static void start_threads(unsigned clearers)
{
	stop = false;
	wrong = 0;
	for (unsigned i = 0; i < clearers; i++) {
		cleared[i] = 0;
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, clear_until_told, (void *)(uintptr_t)i), 0);
	}
	for (unsigned i = clearers; i < clearers + OTHERS; i++)
		CU_ASSERT_EQUAL_FATAL(
			pthread_create(&threads[i], NULL, i % 2 == 0 ? ask_until_told : reload_until_told, NULL), 0);
}

static void join_threads(unsigned clearers)
{
	stop = true;
	for (unsigned i = 0; i < clearers + OTHERS; i++)
		pthread_join(threads[i], NULL);
	CU_ASSERT_EQUAL(wrong, 0);
}

static bool all_have_cleared(unsigned clearers)
{
	for (unsigned i = 0; i < clearers; i++)
		if (cleared[i] < 2)
			return false;
	return true;
}

static void test_reload_beside_32_threads(void)
{
	start_bare();
	shared = open_text(good_text(1));
	start_threads(CLEARERS);
	for (unsigned i = 0; i < RELOADS || !all_have_cleared(CLEARERS); i++) {
		publish_something(i);
		CU_ASSERT_TRUE(pageclear_reload() >= 0);
		sched_yield();
	}
	join_threads(CLEARERS);
	shared = pageclear_policy_close(shared);
	start_bare();
}

/* The child of a process whose other threads were in the middle of anything. */
static int live_on(void)
{
	static unsigned char bytes[ROOM];
	char text[1600];

	for (unsigned i = 0; i < 8; i++)
		CHECK(clear_somehow(bytes, i));
	CHECK(pageclear_status(text, sizeof(text)) >= 0 && text[0] != '\0');
	CHECK(pageclear_reload() >= 0);
	CHECK(pageclear_status(text, sizeof(text)) >= 0);
	CHECK(strstr(text, "parent process") == NULL); /* it has looked for itself */
	for (unsigned i = 0; i < 8; i++)
		CHECK(clear_somehow(bytes, i));
	return 0;
}

/* And its child, by then of one thread. */
static int fork_on(void)
{
	int r = in_child(live_on);

	return r == 0 ? live_on() : r;
}

static void test_fork_beside_all_of_it(void)
{
	enum { FORKS = 40, FEW = 4 };

	if (UNDER_ASAN || UNDER_TSAN) {
		unit_skip("a sanitizer's own locks are not made for the child of threads");
		return;
	}
	start_bare();
	shared = open_text(good_text(1));
	start_threads(FEW);
	for (unsigned i = 0; i < FORKS; i++) {
		publish_something(i);
		CU_ASSERT_EQUAL(in_child(i % 4 == 0 ? fork_on : live_on), 0);
	}
	join_threads(FEW);
	shared = pageclear_policy_close(shared);
	start_bare();
}

/* --- small stacks --- */

static void *use_everything(void *result)
{
	static unsigned char bytes[ROOM];
	const struct pageclear_policy *policy;
	bool right = true;

	for (unsigned i = 0; i < 2 * INTENTS; i++)
		right = right && clear_somehow(bytes, i);
	right = right && pageclear_reload() == 1 && pageclear_reload() == 0;
	right = right && pageclear_status(NULL, 0) == 0;
	right = right && pageclear_policy_open(&policy, NULL) == 0;
	if (right)
		pageclear_policy_close(policy);
	right = right && pageclear_policy_open(&policy, pc_search_paths[0]) == 0;
	if (right)
		pageclear_policy_close(policy);
	right = right && pageclear_policy_builtin(&policy) == 0;
	if (right)
		pageclear_policy_close(policy);
	*(bool *)result = right;
	return NULL;
}

/* In a child, since it dies where the stack is too small. */
static int on_the_smallest_stack(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	bool right = false;

	pthread_attr_init(&attributes);
	CHECK(pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)) == 0);
	CHECK(pthread_create(&thread, &attributes, use_everything, &right) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(right);
	return 0;
}

static void test_smallest_stack(void)
{
	if (UNDER_ASAN || UNDER_TSAN) {
		unit_skip("sanitizers take larger stacks");
		return;
	}
	start_bare();
	shared = open_text(good_text(1));
	publish(pc_search_paths[0], probing_text(probing));
	CU_ASSERT_EQUAL(in_child(on_the_smallest_stack), 0);
	shared = pageclear_policy_close(shared);
	start_bare();
}

/* --- cancelled --- */

/* Reading a file is where a cancelled thread ends; were that inside of the library, its lock would be held for ever. */
static void *reload_though_cancelled(void *results)
{
	const struct pageclear_policy *policy = NULL;
	int *result = results;

	pthread_cancel(pthread_self());
	result[0] = pageclear_reload();
	result[1] = pageclear_policy_open(&policy, pc_search_paths[0]);
	pageclear_policy_close(policy);
	pthread_testcancel();
	return NULL; /* not reached */
}

/* In a child, since whoever waits for the lock is ended by its alarm. */
static int cancel_while_reloading(void)
{
	int results[] = {-1, -1};
	pthread_t thread;
	void *end;

	CHECK(pthread_create(&thread, NULL, reload_though_cancelled, results) == 0);
	CHECK(pthread_join(thread, &end) == 0);
	CHECK(end == PTHREAD_CANCELED);
	CHECK(results[0] == 1 && results[1] == 0);
	CHECK(pageclear_status(NULL, 0) == 0);
	CHECK(pageclear_reload() == 0);
	return 0;
}

static void test_cancelled_threads_hold_nothing(void)
{
	start_bare();
	publish(pc_search_paths[0], good_text(3));
	CU_ASSERT_EQUAL(in_child(cancel_while_reloading), 0);
	start_bare();
}

static const struct unit_test tests[] = {
	{"reload_beside_32_threads", test_reload_beside_32_threads},
	{"fork_beside_all_of_it", test_fork_beside_all_of_it},
	{"smallest_stack", test_smallest_stack},
	{"cancelled_threads_hold_nothing", test_cancelled_threads_hold_nothing},
};

UNIT_MAIN("safety_threads", tests)
