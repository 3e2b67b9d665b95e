/* The keys of calibrd.yaml and how each value is read. The schema and configs/calibrd.yaml list the same. */
#include <errno.h>
#include <inttypes.h>
#include <pageclear/policy.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrd/config.h"
#include "calibrd/sizes.h"
#include "kernels/kernels.h"
#include "libpolicy/tree.h"

static const uint64_t least_memory =
	16 * 1024 * 1024; /* with less nothing beyond the smaller caches could be measured */

static const char *const efforts[] = {
	[EFFORT_QUICK] = "quick", [EFFORT_STANDARD] = "standard", [EFFORT_THOROUGH] = "thorough", NULL};
static const char *const calibrates[] = {
	[CALIBRATE_AUTO] = "auto", [CALIBRATE_IMPORT] = "import", [CALIBRATE_MANUAL] = "manual", NULL};
static const char *const intents[] = {
	[PAGECLEAR_HOT] = "hot", [PAGECLEAR_COLD] = "cold", [PAGECLEAR_SCRUB] = "scrub", NULL};
static const char *const priors[] = {[PC_UNKNOWN] = "unknown", [PC_CACHED] = "cached", [PC_FLUSHED] = "flushed", NULL};

/* --- complaints -------------------------------------------------------------------------------------------------- */

static const char *found(const struct pc_node *node, char out[40])
{
	size_t n = 0;

	if (node->kind != PC_SCALAR)
		return node->kind == PC_MAPPING ? "a mapping" : "a list";
	if (node->text[0] == '\0')
		return "nothing";
	for (const char *c = node->text; *c != '\0' && n < 39; c++)
		out[n++] = *c < ' ' || *c > '~' ? '?' : *c;
	out[n] = '\0';
	return out;
}

static int refuse(int code, const char *name, const struct pc_node *node, struct pc_why *why, const char *expected, ...)
	__attribute__((format(printf, 5, 6)));

static int refuse(int code, const char *name, const struct pc_node *node, struct pc_why *why, const char *expected, ...)
{
	char text[sizeof(why->text)], other[40];
	va_list arguments;

	va_start(arguments, expected);
	vsnprintf(text, sizeof(text), expected, arguments);
	va_end(arguments);
	return pc_why(why, code, "%u:%u: %s: expected %s, found %s", node->line, node->column, name, text,
	              found(node, other));
}

static void list_words(const char *const *words, char *out, size_t size)
{
	size_t len = 0;

	out[0] = '\0';
	for (; *words != NULL && len < size; words++)
		len += (size_t)snprintf(out + len, size - len, "%s%s", len == 0 ? "" : ", ", *words);
}

/* --- one value --------------------------------------------------------------------------------------------------- */

static int read_word(const char *name, const struct pc_node *node, const char *const *words, unsigned *out,
                     struct pc_why *why)
{
	char known[160];

	for (unsigned i = 0; node->kind == PC_SCALAR && words[i] != NULL; i++)
		if (strcmp(node->text, words[i]) == 0) {
			*out = i;
			return 0;
		}
	list_words(words, known, sizeof(known));
	return refuse(-EBADMSG, name, node, why, "one of %s", known);
}

static int read_size(const char *name, const struct pc_node *node, uint64_t *out, struct pc_why *why)
{
	int r = node->kind == PC_SCALAR ? size_parse(node->text, out) : -EINVAL;

	if (r == -ERANGE)
		return refuse(r, name, node, why, "a size below 16 EiB");
	return r < 0 ? refuse(-EBADMSG, name, node, why, "a size as 4096, 64K or 2MiB") : 0;
}

static int read_path(const char *name, const struct pc_node *node, char out[CONFIG_PATH], struct pc_why *why)
{
	if (node->kind != PC_SCALAR || node->text[0] != '/' || node->text[strlen(node->text) - 1] == '/')
		return refuse(-EBADMSG, name, node, why, "a file's path from / on");
	return pc_node_text(node, out, CONFIG_PATH, why);
}

static int read_kernel(const char *name, const struct pc_node *node, unsigned *out, struct pc_why *why)
{
	const char *names[PC_KERNEL_MAX + 1] = {NULL};

	for (unsigned i = 0; i < pc_kernel_count; i++)
		names[i] = pc_kernels[i].name;
	return read_word(name, node, names, out, why);
}

/* --- keys -------------------------------------------------------------------------------------------------------- */

