#include "calibctl/words.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "calibrd/sizes.h"
#include "kernels/cpu.h"
#include "pageclear/policy.h"

void words_append(char *out, size_t size, const char *format, ...)
{
	size_t used = strlen(out);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(out + used, size - used, format, arguments);
	va_end(arguments);
}

const char *words_stated(const char *text)
{
	return text[0] == '\0' ? "not stated" : text;
}

/* Three significant digits without an exponent. */
static int digits_after_point(double value)
{
	value = fabs(value);
	return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

void words_ns(double ns, char out[WORDS_SHORT])
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	unsigned unit = 0;

	if (isnan(ns)) {
		snprintf(out, WORDS_SHORT, "-");
		return;
	}
	for (; fabs(ns) >= 999.5 && unit < 3; unit++)
		ns /= 1000;
	snprintf(out, WORDS_SHORT, "%.*f %s", digits_after_point(ns), ns, units[unit]);
}

void words_rate(uint64_t bytes, double ns, char out[WORDS_SHORT])
{
	double rate = (double)bytes / ns; /* bytes a nanosecond are gigabytes a second */

	if (isnan(rate) || ns <= 0)
		snprintf(out, WORDS_SHORT, "-");
	else
		snprintf(out, WORDS_SHORT, "%.*f", digits_after_point(rate), rate);
}

void words_gain(double gain, char out[WORDS_SHORT])
{
	if (isnan(gain) || gain <= 0)
		snprintf(out, WORDS_SHORT, "-");
	else
		snprintf(out, WORDS_SHORT, "%.*fx", digits_after_point(gain), gain);
}

void words_percent(double share, char out[WORDS_SHORT])
{
	if (isnan(share))
		snprintf(out, WORDS_SHORT, "-");
	else
		snprintf(out, WORDS_SHORT, "%.*f %%", fabs(share) < 0.00995 ? 1 : 0, share * 100);
}

void words_size(uint64_t bytes, char out[WORDS_SHORT])
{
	size_format(bytes, out, WORDS_SHORT);
}

void words_age(int64_t seconds, char out[WORDS_SHORT])
{
	static const struct {
		int64_t seconds;
		const char *name;
	} units[] = {{365 * 86400, "year"}, {86400, "day"}, {3600, "hour"}, {60, "minute"}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		int64_t count = seconds / units[i].seconds;

		if (count < 1)
			continue;
		snprintf(out, WORDS_SHORT, "%" PRId64 " %s%s ago", count, units[i].name, count == 1 ? "" : "s");
		return;
	}
	/* Clocks of two hosts differ a little. */
	snprintf(out, WORDS_SHORT, "%s", seconds < -60 ? "in the future" : "just now");
}

int words_parse_time(const char *text, int64_t *seconds)
{
	struct tm broken = {0};
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &broken);

	if (end == NULL || *end != '\0')
		return -EINVAL;
	*seconds = timegm(&broken);
	return 0;
}

void words_time(int64_t seconds, char out[WORDS_SHORT])
{
	time_t time = (time_t)seconds;
	struct tm broken;

	if (gmtime_r(&time, &broken) == NULL || strftime(out, WORDS_SHORT, "%Y-%m-%d %H:%M:%S UTC", &broken) == 0)
		snprintf(out, WORDS_SHORT, "%" PRId64 " s from 1970", seconds);
}

const char *words_family(enum pc_family family)
{
	static const char *const names[] = {[PC_LIBC] = "libc",
	                                    [PC_REP] = "rep",
	                                    [PC_TEMPORAL] = "temporal",
	                                    [PC_NONTEMPORAL] = "non-temporal",
	                                    [PC_LINE] = "line"};

	return (unsigned)family < sizeof(names) / sizeof(names[0]) ? names[family] : "unknown";
}

const char *words_calibration(enum calibration_state state)
{
	static const char *const names[] = {
		[CALIBRATION_RUNNING] = "running", [CALIBRATION_DONE] = "done", [CALIBRATION_FAILED] = "failed"};

	return (unsigned)state < sizeof(names) / sizeof(names[0]) ? names[state] : "unknown";
}

int words_intent(const char *word)
{
	for (unsigned i = PAGECLEAR_HOT; i <= PAGECLEAR_SCRUB; i++)
		if (strcmp(word, pc_intent_name(i)) == 0)
			return (int)i;
	return -1;
}

int words_prior(const char *word)
{
	for (unsigned i = 0; i < PC_PRIORS; i++)
		if (strcmp(word, pc_prior_name(i)) == 0)
			return (int)i;
	return -1;
}

const char *words_intent_meaning(unsigned intent)
{
	static const char *const meanings[] = {
		[PAGECLEAR_HOT] = "this CPU uses it right after",
		[PAGECLEAR_COLD] = "nobody uses it soon",
		[PAGECLEAR_SCRUB] = "background work that spares the caches; the gain counts them before time"};

	return intent < sizeof(meanings) / sizeof(meanings[0]) ? meanings[intent] : "unknown";
}

const char *words_prior_meaning(enum pc_prior prior)
{
	static const char *const meanings[] = {[PC_UNKNOWN] = "nobody knows whether it is cached",
	                                       [PC_CACHED] = "it was just used",
	                                       [PC_FLUSHED] = "no cache holds it"};

	return (unsigned)prior < PC_PRIORS ? meanings[prior] : "unknown";
}
