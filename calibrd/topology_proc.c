/* What the OS says elsewhere: /proc/cpuinfo, THP mode, release, CPUs allowed. Missing files are unknown facts. */
#include "calibrd/topology_parts.h"

#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* One CPU's paragraph of /proc/cpuinfo, x86 or arm64. */
struct paragraph {
	unsigned cpu;
	unsigned fields; /* how many of those that make a signature */
	char vendor[16];
	unsigned family, model, stepping;
	unsigned implementer, variant, part, revision;
};

struct reader {
	struct topology *topology;
	const struct topology_set *online;
	struct topology_set efficient, fast, seen;
	struct paragraph now;
	bool open; /* a paragraph has begun */
};

/* Spelt as pc_cpu_signature() does. */
static bool sign(const struct paragraph *cpu, char *text, size_t size)
{
#if defined(__aarch64__)
	snprintf(text, size, "arm64 %u/%u/%u", cpu->implementer, cpu->part, cpu->variant << 4 | cpu->revision);
#else
	snprintf(text, size, "%s %u/%u/%u", cpu->vendor, cpu->family, cpu->model, cpu->stepping);
#endif
	return cpu->fields == 4;
}

/* Where sysfs does not tell who is online, being listed here does. */
static bool is_online(const struct reader *reader, unsigned cpu)
{
	return cpu < TOPOLOGY_SET_MAX && (reader->topology->threads == 0 || topology_set_has(reader->online, cpu));
}

static void end_paragraph(struct reader *reader)
{
	struct topology *topology = reader->topology;
	const struct paragraph *now = &reader->now;
	char signature[48], kind = '-';

	if (reader->open && sign(now, signature, sizeof(signature)) && is_online(reader, now->cpu) &&
	    !topology_set_has(&reader->seen, now->cpu)) {
		if (topology_set_has(&reader->efficient, now->cpu))
			kind = 'E';
		else if (topology_set_has(&reader->fast, now->cpu))
			kind = 'P';
		topology_set_add(&reader->seen, now->cpu);
		topology_core_add(topology->cores, &topology->core_count, signature, kind, 1);
	}
	reader->open = false;
}

static void take_number(struct paragraph *now, unsigned *field, const char *value)
{
	char *end;
	unsigned long number = strtoul(value, &end, 0);

	if (!isdigit((unsigned char)*value) || *end != '\0' || number > UINT16_MAX)
		return;
	*field = (unsigned)number;
	now->fields++;
}

static bool is_plain(const char *text)
{
	size_t len = 0;

	for (; text[len] != '\0'; len++)
		if (!isgraph((unsigned char)text[len]))
			return false;
	return len > 0;
}

