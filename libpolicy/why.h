/*
 * An error in words beside its number: filled where the fault is found, passed up unchanged, printed once at the top.
 */
#ifndef PC_WHY_H
#define PC_WHY_H

#include <stddef.h>

struct pc_why {
	char text[256];
};

/* Formats into why, which may be NULL. */
void pc_why_say(struct pc_why *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Bytes of the control character that text (UTF-8, ending in NUL) begins with: C0, DEL, C1, line and paragraph
 * separators, and those that turn the direction of writing; else 0. What is shown on terminals has none. */
unsigned pc_control(const char *text);

/* Copies text, which may be any bytes and very long, for people and one line: with '?' for each of those characters,
 * and cut to size. Returns what is left of it, "" if all fitted. */
const char *pc_shown(char *to, size_t size, const char *text);

/* Formats likewise and is worth code: return pc_why(why, -EBADMSG, "..."). A macro, so that compilers and analysers see
 * which code is returned; code is looked at first, since formatting may change errno. */
#define pc_why(why, code, ...)                                                                                         \
	__extension__({                                                                                                \
		int pc_why_code = (code);                                                                              \
		pc_why_say(why, __VA_ARGS__);                                                                          \
		pc_why_code;                                                                                           \
	})

#endif
