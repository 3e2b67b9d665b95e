/*
 * libpageclear-preload.so's beginning: finds libc's memset, reads the environment, and asks libpolicy from which size
 * on it knows anything better. Runs after libpolicy's own constructor, being linked behind it.
 */
#include "preload/preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calibrd/sizes.h"
#include "libpolicy/process.h"
#include "libpolicy/why.h"

/* Below a page a gain is a few nanoseconds, of which finding it out takes its share. */
enum { LEAST = 4096 };

#define FROM "PAGECLEAR_PRELOAD_FROM"
#define INTENT "PAGECLEAR_PRELOAD_INTENT"
#define STATUS "PAGECLEAR_PRELOAD_STATUS"

/* One line, in one piece: other processes may write to the same place. What can't be written nobody waits for. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	char line[2048] = "libpageclear-preload: ";
	size_t used = strlen(line), room = sizeof(line) - used - 1;
	va_list arguments;

	va_start(arguments, format);
	int n = vsnprintf(line + used, room, format, arguments);
	va_end(arguments);
	if (n < 0)
		return;
	used += (size_t)n < room ? (size_t)n : room - 1;
	line[used++] = '\n';
	ssize_t written = write(STDERR_FILENO, line, used);
	(void)written;
}

/* NULL: not set, or empty, or not to be believed (set-uid programs load what /etc/ld.so.preload names). */
static const char *setting(const char *name)
{
	const char *value = secure_getenv(name);

	return value == NULL || value[0] == '\0' ? NULL : value;
}

static void refuse(const char *name, const char *value, const char *expected, const char *instead)
{
	char shown[48];
	const char *left = pc_shown(shown, sizeof(shown), value);

	say("%s: expected %s, found \"%s%s\"; %s", name, expected, shown, *left == '\0' ? "" : "...", instead);
}

static unsigned read_intent(void)
{
	static const struct {
		char name[8];
		unsigned intent;
	} known[] = {{"hot", PRELOAD_HOT}, {"cold", PRELOAD_COLD}, {"scrub", PRELOAD_SCRUB}};
	const char *value = setting(INTENT);

	if (value == NULL)
		return PRELOAD_HOT;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(value, known[i].name) == 0)
			return known[i].intent;
	refuse(INTENT, value, "hot, cold or scrub", "hot is used");
	return PRELOAD_HOT;
}

/* From this size on (a half octave's beginning) the policy knows anything but libc. */
static size_t known_from(unsigned intent)
{
	unsigned row = pc_row(intent);

	for (unsigned h = 0; h < PC_HALF_OCTAVES; h++) {
		uint64_t least = pc_half_octave_least(h);

		if (least >= LEAST && pc_words_at(&pc_process_words, row, least) != 0)
			return least;
	}
	return SIZE_MAX;
}

static void read_from(size_t *clear, size_t *wipe)
{
	const char *value = setting(FROM);
	uint64_t bytes;

	if (value == NULL)
		return;
	if (size_parse(value, &bytes) < 0)
		refuse(FROM, value, "a size as 4096, 64K or 2MiB", "the policy says from where");
	else
		*clear = *wipe = bytes;
}

static const char *from_in_words(size_t from, char text[32])
{
	char size[SIZE_TEXT];

	if (from == SIZE_MAX)
		return "left to libc";
	snprintf(text, 32, "from %s", size_format(from, size, sizeof(size)));
	return text;
}

static void tell_status(size_t clear, size_t wipe)
{
	const char *value = setting(STATUS);
	char policy[1600], cleared[32], wiped[32];

	if (value == NULL || strcmp(value, "0") == 0)
		return;
	if (strcmp(value, "1") != 0)
		refuse(STATUS, value, "0 or 1", "1 is used");
	pageclear_status(policy, sizeof(policy));
	say("memset and bzero %s; explicit_bzero %s; %s", from_in_words(clear, cleared), from_in_words(wipe, wiped),
	    policy);
}

static void find_next(void)
{
	preload_memset_function *next = (preload_memset_function *)dlsym(RTLD_NEXT, "memset");

	if (next == NULL)
		say("libc's memset was not found; a plain one stands in");
	atomic_store_explicit(&preload_next, next, memory_order_relaxed);
}

__attribute__((constructor)) static void start(void)
{
	int kept = errno;

	find_next();
	unsigned intent = read_intent();
	size_t clear = known_from(intent), wipe = known_from(PAGECLEAR_WIPE);
	read_from(&clear, &wipe);
	tell_status(clear, wipe);
	atomic_store_explicit(&preload_clear.intent, intent, memory_order_relaxed);
	atomic_store_explicit(&preload_clear.from, clear, memory_order_relaxed);
	atomic_store_explicit(&preload_wipe.from, wipe, memory_order_relaxed);
	errno = kept;
}