/* The fields that make a signature, by the name that this architecture's kernel gives them. */
static void take_field(struct paragraph *now, const char *name, const char *value)
{
	const struct {
		const char *name;
		unsigned *field;
	} numbers[] = {
#if defined(__aarch64__)
		{"CPU implementer", &now->implementer},
		{"CPU variant", &now->variant},
		{"CPU part", &now->part},
		{"CPU revision", &now->revision},
#else
		{"cpu family", &now->family},
		{"model", &now->model},
		{"stepping", &now->stepping},
#endif
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (strcmp(name, numbers[i].name) == 0)
			take_number(now, numbers[i].field, value);
	if (strcmp(name, "vendor_id") == 0 && is_plain(value) && strlen(value) < sizeof(now->vendor)) {
		strcpy(now->vendor, value);
		now->fields++;
	}
}

static void take_text(char *to, size_t size, const char *value)
{
	snprintf(to, size, "%.*s", (int)size - 1, value);
}

static void take_line(struct reader *reader, const char *name, const char *value)
{
	struct topology *topology = reader->topology;

	if (strcmp(name, "processor") == 0) {
		char *end;
		unsigned long number = strtoul(value, &end, 10);

		end_paragraph(reader);
		reader->now = (struct paragraph){.cpu = (unsigned)number};
		reader->open = isdigit((unsigned char)*value) && *end == '\0' && number < TOPOLOGY_SET_MAX;
	} else if (strcmp(name, "microcode") == 0 && topology->microcode[0] == '\0') {
		take_text(topology->microcode, sizeof(topology->microcode), value);
	} else if (strcmp(name, "model name") == 0 && topology->name[0] == '\0') {
		take_text(topology->name, sizeof(topology->name), value);
	} else {
		take_field(&reader->now, name, value);
	}
}

/* "name<tabs>: value" */
static void split_line(struct reader *reader, char *line)
{
	char *colon = strchr(line, ':');
	char *value, *end;

	if (colon == NULL)
		return;
	for (end = colon; end > line && isspace((unsigned char)end[-1]);)
		end--;
	*end = '\0';
	value = colon + 1 + strspn(colon + 1, " \t");
	for (end = value + strlen(value); end > value && isspace((unsigned char)end[-1]);)
		end--;
	*end = '\0';
	take_line(reader, line, value);
}

static int read_cpuinfo(struct reader *reader, const char *root)
{
	char path[4096], *line = NULL;
	size_t room = 0;
	int error;
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/cpuinfo", root != NULL ? root : "");
	file = fopen(path, "re");
	if (file == NULL)
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : 0;
	errno = 0;
	while (getline(&line, &room, file) >= 0)
		split_line(reader, line);
	error = errno == ENOMEM ? -ENOMEM : 0;
	end_paragraph(reader);
	free(line);
	fclose(file);
	return error;
}

/* The PMUs of a hybrid Intel processor list their CPUs; elsewhere these files do not exist. */
static int read_kind(const char *root, const char *name, struct topology_set *set)
{
	char text[4096];
	int result = topology_text(root, text, sizeof(text), "/sys/devices/%s/cpus", name);

	if (result != 0 || !topology_set_parse_list(set, text))
		memset(set, 0, sizeof(*set));
	return result < 0 ? result : 0;
}

int topology_proc_cpuinfo(struct topology *topology, const char *root, const struct topology_set *online)
{
	struct reader reader = {.topology = topology, .online = online};
	int result = read_kind(root, "cpu_core", &reader.fast);

	if (result == 0)
		result = read_kind(root, "cpu_atom", &reader.efficient);
	if (result == 0)
		result = read_cpuinfo(&reader, root);
	if (result == 0 && topology->microcode[0] == '\0')
		result = topology_text(root, topology->microcode, sizeof(topology->microcode),
		                       "/sys/devices/system/cpu/cpu0/microcode/version");
	if (topology->threads == 0)
		topology->threads = topology_set_count(&reader.seen);
	if (topology_set_count(&reader.seen) != topology->threads)
		topology->core_count = 0;
	return result < 0 ? result : 0;
}

/* --- soft facts ------------------------------------------------------------------------------------------ */

/* The word in brackets of "always [madvise] never". */
static int read_thp(struct topology *topology, const char *root)
{
	char text[128], word[sizeof(topology->thp)];
	int result = topology_text(root, text, sizeof(text), "/sys/kernel/mm/transparent_hugepage/enabled");
	const char *bracket = strchr(text, '[');

	if (result == 0 && bracket != NULL && sscanf(bracket, "[%15[a-z]]", word) == 1 &&
	    bracket[1 + strlen(word)] == ']')
		strcpy(topology->thp, word);
	return result < 0 ? result : 0;
}

static int read_release(struct topology *topology, const char *root)
{
	struct utsname name;
	int result = 0;

	if (root == NULL && uname(&name) == 0)
		take_text(topology->os_release, sizeof(topology->os_release), name.release);
	else
		result = topology_text(root, topology->os_release, sizeof(topology->os_release),
		                       "/proc/sys/kernel/osrelease");
	return result < 0 ? result : 0;
}

/* The system call refuses sets smaller than the kernel's own: TOPOLOGY_SET_MAX is the largest of those. */
static int allowed_here(struct topology_set *set)
{
	cpu_set_t *mask = CPU_ALLOC(TOPOLOGY_SET_MAX);
	const size_t size = CPU_ALLOC_SIZE(TOPOLOGY_SET_MAX);
	int error = 0;

	if (mask == NULL)
		return -ENOMEM;
	if (sched_getaffinity(0, size, mask) != 0)
		error = 1;
	for (unsigned cpu = 0; error == 0 && cpu < TOPOLOGY_SET_MAX; cpu++)
		if (CPU_ISSET_S(cpu, size, mask))
			topology_set_add(set, cpu);
	CPU_FREE(mask);
	return error;
}

static int allowed_there(struct topology_set *set, const char *root)
{
	char text[16384], list[4096];
	int result = topology_text(root, text, sizeof(text), "/proc/self/status");
	const char *line = strstr(text, "Cpus_allowed_list:");

	if (result != 0)
		return result;
	return line != NULL && sscanf(line, "Cpus_allowed_list: %4095[0-9,-]", list) == 1 &&
	                       topology_set_parse_list(set, list)
	               ? 0
	               : 1;
}

int topology_proc_soft(struct topology *topology, const char *root)
{
	struct topology_set allowed = {0};
	int result = root == NULL ? allowed_here(&allowed) : allowed_there(&allowed, root);

	if (result == 0)
		topology_set_print(&allowed, topology->cpus_allowed, sizeof(topology->cpus_allowed));
	if (result >= 0)
		result = read_thp(topology, root);
	if (result >= 0)
		result = read_release(topology, root);
	if (result >= 0 && topology->hypervisor[0] == '\0')
		result =
			topology_text(root, topology->hypervisor, sizeof(topology->hypervisor), "/sys/hypervisor/type");
	return result < 0 ? result : 0;
}
