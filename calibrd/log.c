/* Messages; see log.h. */
#include "calibrd/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

const char *log_program = "calibrd";

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

void log_say(enum log_level level, const char *format, ...)
{
	static const char *const prefix[] = {SD_ERR, SD_WARNING, SD_NOTICE, SD_INFO};
	static const char *const words[] = {"error: ", "warning: ", "", ""};
	char text[2048];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (is_journal(STDERR_FILENO))
		fprintf(stderr, "%s%s\n", prefix[level], text);
	else
		fprintf(stderr, "%s: %s%s\n", log_program, words[level], text);
}
