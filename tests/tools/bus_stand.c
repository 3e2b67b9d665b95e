/*
 * tool-bus_stand ADDRESS [FIFO]: the real bus of calibrd with a made-up daemon behind it, for those who test clients
 * and the bus itself without measuring anything. Says what it was asked for on standard output, a line each ("calibrate
 * 1 quick", "import 1234 bytes"); the log is on standard error. Commands are lines from FIFO (which it makes) or,
 * without one, from standard input, whose end then is its own:
 *
 *   state|phase|reason|topology|path TEXT    what the property shows from now on
 *   progress|generation|job NUMBER           likewise
 *   finish OUTCOME [TEXT]                    ends the job that runs, be it a calibration or a verification
 *   published GENERATION PATH                sets both, and emits PolicyChanged
 *   refuse ERRNO [TEXT]                      what is asked for next fails with it: refuse EBUSY another one runs
 *   fill COUNT                               emits COUNT signals of 1000 bytes at once
 *   quit
 *
 * Calibrate and Verify begin a job (numbers from 1 on), which runs until `finish` or Cancel; a second one is -EBUSY.
 * Efforts are quick, standard, thorough and "". Rollback knows generations 1 to 9, Import takes whatever begins with
 * "format: 1".
 *
 *   build/tool-bus_stand "unix:path=$W/bus" "$W/stand.fifo" & ... echo "progress 0.5" >"$W/stand.fifo"
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calibrd/bus.h"

enum { TEXT = 4096 };

struct stand {
	sd_event *event;
	struct bus *bus;
	char state[TEXT], phase[TEXT], reason[TEXT], topology[TEXT], path[TEXT];
	double progress;
	uint64_t generation, job, jobs;
	bool verifying;
	int refusal; /* -errno, once */
	char refusal_text[TEXT];
	char input[2 * TEXT];
	size_t input_len;
};

/* --- what the bus asks for --------------------------------------------------------------------------------------- */

static int refused(struct stand *stand, struct pc_why *why)
{
	int r = stand->refusal;

	stand->refusal = 0;
	pc_why_say(why, "%s", stand->refusal_text);
	return r;
}

static int begin(struct stand *stand, bool verifying, const char *effort, uint64_t *job, struct pc_why *why)
{
	if (stand->refusal != 0)
		return refused(stand, why);
	if (effort[0] != '\0' && strcmp(effort, "quick") != 0 && strcmp(effort, "standard") != 0 &&
	    strcmp(effort, "thorough") != 0)
		return pc_why(why, -EINVAL, "effort '%s': expected quick, standard or thorough", effort);
	if (stand->job != 0)
		return pc_why(why, -EBUSY, "%s %" PRIu64 " runs", stand->verifying ? "verification" : "calibration",
		              stand->job);
	stand->verifying = verifying;
	*job = stand->job = ++stand->jobs;
	strcpy(stand->state, verifying ? "verifying" : "calibrating");
	strcpy(stand->phase, "pass 1 of 4");
	strcpy(stand->reason, "asked for");
	printf("%s %" PRIu64 " %s\n", verifying ? "verify" : "calibrate", *job, effort);
	bus_changed(stand->bus);
	return 0;
}

static int calibrate(void *context, const char *effort, uint64_t *job, struct pc_why *why)
{
	return begin(context, false, effort, job, why);
}

static int verify(void *context, const char *effort, uint64_t *job, struct pc_why *why)
{
	return begin(context, true, effort, job, why);
}

static void finish(struct stand *stand, const char *outcome, const char *text)
{
	uint64_t job = stand->job;

	stand->job = 0;
	stand->progress = 0;
	strcpy(stand->state, "idle");
	stand->phase[0] = stand->reason[0] = '\0';
	if (stand->verifying)
		bus_verification_finished(stand->bus, job, outcome, (int64_t)job + 100, text);
	else
		bus_calibration_finished(stand->bus, job, outcome, text);
}

static int cancel(void *context, struct pc_why *why)
{
	struct stand *stand = context;

	if (stand->refusal != 0)
		return refused(stand, why);
	if (stand->job == 0)
		return pc_why(why, -ENOENT, "nothing runs");
	puts("cancel");
	finish(stand, "cancelled", "asked for");
	return 0;
}

static int reload(void *context, struct pc_why *why)
{
	struct stand *stand = context;

	if (stand->refusal != 0)
		return refused(stand, why);
	puts("reload");
	return 0;
}

static int publish_next(struct stand *stand, uint64_t *published)
{
	*published = ++stand->generation;
	strcpy(stand->path, "/etc/pageclear/policy.yaml");
	bus_policy_changed(stand->bus, stand->generation, stand->path);
	return 0;
}

static int rollback(void *context, uint64_t generation, uint64_t *published, struct pc_why *why)
{
	struct stand *stand = context;

	if (stand->refusal != 0)
		return refused(stand, why);
	if (generation < 1 || generation > 9)
		return pc_why(why, -ENOENT, "generation %" PRIu64 " was never published", generation);
	printf("rollback %" PRIu64 "\n", generation);
	return publish_next(stand, published);
}

static int import(void *context, const char *text, size_t len, uint64_t *published, struct pc_why *why)
{
	struct stand *stand = context;

	if (stand->refusal != 0)
		return refused(stand, why);
	if (strncmp(text, "format: 1", 9) != 0)
		return pc_why(why, -EBADMSG, "1:1: expected format: 1");
	printf("import %zu bytes\n", len);
	return publish_next(stand, published);
}

