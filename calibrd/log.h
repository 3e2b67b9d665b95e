/*
 * One line a message to standard error: with sd-daemon's level prefix where the journal reads it, with the program's
 * name where a person does.
 */
#ifndef CALIBRD_LOG_H
#define CALIBRD_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_NOTICE, LOG_LEVEL_INFO };

/* What a person reads in front; a program that isn't calibrd sets it once, at its start. */
extern const char *log_program;

void log_say(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_say(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_say(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...) log_say(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_say(LOG_LEVEL_INFO, __VA_ARGS__)

#endif
