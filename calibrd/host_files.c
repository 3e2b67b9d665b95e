/* Pressure, load and power supplies as /proc and /sys tell them; see host_files.h. */
#include "calibrd/host_files.h"

#include <glob.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "calibrd/topology_parts.h"

enum { FILE_BYTES = 4096 };

/* --- pressure, load ---------------------------------------------------------------------------------------------- */

/* The number behind `name` in the line that begins with `which`: "some avg10=0.00 avg60=0.00 avg300=0.00 total=12". */
static double field(const char *text, const char *which, const char *name)
{
	const char *line = strstr(text, which), *end = line != NULL ? line + strcspn(line, "\n") : NULL;
	const char *at = line != NULL ? strstr(line, name) : NULL;
	double value;

	return at != NULL && at < end && sscanf(at + strlen(name), "%lf", &value) == 1 && value >= 0 ? value : NAN;
}

int host_pressure(struct host_pressure *out, enum pressure which, const char *root)
{
	static const char *const names[] = {[PRESSURE_CPU] = "cpu", [PRESSURE_MEMORY] = "memory", [PRESSURE_IO] = "io"};
	char text[FILE_BYTES];
	int r = topology_text(root, text, sizeof(text), "/proc/pressure/%s", names[which]);

	*out = (struct host_pressure){NAN, NAN, NAN};
	if (r != 0)
		return r;
	out->some_percent = field(text, "some ", " avg10=");
	out->some = field(text, "some ", " total=") / 1e6; /* microseconds there */
	out->full = field(text, "full ", " total=") / 1e6;
	return 0;
}

int host_load(double *load, const char *root)
{
	char text[FILE_BYTES];
	int r = topology_text(root, text, sizeof(text), "/proc/loadavg");

	if (r == 0 && sscanf(text, "%lf", load) == 1 && *load >= 0)
		return 0;
	*load = NAN;
	return r < 0 ? r : 1;
}

/* --- power ------------------------------------------------------------------------------------------------------- */

/* What the power supplies of a host say together. */
struct supplies {
	bool online, offline;   /* some source of power from outside is there, some is not */
	bool discharging, mute; /* some battery feeds the host, some does not say what it does */
};

/* A folder of /sys/class/power_supply, Linux: Documentation/ABI/testing/sysfs-class-power. */
static void add_supply(struct supplies *all, const char *folder)
{
	char type[16], text[32];

	if (topology_text(folder, type, sizeof(type), "/type") != 0)
		return;
	if (topology_text(folder, text, sizeof(text), "/scope") == 0 && strcmp(text, "Device") == 0)
		return; /* of a mouse, say */
	bool told = topology_text(folder, text, sizeof(text), "%s",
	                          strcmp(type, "Battery") == 0 ? "/status" : "/online") == 0;
	if (strcmp(type, "Battery") == 0) {
		all->discharging |= told && strcmp(text, "Discharging") == 0;
		all->mute |= !told || strcmp(text, "Unknown") == 0;
	} else if (told && (strcmp(type, "Mains") == 0 || strncmp(type, "USB", 3) == 0)) {
		all->online |= text[0] == '1' || text[0] == '2'; /* 2: of a voltage that was agreed on */
		all->offline |= text[0] == '0';
	}
}

int host_mains(const char *root)
{
	struct supplies all = {0};
	char path[FILE_BYTES];
	glob_t found;

	snprintf(path, sizeof(path), "%s/sys/class/power_supply/*", root != NULL ? root : "");
	if (glob(path, 0, NULL, &found) != 0)
		return -1;
	for (size_t i = 0; i < found.gl_pathc; i++)
		add_supply(&all, found.gl_pathv[i]);
	globfree(&found);
	if (all.online) /* of several sources one that works is enough */
		return 1;
	return all.discharging || (all.offline && all.mute) ? 0 : -1;
}