static void view(void *context, struct bus_view *out)
{
	struct stand *stand = context;

	*out = (struct bus_view){
		.state = stand->state,
		.phase = stand->phase,
		.reason = stand->reason,
		.progress = stand->progress,
		.topology = stand->topology,
		.generation = stand->generation,
		.policy_path = stand->path,
		.job = stand->job,
	};
}

static const struct bus_ops ops = {calibrate, verify, cancel, reload, rollback, import, view};

/* --- commands ---------------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int code;
} codes[] = {
	{"EBUSY", EBUSY},   {"EINVAL", EINVAL},   {"ENOENT", ENOENT}, {"EPERM", EPERM},
	{"ESTALE", ESTALE}, {"EBADMSG", EBADMSG}, {"EFBIG", EFBIG},   {"EPROTONOSUPPORT", EPROTONOSUPPORT},
	{"ENOMEM", ENOMEM}, {"EIO", EIO},
};

static void refuse_next(struct stand *stand, const char *name, const char *text)
{
	stand->refusal = -EIO;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (strcmp(codes[i].name, name) == 0)
			stand->refusal = -codes[i].code;
	strcpy(stand->refusal_text, text);
}

static char *property(struct stand *stand, const char *word)
{
	return strcmp(word, "state") == 0      ? stand->state
	       : strcmp(word, "phase") == 0    ? stand->phase
	       : strcmp(word, "reason") == 0   ? stand->reason
	       : strcmp(word, "topology") == 0 ? stand->topology
	       : strcmp(word, "path") == 0     ? stand->path
	                                       : NULL;
}

static void fill(struct stand *stand, unsigned long count)
{
	char text[1001];

	memset(text, 'x', 1000);
	text[1000] = '\0';
	for (unsigned long i = 0; i < count; i++)
		bus_calibration_finished(stand->bus, i, "good", text);
}

/* word, rest: the line up to its first space and after it. */
static void obey(struct stand *stand, const char *word, char *rest)
{
	char *more = rest + strcspn(rest, " ");

	if (property(stand, word) != NULL)
		strcpy(property(stand, word), rest);
	else if (strcmp(word, "progress") == 0)
		stand->progress = strtod(rest, NULL);
	else if (strcmp(word, "generation") == 0)
		stand->generation = strtoull(rest, NULL, 10);
	else if (strcmp(word, "job") == 0)
		stand->job = strtoull(rest, NULL, 10);
	else if (strcmp(word, "fill") == 0)
		fill(stand, strtoul(rest, NULL, 10));
	else if (strcmp(word, "quit") == 0)
		sd_event_exit(stand->event, 0);
	if (*more != '\0')
		*more++ = '\0';
	if (strcmp(word, "finish") == 0)
		finish(stand, rest, more);
	else if (strcmp(word, "refuse") == 0)
		refuse_next(stand, rest, more);
	else if (strcmp(word, "published") == 0) {
		stand->generation = strtoull(rest, NULL, 10);
		strcpy(stand->path, more);
		bus_policy_changed(stand->bus, stand->generation, stand->path);
	}
	bus_changed(stand->bus);
	printf("done %s\n", word);
}

static void obey_lines(struct stand *stand)
{
	char *end;

	while ((end = memchr(stand->input, '\n', stand->input_len)) != NULL) {
		size_t line = (size_t)(end - stand->input) + 1;

		*end = '\0';
		char *rest = stand->input + strcspn(stand->input, " ");
		if (*rest != '\0')
			*rest++ = '\0';
		obey(stand, stand->input, rest);
		stand->input_len -= line;
		memmove(stand->input, stand->input + line, stand->input_len);
	}
}

static int on_input(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct stand *stand = context;
	ssize_t n = read(fd, stand->input + stand->input_len, TEXT - 1 - stand->input_len);

	(void)source;
	(void)events;
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0)
		return sd_event_exit(stand->event, n < 0 ? 1 : 0);
	stand->input_len += (size_t)n;
	obey_lines(stand);
	return 0;
}

/* --- life -------------------------------------------------------------------------------------------------------- */

/* Opened for writing too, so that it has no end when a writer leaves. */
static int open_commands(const char *fifo)
{
	if (fifo == NULL)
		return STDIN_FILENO;
	if (mkfifo(fifo, 0600) < 0 && errno != EEXIST)
		return -errno;
	int fd = open(fifo, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int run(struct stand *stand, const char *address, const char *fifo)
{
	int fd = open_commands(fifo), r = fd < 0 ? fd : sd_event_new(&stand->event);

	if (r >= 0)
		r = bus_new(&stand->bus, stand->event, address, &ops, stand);
	if (r >= 0)
		r = sd_event_add_io(stand->event, NULL, fd, EPOLLIN, on_input, stand);
	if (r >= 0) {
		puts("ready");
		r = sd_event_loop(stand->event);
	}
	stand->bus = bus_free(stand->bus);
	sd_event_unref(stand->event);
	if (fifo != NULL && fd >= 0)
		close(fd);
	return r;
}

int main(int argc, char **argv)
{
	static struct stand stand = {.state = "idle", .topology = "0123456789ab"};

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: %s ADDRESS [FIFO]\n", argv[0]);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	int r = run(&stand, argv[1], argv[2]);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-r));
	return r == 0 ? 0 : 1;
}
