/*
 * import: a policy that was measured elsewhere, for calibrd to check and publish.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calibctl/output.h"
#include "calibctl/steer.h"

static const char instead[] = "it publishes what is imported; `systemctl start calibrd` starts it";

/* calibrd is not to wait for a pipe's other end. */
static int open_file(const char *path, struct pc_why *why)
{
	struct stat status;
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (file < 0)
		return pc_why(why, -errno, "%s: %s", path, strerror(errno));
	if (fstat(file, &status) == 0 && S_ISREG(status.st_mode))
		return file;
	close(file);
	return pc_why(why, -EINVAL, "%s: not a regular file", path);
}

static enum outcome tell(const struct calibctl *ctl, bool is_new, uint64_t generation, const char *path)
{
	bool known = path[0] != '\0';

	if (ctl->json)
		return output_json(json_pack("{s:b, s:o, s:o}", "published", is_new, "generation",
		                             output_json_bytes(generation), "path",
		                             known ? output_json_text(path) : json_null()),
		                   DONE);
	if (is_new)
		output_field("published", "generation %" PRIu64 "%s%s", generation, known ? " in " : "", path);
	else
		output_field("nothing", "generation %" PRIu64 ", in force, is the same policy", generation);
	return DONE;
}

static enum outcome import(struct client *client, const struct calibctl *ctl, int file)
{
	struct client_view before, after;
	struct pc_why why;
	uint64_t published;
	int r = client_view(client, &before, &why);

	if (r == 0)
		r = client_import(client, file, &published, &why);
	if (r != 0)
		return steer_failed(r, &why);
	if (client_view(client, &after, &why) != 0) /* it is published, wherever */
		after.policy_path[0] = '\0';
	return tell(ctl, published != before.generation, published, after.policy_path);
}

enum outcome verb_import(struct calibctl *ctl, struct args *args)
{
	struct arg_words words = {.least = 1, .most = 1, .names = "FILE"};
	struct client *client = NULL;
	struct pc_why why;

	if (args_parse(args, ctl, NULL, &words) != DONE || steer_check(args, ctl) != DONE)
		return USAGE;
	int file = open_file(words.word[0], &why);
	if (file < 0)
		return output_failed(&why);
	enum outcome outcome = steer_open(&client, instead);
	if (outcome == DONE)
		outcome = import(client, ctl, file);
	client_close(client);
	close(file);
	return outcome;
}
