/* calibrd: reads its command line, then becomes the worker or the service. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "calibrd/config.h"
#include "calibrd/log.h"
#include "calibrd/service.h"
#include "calibrd/worker.h"

static const char usage[] = "usage: calibrd [--once] [--force] [--config FILE] [--database FILE] [--policy FILE]\n"
			    "               [--effort quick|standard|thorough]\n"
			    "\n"
			    "Measures which way of zeroing memory is best on this host, and publishes a policy.\n"
			    "  --once           in the foreground: publish, then end (needs neither systemd nor root)\n"
			    "  --force          measure although a valid calibration is known\n"
			    "  --config FILE    read this alone, not the vendor's, the host's and the drop-ins\n"
			    "  --database FILE  keep measurements here\n"
			    "  --policy FILE    publish here\n"
			    "  --effort WORD    quick (10 s), standard (60 s) or thorough (10 min)\n"
			    "  --help, --version\n";

enum { WORKER = 256, HELP, VERSION, ONCE, FORCE, CONFIG, DATABASE, POLICY, EFFORT };

static const struct option options[] = {
	{"once", no_argument, NULL, ONCE},           {"force", no_argument, NULL, FORCE},
	{"config", required_argument, NULL, CONFIG}, {"database", required_argument, NULL, DATABASE},
	{"policy", required_argument, NULL, POLICY}, {"effort", required_argument, NULL, EFFORT},
	{"worker", no_argument, NULL, WORKER},       {"help", no_argument, NULL, HELP},
	{"version", no_argument, NULL, VERSION},     {0},
};

struct command_line {
	bool worker, help, version;
	struct service_options service;
};

static bool take(int option, struct command_line *line)
{
	switch (option) {
	case WORKER:
		return line->worker = true;
	case HELP:
		return line->help = true;
	case VERSION:
		return line->version = true;
	case ONCE:
		return line->service.once = true;
	case FORCE:
		return line->service.force = true;
	case CONFIG:
		line->service.config_file = optarg;
		return true;
	case DATABASE:
		line->service.database = optarg;
		return true;
	case POLICY:
		line->service.policy = optarg;
		return true;
	case EFFORT:
		line->service.effort = optarg;
		return true;
	default:
		return false; /* getopt_long has said why */
	}
}

static bool parse(int argc, char **argv, struct command_line *line)
{
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!take(option, line))
			return false;
	if (optind < argc) {
		fprintf(stderr, "calibrd: unexpected argument '%s'\n", argv[optind]);
		return false;
	}
	if (line->service.effort != NULL && effort_find(line->service.effort) == EFFORTS) {
		fprintf(stderr, "calibrd: --effort is quick, standard or thorough, not '%s'\n", line->service.effort);
		return false;
	}
	return true;
}

/* A parent that ignores SIGCHLD would have us reap nobody, one that closed descriptors 0-2 would have us write messages
 * into the next file we open. The worker inherits what is set here. */
static int settle_surroundings(void)
{
	int fd;

	signal(SIGCHLD, SIG_DFL);
	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	struct command_line line = {0};
	struct config config;
	struct pc_why why;
	int r;

	r = settle_surroundings();
	if (r < 0) {
		fprintf(stderr, "calibrd: /dev/null: %s\n", strerror(-r));
		return 1;
	}
	if (!parse(argc, argv, &line)) {
		fprintf(stderr, "Try 'calibrd --help'.\n");
		return 2;
	}
	if (line.worker)
		return worker_main(0, 1);
	if (line.help || line.version) {
		fputs(line.help ? usage : "calibrd " PAGECLEAR_VERSION "\n", stdout);
		return 0;
	}
	r = config_load(&config, line.service.config_file, &why);
	if (r == 0)
		r = service_override(&config, &line.service, &why);
	if (r < 0) {
		log_error("%s", why.text);
		return 2;
	}
	return service_run(&config, &line.service);
}
