/* Messages; see log.h. */
#include "calibrd/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
/* The place in the source would be this file for all of them. */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

enum { TEXT = 2048, FIELDS = 6, SHORT = 96 };

const char *log_program = "calibrd";

static char context_topology[32]; /* 12 digits, so far */
static uint64_t context_generation;

static const char *const ids[LOG_EVENTS] = {
	[LOG_POLICY_PUBLISHED] = "e69cd060822ff58b8973f7baf9a79652",
	[LOG_POLICY_WITHDRAWN] = "c327a39522dac5a28c84ec72f325bcb5",
	[LOG_CALIBRATION_NOISY] = "276cec58e074d29d56f0148549aca251",
	[LOG_CALIBRATION_FAILED] = "12ca73f21e4020067274def6c32199ab",
	[LOG_VERIFICATION_EXCEEDED] = "0ef0fa267214e240362bc2f7958d748d",
};

const char *log_event_id(enum log_event event)
{
	return ids[event];
}

void log_context(const char *topology, uint64_t generation)
{
	snprintf(context_topology, sizeof(context_topology), "%s", topology != NULL ? topology : "");
	context_generation = generation;
}

/* --- one entry --------------------------------------------------------------------------------------------------- */

/* sd_journal_sendv() calls it a success where there is no socket at all. */
static int send_native(const struct iovec *fields, int count)
{
	return access("/run/systemd/journal/socket", W_OK) < 0 ? -errno : sd_journal_sendv(fields, count);
}

int (*log_journal)(const struct iovec *fields, int count) = send_native;

struct entry {
	struct iovec fields[FIELDS];
	int count;
	char message[TEXT + 16], texts[FIELDS][SHORT]; /* what the fields point to */
};

static void add(struct entry *entry, const char *name, const char *value)
{
	char *text = entry->texts[entry->count];

	snprintf(text, SHORT, "%s=%s", name, value);
	entry->fields[entry->count++] = (struct iovec){text, strlen(text)};
}

/* Levels as syslog(3) counts them: 3 error, 4 warning, 5 notice, 6 info. */
static int send_entry(enum log_level level, const char *id, const char *text)
{
	struct entry entry = {.count = 1};
	char number[24];

	entry.fields[0].iov_base = entry.message;
	entry.fields[0].iov_len = (size_t)snprintf(entry.message, sizeof(entry.message), "MESSAGE=%s", text);
	snprintf(number, sizeof(number), "%d", 3 + (int)level);
	add(&entry, "PRIORITY", number);
	add(&entry, "SYSLOG_IDENTIFIER", log_program);
	if (id != NULL)
		add(&entry, "MESSAGE_ID", id);
	if (context_topology[0] != '\0')
		add(&entry, "PAGECLEAR_TOPOLOGY", context_topology);
	snprintf(number, sizeof(number), "%llu", (unsigned long long)context_generation);
	if (context_generation > 0)
		add(&entry, "PAGECLEAR_GENERATION", number);
	return log_journal(entry.fields, entry.count);
}

/* systemd tells services by JOURNAL_STREAM=DEVICE:INODE which stream the journal reads (systemd.exec(5)). Whatever they
 * start inherits the variable, though perhaps not the stream. */
static bool is_journal(int fd)
{
	const char *stream = getenv("JOURNAL_STREAM");
	struct stat status;
	char own[64];

	if (stream == NULL || fstat(fd, &status) < 0)
		return false;
	snprintf(own, sizeof(own), "%llu:%llu", (unsigned long long)status.st_dev, (unsigned long long)status.st_ino);
	return strcmp(stream, own) == 0;
}

/* A journal that takes no entry has the stream still, and a level in front of its lines. */
static void put(enum log_level level, const char *id, const char *text)
{
	static const char *const prefix[] = {SD_ERR, SD_WARNING, SD_NOTICE, SD_INFO};
	static const char *const words[] = {"error: ", "warning: ", "", ""};

	if (!is_journal(STDERR_FILENO))
		fprintf(stderr, "%s: %s%s\n", log_program, words[level], text);
	else if (send_entry(level, id, text) < 0)
		fprintf(stderr, "%s%s\n", prefix[level], text);
}

/* --- what is asked for ------------------------------------------------------------------------------------------- */

static bool is_news(struct log_once *once, const char *text)
{
	if (once->said != NULL && strcmp(once->said, text) == 0)
		return false;
	free(once->said);
	once->said = strdup(text); /* without memory: said again next time */
	return true;
}

/* once: NULL: whatever was said before; id: NULL: no event. */
static bool say(struct log_once *once, enum log_level level, const char *id, const char *format, va_list arguments)
{
	char text[TEXT];

	vsnprintf(text, sizeof(text), format, arguments);
	if (once != NULL && !is_news(once, text))
		return false;
	put(level, id, text);
	return true;
}

void log_say(enum log_level level, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(NULL, level, NULL, format, arguments);
	va_end(arguments);
}

void log_event(enum log_event event, enum log_level level, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(NULL, level, ids[event], format, arguments);
	va_end(arguments);
}

bool log_once(struct log_once *once, enum log_level level, const char *format, ...)
{
	va_list arguments;
	bool news;

	va_start(arguments, format);
	news = say(once, level, NULL, format, arguments);
	va_end(arguments);
	return news;
}

bool log_event_once(struct log_once *once, enum log_event event, enum log_level level, const char *format, ...)
{
	va_list arguments;
	bool news;

	va_start(arguments, format);
	news = say(once, level, ids[event], format, arguments);
	va_end(arguments);
	return news;
}

void log_once_over(struct log_once *once)
{
	free(once->said);
	once->said = NULL;
}
