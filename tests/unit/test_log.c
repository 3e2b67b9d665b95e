/* Messages as the journal and as people read them. */
#include "calibrd/log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/harness.h"

static char said[8192];

/* What the journal was handed: "FIELD=value|" each, an entry a line. */
static char entries[8192];
static int journal_answer;

static int take_entry(const struct iovec *fields, int count)
{
	size_t len = strlen(entries);

	for (int i = 0; i < count && journal_answer == 0; i++)
		len += (size_t)snprintf(entries + len, sizeof(entries) - len, "%.*s|", (int)fields[i].iov_len,
		                        (const char *)fields[i].iov_base);
	if (journal_answer == 0)
		snprintf(entries + len, sizeof(entries) - len, "\n");
	return journal_answer;
}

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
	log_journal = take_entry;
	entries[0] = '\0';
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

static void test_journal(void)
{
	CU_ASSERT_STRING_EQUAL(caught(true, speak_all), "");
	CU_ASSERT_STRING_EQUAL(entries, "MESSAGE=it is broken|PRIORITY=3|SYSLOG_IDENTIFIER=calibrd|\n"
	                                "MESSAGE=mind 7|PRIORITY=4|SYSLOG_IDENTIFIER=calibrd|\n"
	                                "MESSAGE=done|PRIORITY=5|SYSLOG_IDENTIFIER=calibrd|\n"
	                                "MESSAGE=100 %s|PRIORITY=6|SYSLOG_IDENTIFIER=calibrd|\n");
}

/* sd-daemon(3): <3> error, <4> warning, <5> notice, <6> info. */
static void test_journal_away(void)
{
	journal_answer = -ECONNREFUSED;
	CU_ASSERT_STRING_EQUAL(caught(true, speak_all), "<3>it is broken\n<4>mind 7\n<5>done\n<6>100 %s\n");
	CU_ASSERT_STRING_EQUAL(entries, "");
	journal_answer = 0;
}

static void speak_of_context(void)
{
	log_context("3f9ac2d14b07", 0);
	log_info("one");
	log_context("3f9ac2d14b07", 18446744073709551615u);
	log_event(LOG_POLICY_PUBLISHED, LOG_LEVEL_NOTICE, "%s", "two");
	log_context(NULL, 0);
	log_info("three");
}

static void test_fields(void)
{
	char expected[1024];

	snprintf(expected, sizeof(expected),
	         "MESSAGE=one|PRIORITY=6|SYSLOG_IDENTIFIER=calibrd|PAGECLEAR_TOPOLOGY=3f9ac2d14b07|\n"
	         "MESSAGE=two|PRIORITY=5|SYSLOG_IDENTIFIER=calibrd|MESSAGE_ID=%s|PAGECLEAR_TOPOLOGY=3f9ac2d14b07|"
	         "PAGECLEAR_GENERATION=18446744073709551615|\n"
	         "MESSAGE=three|PRIORITY=6|SYSLOG_IDENTIFIER=calibrd|\n",
	         log_event_id(LOG_POLICY_PUBLISHED));
	CU_ASSERT_STRING_EQUAL(caught(true, speak_of_context), "");
	CU_ASSERT_STRING_EQUAL(entries, expected);
	/* A person reads none of it. */
	CU_ASSERT_STRING_EQUAL(caught(false, speak_of_context), "calibrd: one\ncalibrd: two\ncalibrd: three\n");
	CU_ASSERT_STRING_EQUAL(entries, "");
}

static bool is_id(const char *id)
{
	size_t len = strlen(id);

	for (size_t i = 0; i < len; i++)
		if (!isdigit((unsigned char)id[i]) && (id[i] < 'a' || id[i] > 'f'))
			return false;
	return len == 32;
}

/* Whole and part of what is documented: fleets filter by them. */
static void test_ids(void)
{
	static const char *const documents[] = {"man/calibrd.8", "systemd/pageclear.catalog"};
	static char text[65536];

	for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
		FILE *file = fopen(documents[i], "re");

		CU_ASSERT_PTR_NOT_NULL_FATAL(file);
		text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
		fclose(file);
		for (int event = 0; event < LOG_EVENTS; event++)
			CU_ASSERT_PTR_NOT_NULL(strstr(text, log_event_id((enum log_event)event)));
	}
	for (int event = 0; event < LOG_EVENTS; event++) {
		CU_ASSERT(is_id(log_event_id((enum log_event)event)));
		for (int other = 0; other < event; other++)
			CU_ASSERT_STRING_NOT_EQUAL(log_event_id((enum log_event)event),
			                           log_event_id((enum log_event)other));
	}
}

static void speak_again(void)
{
	struct log_once once = {0}, other = {0};

	CU_ASSERT(log_once(&once, LOG_LEVEL_WARNING, "full: %d", 1));
	CU_ASSERT(!log_once(&once, LOG_LEVEL_WARNING, "full: %d", 1));
	CU_ASSERT(log_once(&other, LOG_LEVEL_WARNING, "full: %d", 1));
	CU_ASSERT(log_once(&once, LOG_LEVEL_WARNING, "full: %d", 2));
	CU_ASSERT(log_once(&once, LOG_LEVEL_WARNING, "full: %d", 1));
	log_once_over(&once);
	CU_ASSERT(log_once(&once, LOG_LEVEL_WARNING, "full: %d", 1));
	log_once_over(&once);
	log_once_over(&once);
	log_once_over(&other);
}

static void test_once(void)
{
	static const char expected[] = "calibrd: warning: full: 1\ncalibrd: warning: full: 1\n"
				       "calibrd: warning: full: 2\ncalibrd: warning: full: 1\n"
				       "calibrd: warning: full: 1\n";

	CU_ASSERT_STRING_EQUAL(caught(false, speak_again), expected);
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

/* Cut, and still one whole line, and one whole entry. */
static void test_long(void)
{
	const char *line = caught(false, speak_long);
	size_t len = strlen(line);

	CU_ASSERT(len > 1000 && len < 5000);
	CU_ASSERT_EQUAL(line[len - 1], '\n');
	CU_ASSERT_PTR_EQUAL(strchr(line, '\n'), line + len - 1);
	caught(true, speak_long);
	CU_ASSERT(strlen(entries) > 1000 && strlen(entries) < 5000);
	CU_ASSERT_PTR_NOT_NULL(strstr(entries, "xx|PRIORITY=3|SYSLOG_IDENTIFIER=calibrd|\n"));
}

static const struct unit_test tests[] = {
	{"journal", test_journal}, {"journal away", test_journal_away},
	{"fields", test_fields},   {"message ids", test_ids},
	{"said once", test_once},  {"another stream", test_another_stream},
	{"people", test_people},   {"long", test_long},
};

UNIT_MAIN("log", tests)
