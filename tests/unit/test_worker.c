/* The measuring child's own side: orders that it refuses, and whose child it is. */
#include "calibrd/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/run_scripts.h"

static const struct order the_order = {.magic = ORDER_MAGIC, .memory_bytes = 123};

/* The real worker refuses what is no order. */
static void test_worker_refuses(void)
{
	int in[2], out = open("/dev/null", O_WRONLY | O_CLOEXEC);

	for (int i = 0; i < 6; i++) {
		struct order order = the_order;

		CU_ASSERT_EQUAL_FATAL(pipe2(in, O_CLOEXEC), 0);
		order.magic = i == 0 ? 1 : ORDER_MAGIC;
		order.effort = i == 1 ? EFFORTS : EFFORT_QUICK;
		order.task = i == 3 ? ORDER_VERIFY + 1 : ORDER_CALIBRATE;
		order.duty_percent = i == 4 ? 101 : 100;
		if (i == 5)
			memset(order.policy, 'x', sizeof(order.policy));
		CU_ASSERT(write(in[1], &order, i == 2 ? sizeof(order) - 1 : sizeof(order)) > 0);
		close(in[1]);
		CU_ASSERT_EQUAL(worker_main(in[0], out), 2);
		close(in[0]);
	}
	close(out);
}

/* It was somebody else's child when it was asked: whoever asked has died since. */
static void test_worker_of_a_dead_parent(void)
{
	struct order order = the_order;
	int in[2], out[2], status = -1;
	char byte;
	pid_t pid;

	CU_ASSERT_EQUAL_FATAL(pipe2(in, O_CLOEXEC), 0);
	CU_ASSERT_EQUAL_FATAL(pipe2(out, O_CLOEXEC), 0);
	order.parent = getppid();
	CU_ASSERT_EQUAL(write(in[1], &order, sizeof(order)), (ssize_t)sizeof(order));
	pid = fork();
	CU_ASSERT_FATAL(pid >= 0);
	if (pid == 0)
		_exit(worker_main(in[0], out[1]));
	close(out[1]);
	CU_ASSERT_EQUAL(read(out[0], &byte, 1), 0); /* not even a record */
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	close(in[0]);
	close(in[1]);
	close(out[0]);
}

/* A real one: a policy that cannot be read is said with its name, and nothing is tried for it. */
static void test_worker_without_a_policy(void)
{
	struct order order = {.magic = ORDER_MAGIC, .task = ORDER_VERIFY, .policy = "/nowhere/policy.yaml"};
	int in[2], out[2];
	struct run run;
	struct pc_why why;
	pid_t pid;

	CU_ASSERT_EQUAL_FATAL(pipe2(in, O_CLOEXEC), 0);
	CU_ASSERT_EQUAL_FATAL(pipe2(out, O_CLOEXEC), 0);
	order.parent = getpid();
	CU_ASSERT_EQUAL(write(in[1], &order, sizeof(order)), (ssize_t)sizeof(order));
	pid = fork();
	CU_ASSERT_FATAL(pid >= 0);
	if (pid == 0)
		_exit(worker_main(in[0], out[1]));
	close(in[0]);
	close(out[1]);
	CU_ASSERT_EQUAL(run_watch(&run, ORDER_VERIFY, pid, out[0], in[1], &why), 0);
	CU_ASSERT_EQUAL(read_on(&run, PATIENCE_MS, &why), -ENOENT);
	CU_ASSERT(says(&why, "/nowhere/policy.yaml: "));
	CU_ASSERT_EQUAL(run.passed | run.faulted, 0);
	run_free(&run);
}

static const struct unit_test tests[] = {
	{"refuses", test_worker_refuses},
	{"of a dead parent", test_worker_of_a_dead_parent},
	{"without a policy", test_worker_without_a_policy},
};

UNIT_MAIN("worker", tests)
