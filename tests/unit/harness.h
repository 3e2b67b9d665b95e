/*
 * One CUnit suite a program, and skips that are seen: a skipped test prints "SKIP suite/test: reason" and is counted by
 * tests/run, never as a pass.
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <CUnit/Basic.h>
#include <stddef.h>

struct unit_test {
	const char *name;
	void (*run)(void);
};

/* Runs the tests under CUnit's basic interface; returns what main should return. */
int unit_main(const char *suite, const struct unit_test *tests, size_t count);

/* Says that the running test cannot be had here; the test returns right after. */
void unit_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ../shared beside the project, or $PAGECLEAR_SHARED: facts used in tests where they are; NULL where not. */
const char *unit_shared(const char *below);

/* A fresh folder under $TMPDIR, removed at the end of the program. */
const char *unit_folder(void);

#define UNIT_MAIN(suite, tests)                                                                                        \
	int main(void)                                                                                                 \
	{                                                                                                              \
		return unit_main(suite, tests, sizeof(tests) / sizeof((tests)[0]));                                    \
	}

#endif