static int read_effort(struct config *config, const char *name, const struct pc_node *node, struct pc_why *why)
{
	unsigned word = 0;
	int r = read_word(name, node, efforts, &word, why);

	if (r == 0)
		config->effort = (enum effort)word;
	return r;
}

static int read_calibrate(struct config *config, const char *name, const struct pc_node *node, struct pc_why *why)
{
	unsigned word = 0;
	int r = read_word(name, node, calibrates, &word, why);

	if (r == 0)
		config->calibrate = (enum config_calibrate)word;
	return r;
}

static int read_scrub_weight(struct config *config, const char *name, const struct pc_node *node, struct pc_why *why)
{
	(void)name; /* the reader of numbers names the key itself */
	return pc_node_double(node, 0, 10, &config->scrub_weight, why);
}

static int read_most_bytes(struct config *config, const char *name, const struct pc_node *node, struct pc_why *why)
{
	uint64_t bytes = 0;
	int r = read_size(name, node, &bytes, why);

	if (r == 0 && bytes != 0 && bytes < least_memory)
		r = refuse(-ERANGE, name, node, why, "0 or at least 16 MiB");
	if (r == 0)
		config->memory_most_bytes = bytes;
	return r;
}

/* A whole number that fits an unsigned int; names the key itself. */
static int read_whole(const struct pc_node *node, unsigned least, unsigned most, unsigned *out, struct pc_why *why)
{
	uint64_t number = 0;
	int r = pc_node_u64(node, least, most, &number, why);

	if (r == 0)
		*out = (unsigned)number;
	return r;
}

static int read_duty(struct config *config, const char *name, const struct pc_node *node, struct pc_why *why)
{
	(void)name;
	return read_whole(node, 1, 100, &config->duty_percent, why);
}

static int read_quiet_wait(struct config *config, const char *name, const struct pc_node *node, struct pc_why *why)
{
	(void)name;
	return read_whole(node, 0, 86400, &config->quiet_wait_seconds, why);
}

static int read_quiet_percent(struct config *config, const char *name, const struct pc_node *node, struct pc_why *why)
{
	(void)name;
	return pc_node_double(node, 0, 100, &config->quiet_percent, why);
}

static int read_verify_interval(struct config *config, const char *name, const struct pc_node *node, struct pc_why *why)
{
	(void)name;
	return read_whole(node, 0, 3650, &config->verify_interval_days, why);
}

static int read_database(struct config *config, const char *name, const struct pc_node *node, struct pc_why *why)
{
	return read_path(name, node, config->database, why);
}

static int read_policy(struct config *config, const char *name, const struct pc_node *node, struct pc_why *why)
{
	return read_path(name, node, config->policy, why);
}

static int read_exclude(struct config *config, const char *name, const struct pc_node *node, struct pc_why *why)
{
	uint32_t bits = 0;
	unsigned kernel = 0;

	if (node->kind != PC_SEQUENCE)
		return refuse(-EBADMSG, name, node, why, "a list of kernels");
	for (const struct pc_node *one = node->first; one != NULL; one = one->next) {
		int r = read_kernel(name, one, &kernel, why);

		if (r < 0)
			return r;
		if (kernel == 0)
			return refuse(-EBADMSG, name, one, why, "any kernel but the one that must remain");
		bits |= (uint32_t)1 << kernel;
	}
	config->exclude = bits;
	return 0;
}

/* --- pins -------------------------------------------------------------------------------------------------------- */

enum { PIN_INTENT, PIN_PRIOR, PIN_FROM, PIN_TO, PIN_KERNEL, PIN_KEYS };

static const char *const pin_keys[] = {[PIN_INTENT] = "intent", [PIN_PRIOR] = "prior",   [PIN_FROM] = "from",
                                       [PIN_TO] = "to",         [PIN_KERNEL] = "kernel", NULL};

static int read_pin_member(struct pin *pin, const struct pc_node *node, unsigned *seen, struct pc_why *why)
{
	unsigned key = 0, word = 0;
	char known[64];
	int r = 0;

	while (pin_keys[key] != NULL && strcmp(pin_keys[key], node->key) != 0)
		key++;
	*seen |= 1u << key;
	switch (key) {
	case PIN_INTENT:
		r = read_word("intent", node, intents, &pin->intent, why);
		break;
	case PIN_PRIOR:
		r = read_word("prior", node, priors, &word, why);
		pin->prior = (enum pc_prior)word;
		pin->any_prior = false;
		break;
	case PIN_FROM:
		return read_size("from", node, &pin->from, why);
	case PIN_TO:
		return read_size("to", node, &pin->to, why);
	case PIN_KERNEL:
		return read_kernel("kernel", node, &pin->kernel, why);
	default:
		list_words(pin_keys, known, sizeof(known));
		return pc_why(why, -EBADMSG, "%u:%u: pins: unknown key \"%.40s\", expected one of %s", node->key_line,
		              node->key_column, node->key, known);
	}
	return r;
}

