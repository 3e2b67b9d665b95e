/*
 * One message at a time: to the journal with its fields where standard error is the journal (calibrd(8), JOURNAL), else
 * a line to standard error, with the program's name for a person. Not thread-safe: the main thread of a process speaks.
 */
#ifndef CALIBRD_LOG_H
#define CALIBRD_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_NOTICE, LOG_LEVEL_INFO };

/* What a person reads in front, and the journal's SYSLOG_IDENTIFIER; a program that isn't calibrd sets it once, at its
 * start. */
extern const char *log_program;

void log_say(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_say(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_say(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...) log_say(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_say(LOG_LEVEL_INFO, __VA_ARGS__)

/* --- for machines ------------------------------------------------------------------------------------------------ */

/* What stands beside every message in the journal from now on, as PAGECLEAR_TOPOLOGY and PAGECLEAR_GENERATION: the
 * topology's id (copied; NULL or "": none yet) and the generation in force (0: none). */
void log_context(const char *topology, uint64_t generation);

/* What fleets alert on: each has a MESSAGE_ID of its own for good, listed in calibrd(8) and in
 * systemd/pageclear.catalog. */
enum log_event {
	LOG_POLICY_PUBLISHED,      /* a new generation is in force */
	LOG_POLICY_WITHDRAWN,      /* made for another topology: taken away */
	LOG_CALIBRATION_NOISY,     /* done, and its outcome is to be doubted */
	LOG_CALIBRATION_FAILED,    /* nothing came of it; a stop that was asked for is no failure */
	LOG_VERIFICATION_EXCEEDED, /* the policy costs more than it may */
	LOG_EVENTS
};

void log_event(enum log_event event, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The MESSAGE_ID, 32 hexadecimal digits. */
const char *log_event_id(enum log_event event);

/* --- what comes again -------------------------------------------------------------------------------------------- */

/* The last thing said about one trouble, so that retries that end alike say it once. {0}: nothing yet. */
struct log_once {
	char *said;
};

/* Says it unless it is the very text said last through `once`. True: it was said. */
bool log_once(struct log_once *once, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same with an event. */
bool log_event_once(struct log_once *once, enum log_event event, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* The trouble is over, or its owner is: next time it is news, and nothing is held. */
void log_once_over(struct log_once *once);

/* --- for tests --------------------------------------------------------------------------------------------------- */

/* Hands an entry to the journal; -errno: it could not, and standard error has to do. */
extern int (*log_journal)(const struct iovec *fields, int count);

#endif
