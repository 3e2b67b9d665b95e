/* The meter's other threads between samples: started when asked for, then asleep, and gone with their meter. */
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/unit/harness.h"
#include "tests/unit/meter_crew_stand.h"

/* Of this process; other threads may be the sanitizers'. */
static unsigned count_threads(void)
{
	DIR *folder = opendir("/proc/self/task");
	unsigned count = 0;

	if (folder == NULL)
		return 0;
	for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
		count += entry->d_name[0] != '.';
	closedir(folder);
	return count;
}

/* State of a thread and the time it has run, as the scheduler says. '-': it is gone. */
static char state_of(pid_t tid, unsigned long long *ran_ns)
{
	char path[64], state = '-';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	file = fopen(path, "r");
	if (file == NULL)
		return '-';
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = '-';
	fclose(file);
	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", (int)tid);
	file = fopen(path, "r");
	if (file != NULL) {
		if (fscanf(file, "%llu", ran_ns) != 1)
			state = '-';
		fclose(file);
	}
	return state;
}

static char wait_for_state(pid_t tid, char state, unsigned long long *ran_ns)
{
	uint64_t late = stand_ns() + DEADLINE_S * 1000000000ull;

	while (state_of(tid, ran_ns) != state && stand_ns() < late)
		sched_yield();
	return state_of(tid, ran_ns);
}

static void test_sleep_between_asks(void)
{
	unsigned long long before[THREADS] = {0}, after[THREADS] = {0};
	unsigned others = 0;
	pid_t tids[THREADS];

	if (!start())
		return;
	check_clear((unsigned)crew.count, 65536, PC_FLUSHED);
	for (unsigned i = 0; i < crew.count; i++)
		if (witnesses[i].tid != getpid())
			tids[others++] = witnesses[i].tid;
	CU_ASSERT_EQUAL(others, crew.count - 1);
	for (unsigned i = 0; i < others; i++)
		CU_ASSERT_EQUAL(wait_for_state(tids[i], 'S', &before[i]), 'S');
	for (unsigned k = 0; k < 50; k++)
		check_clear(1, 65536, PC_CACHED);
	for (unsigned i = 0; i < others; i++) {
		CU_ASSERT_EQUAL(state_of(tids[i], &after[i]), 'S');
		CU_ASSERT_EQUAL(after[i], before[i]); /* not for a moment */
	}
	stand_stop();
	for (unsigned i = 0; i < others; i++)
		CU_ASSERT_EQUAL(wait_for_state(tids[i], '-', &after[i]), '-');
}

static void test_started_when_asked_for(void)
{
	unsigned before = count_threads();

	if (!start())
		return;
	check_clear(1, 65536, PC_CACHED);
	CU_ASSERT_EQUAL(count_threads(), before);
	check_clear(2, 65536, PC_CACHED);
	CU_ASSERT_EQUAL(count_threads(), before + 1);
	check_clear(2, 65536, PC_CACHED);
	check_clear((unsigned)crew.count, 65536, PC_CACHED);
	CU_ASSERT_EQUAL(count_threads(), before + crew.count - 1);
	stand_stop();
}

static const struct unit_test tests[] = {
	{"sleep between asks", test_sleep_between_asks},
	{"started when asked for", test_started_when_asked_for},
};

UNIT_MAIN("meter_crew_sleep", tests)