static int check_pin(const struct pin *pin, const struct pc_node *node, unsigned seen, struct pc_why *why)
{
	static const unsigned needed[] = {PIN_INTENT, PIN_FROM, PIN_KERNEL};

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if ((seen & 1u << needed[i]) == 0)
			return pc_why(why, -EBADMSG, "%u:%u: pins: %s is missing", node->line, node->column,
			              pin_keys[needed[i]]);
	if (pin->intent == PAGECLEAR_SCRUB && !pin->any_prior)
		return pc_why(why, -EBADMSG, "%u:%u: pins: scrub has no prior", node->line, node->column);
	if (pin->from >= pin->to)
		return pc_why(why, -ERANGE, "%u:%u: pins: to must be above from: %" PRIu64 ", found %" PRIu64,
		              node->line, node->column, pin->from, pin->to);
	return 0;
}

static int read_pin(struct pin *pin, const struct pc_node *node, struct pc_why *why)
{
	unsigned seen = 0;
	int r = 0;

	*pin = (struct pin){.any_prior = true, .to = UINT64_MAX};
	if (node->kind != PC_MAPPING)
		return refuse(-EBADMSG, "pins", node, why, "{intent: , prior: , from: , to: , kernel: }");
	for (const struct pc_node *member = node->first; member != NULL && r == 0; member = member->next)
		r = read_pin_member(pin, member, &seen, why);
	return r == 0 ? check_pin(pin, node, seen, why) : r;
}

static int read_pins(struct config *config, const char *name, const struct pc_node *node, struct pc_why *why)
{
	if (node->kind != PC_SEQUENCE)
		return refuse(-EBADMSG, name, node, why, "a list of pins");
	if (node->count > CONFIG_PINS)
		return pc_why(why, -ERANGE, "%u:%u: pins: expected at most %d, found %zu", node->line, node->column,
		              CONFIG_PINS, node->count);
	config_free(config); /* the pins of an earlier layer */
	if (node->count == 0)
		return 0;
	config->pins = calloc(node->count, sizeof(*config->pins));
	if (config->pins == NULL)
		return pc_why(why, -ENOMEM, "out of memory");
	for (const struct pc_node *one = node->first; one != NULL; one = one->next) {
		int r = read_pin(&config->pins[config->pin_count], one, why);

		if (r < 0)
			return r;
		config->pin_count++;
	}
	return 0;
}

/* --- the table --------------------------------------------------------------------------------------------------- */

const struct config_key config_keys[] = {
	{"effort", "standard", "how long a calibration takes: quick (10 s), standard (60 s), thorough (10 min)",
         read_effort},
	{"calibrate", "auto",
         "auto: measure without a valid calibration; import: take policies from elsewhere; manual: when told",
         read_calibrate},
	{"scrub_weight", "0.1", "what the time of a scrub counts against the cache it takes from others; 0 to 10",
         read_scrub_weight},
	{"memory.most_bytes", "0", "most memory that a calibration may take; 0: a quarter of what is available",
         read_most_bytes},
	{"duty.most_percent", "100", "most of one CPU's time that measuring takes, it lasts longer for it; 1 to 100",
         read_duty},
	{"quiet.wait_seconds", "600",
         "how long a busy host is waited for before it is measured all the same; 0 to 86400", read_quiet_wait},
	{"quiet.most_percent", "10", "pressure above which a host is busy, of the last 10 seconds; 0 to 100",
         read_quiet_percent},
	{"verify.interval_days", "7",
         "days between verifications (calibrations, until there are three) that nobody asked for; 0: none; to 3650",
         read_verify_interval},
	{"database", "/var/lib/pageclear/calibrd.db", "where measurements are kept", read_database},
	{"policy", "/etc/pageclear/policy.yaml", "where the outcome is published", read_policy},
	{"exclude", "[]", "kernels never to measure or choose, whatever their speed; libc always remains",
         read_exclude},
	{"pins", "[]", "kernels to use from one size up to below another, against all measurement", read_pins},
};

const size_t config_key_count = sizeof(config_keys) / sizeof(config_keys[0]);
