/* Signals in the middle of everything: handlers that clear, on a small stack of their own, while the thread that they
 * interrupt reloads, clears and asks. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <time.h>

#include "tests/unit/harness.h"
#include "tests/unit/safety.h"

/* Signals that come faster than they are handled leave no time for what they interrupt. */
enum { ROOM = 20000, LEAST = UNDER_TSAN ? 30 : 150, PERIOD_US = UNDER_TSAN || UNDER_ASAN ? 3000 : 300 };

/* A handler's own; another signal's may interrupt it, its own may not. */
struct handler {
	unsigned char bytes[ROOM];
	unsigned turn;
	atomic_uint handled, wrong;
};

static struct handler by_timer, by_thread;
static const struct pageclear_policy *shared;

static void clear_in(struct handler *handler)
{
	unsigned turn = handler->turn++;
	size_t len = 257 + turn * 1031 % (ROOM - 300);
	unsigned intent = all_intents[turn % INTENTS];
	struct pageclear_query query = {.size = sizeof(query), .len = len};
	struct pageclear_choice choice = {.size = sizeof(choice)};
	unsigned char *bytes = handler->bytes;
	int kept = errno;

	memset(bytes, 0xA5, len + 2);
	errno = 4711;
	if (turn % 4 == 0)
		pageclear_zero(bytes + 1, len, intent);
	else if (turn % 4 == 1)
		pageclear_policy_zero(shared, bytes + 1, len, intent);
	else if (turn % 4 == 2)
		pageclear_zero_ranges(&(struct iovec){bytes + 1, len}, 1, intent);
	else if (pageclear_policy_choose(shared, &query, &choice) == 0)
		choice.clear(bytes + 1, len);
	handler->wrong += errno != 4711 || bytes[0] != 0xA5 || !is_all(bytes + 1, len, 0) || bytes[len + 1] != 0xA5;
	handler->handled++;
	errno = kept;
}

static void handle(int number)
{
	clear_in(number == SIGALRM ? &by_timer : &by_thread);
}

static atomic_bool stop;

static void *send_signals(void *thread)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	while (!stop) {
		pthread_kill(*(pthread_t *)thread, SIGUSR1);
		nanosleep(&(struct timespec){.tv_nsec = 1000L * PERIOD_US}, NULL);
	}
	return NULL;
}

static void set_timer(long microseconds)
{
	setitimer(ITIMER_REAL, &(struct itimerval){{0, microseconds}, {0, microseconds}}, NULL);
}

static void catch_signals(void)
{
	/* What the kernel pushes, and no more than an allocator's or a runtime's handler would have besides. */
	static unsigned char stack[65536];
	const stack_t alternate = {.ss_sp = stack,
	                           .ss_size = UNDER_ASAN || UNDER_TSAN ? sizeof(stack)
	                                                               : 2 * (size_t)sysconf(_SC_MINSIGSTKSZ) + 4096};
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK | SA_RESTART};

	CU_ASSERT_TRUE_FATAL(alternate.ss_size <= sizeof(stack));
	CU_ASSERT_EQUAL(sigaltstack(&alternate, NULL), 0);
	sigaction(SIGALRM, &action, NULL);
	action.sa_flags = SA_ONSTACK; /* system calls end with EINTR */
	sigaction(SIGUSR1, &action, NULL);
}

static bool enough(unsigned turns)
{
	return turns >= LEAST && by_timer.handled >= LEAST && by_thread.handled >= LEAST;
}

/* One turn of what is interrupted; publishing is not: stdio makes no promise there. */
static void work(unsigned turn)
{
	static unsigned char bytes[ROOM];
	sigset_t ours, before;
	char text[1600];

	sigemptyset(&ours);
	sigaddset(&ours, SIGUSR1);
	sigaddset(&ours, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &ours, &before);
	publish(pc_search_paths[turn % 2],
	        turn % 3 == 0 ? good_text(turn) : probing_text("probe: {from: 1000, lines: 4, slow_ns: 57}\n"));
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	for (unsigned i = 0; i < 4; i++) {
		int r = pageclear_reload();

		CU_ASSERT_TRUE(r >= 0);
		CU_ASSERT_EQUAL(pageclear_status(text, sizeof(text)), 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(text, ".yaml: generation "));
		CU_ASSERT_TRUE(clears_right(bytes, 257 + turn * 1031 % (ROOM - 300), all_intents[turn % INTENTS]));
	}
}

static void test_handlers_clear_while_reloading(void)
{
	pthread_t self = pthread_self(), sender;
	unsigned turns = 0;

	start_bare();
	shared = open_text(good_text(1));
	catch_signals();
	CU_ASSERT_EQUAL_FATAL(pthread_create(&sender, NULL, send_signals, &self), 0);
	set_timer(PERIOD_US);
	while (!enough(turns))
		work(turns++);
	set_timer(0);
	stop = true;
	pthread_join(sender, NULL);
	CU_ASSERT_EQUAL(by_timer.wrong, 0);
	CU_ASSERT_EQUAL(by_thread.wrong, 0);
	shared = pageclear_policy_close(shared);
	start_bare();
}

static const struct unit_test tests[] = {
	{"handlers_clear_while_reloading", test_handlers_clear_while_reloading},
};

UNIT_MAIN("safety_signals", tests)
