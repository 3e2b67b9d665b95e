/*
 * calibrd.yaml: what the admin decides. One table of keys reads it, holds the defaults and says what each key means.
 * Layers: compiled-in defaults, then /usr/lib/pageclear/calibrd.yaml, then /etc/pageclear/calibrd.yaml, then
 * /etc/pageclear/calibrd.yaml.d/NAME.yaml in the order of their names' bytes; a key that a later layer sets replaces
 * the earlier one's value whole, lists too. Command-line switches are the caller's.
 */
#ifndef CALIBRD_CONFIG_H
#define CALIBRD_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "calibrd/decide.h"
#include "calibrd/plan.h"
#include "libpolicy/why.h"

enum { CONFIG_PATH = 481 /* the longest that the database takes, and its NUL */, CONFIG_PINS = 32 };

enum config_calibrate {
	CALIBRATE_AUTO,   /* measure when there is no valid calibration */
	CALIBRATE_IMPORT, /* never measure, take policies that were measured elsewhere */
	CALIBRATE_MANUAL, /* measure when told to */
};

struct config {
	enum effort effort;
	enum config_calibrate calibrate;
	double scrub_weight;
	uint64_t memory_most_bytes; /* a cap on the buffers of a calibration; 0: none but a quarter of what is available
	                             */
	unsigned duty_percent;      /* of one CPU's time that measuring may take, 1 to 100; it lasts longer for it */
	unsigned quiet_wait_seconds;   /* most that a busy host is waited for */
	double quiet_percent;          /* pressure above which a host is busy; 0 to 100 */
	unsigned verify_interval_days; /* between verifications that nobody asked for; 0: none */
	char database[CONFIG_PATH], policy[CONFIG_PATH];
	uint32_t exclude; /* bits of pc_kernels, never libc's */
	size_t pin_count;
	struct pin *pins; /* NULL if there are none; in the order of the file: where two hold, the later one wins */
};

struct pc_node;

struct config_key {
	const char *name;     /* "memory.most_bytes" is a member of memory */
	const char *standard; /* the default, as in the file */
	const char *about;    /* for people: meaning, values, unit */
	int (*read)(struct config *config, const char *name, const struct pc_node *node, struct pc_why *why);
};

extern const struct config_key config_keys[];
extern const size_t config_key_count;

/*
 * file stands alone and must exist; NULL: the layers of the host. On success *out is for config_free(); else it is left
 * alone and why says "FILE:LINE:COLUMN: what was expected", or "FILE: ..." where it can't be read. Errors: -EBADMSG
 * malformed, unknown key, wrong type; -ERANGE out of range; -EFBIG; -errno of open, read.
 */
int config_load(struct config *out, const char *file, struct pc_why *why);

/*
 * The layers of the host below root (NULL: none), each of which may be absent. Of the folder of drop-ins only regular
 * files, and links to such, whose names end in .yaml and don't begin with a dot: a link to /dev/null is passed over.
 * What vanishes while it is read was never there.
 */
int config_load_host(struct config *out, const char *root, struct pc_why *why);
void config_free(struct config *config);

/* The steps of config_load(): the defaults, and one file's keys over what is there (-ENOENT too). After an error the
 * config is only fit for config_free(). */
int config_defaults(struct config *config, struct pc_why *why);
int config_read(struct config *config, const char *file, struct pc_why *why);

#endif
