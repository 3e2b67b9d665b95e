/* Messages as the journal and as people read them. */
#include "calibrd/log.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/harness.h"

static char said[8192];

static int open_log(void)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/stderr", unit_folder());
	return open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

/* What goes to standard error meanwhile; journal: that is the stream JOURNAL_STREAM names. */
static const char *caught(bool journal, void (*speak)(void))
{
	int file = open_log(), before = dup(STDERR_FILENO);
	struct stat status;
	char stream[64];
	ssize_t got;

	CU_ASSERT_FATAL(file >= 0 && before >= 0 && fstat(file, &status) == 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)status.st_dev,
	         (unsigned long long)status.st_ino + !journal);
	setenv("JOURNAL_STREAM", stream, 1);
	fflush(stderr);
	dup2(file, STDERR_FILENO);
	speak();
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(before);
	got = pread(file, said, sizeof(said) - 1, 0);
	close(file);
	said[got < 0 ? 0 : got] = '\0';
	return said;
}

static void speak_all(void)
{
	log_error("it is %s", "broken");
	log_warning("mind %d", 7);
	log_notice("done");
	log_info("%s", "100 %s");
}

/* sd-daemon(3): <3> error, <4> warning, <5> notice, <6> info. */
static void test_journal(void)
{
	CU_ASSERT_STRING_EQUAL(caught(true, speak_all), "<3>it is broken\n<4>mind 7\n<5>done\n<6>100 %s\n");
}

static const char people[] = "calibrd: error: it is broken\ncalibrd: warning: mind 7\ncalibrd: done\ncalibrd: 100 %s\n";

/* The variable is inherited by whatever a service starts, the stream perhaps not. */
static void test_another_stream(void)
{
	CU_ASSERT_STRING_EQUAL(caught(false, speak_all), people);
}

static void speak_without_stream(void)
{
	unsetenv("JOURNAL_STREAM");
	speak_all();
}

static void speak_with_nonsense(void)
{
	setenv("JOURNAL_STREAM", "", 1);
	speak_all();
}

static void test_people(void)
{
	CU_ASSERT_STRING_EQUAL(caught(true, speak_without_stream), people);
	CU_ASSERT_STRING_EQUAL(caught(true, speak_with_nonsense), people);
}

static void speak_long(void)
{
	char text[5000];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	log_error("%s", text);
}

/* Cut, and still one whole line. */
static void test_long(void)
{
	const char *line = caught(true, speak_long);
	size_t len = strlen(line);

	CU_ASSERT(len > 1000 && len < 5000);
	CU_ASSERT_EQUAL(line[len - 1], '\n');
	CU_ASSERT_PTR_EQUAL(strchr(line, '\n'), line + len - 1);
}

static const struct unit_test tests[] = {
	{"journal", test_journal},
	{"another stream", test_another_stream},
	{"people", test_people},
	{"long", test_long},
};

UNIT_MAIN("log", tests)
