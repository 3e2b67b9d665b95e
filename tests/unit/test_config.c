/*
 * calibrd.yaml: every key, every mistake with its place (layers: test_config_layers.c). `test-config --check FILE` says
 * what calibrd would say (exit 0 or 2), `test-config --keys` and `--kernels` list what the tables know
 * (tests/cli/schema.bats).
 */
#include "calibrd/config.h"

#include <errno.h>
#include <pageclear/policy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/kernels.h"
#include "tests/unit/harness.h"

static const char shipped[] = "configs/calibrd.yaml";

static const char *write_file(const char *name, const char *text)
{
	static char paths[4][4096];
	static unsigned turn;
	char *path = paths[turn++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", unit_folder(), name);
	FILE *file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_FATAL(fputs(text, file) >= 0 && fclose(file) == 0);
	return path;
}

static unsigned kernel(const char *name)
{
	const struct pc_kernel *found = pc_kernel_find(name);

	CU_ASSERT_PTR_NOT_NULL_FATAL(found);
	return pc_kernel_index(found);
}

/* The last row: whatever the architecture, one that is not libc. */
static const char *last_kernel(void)
{
	return pc_kernels[pc_kernel_count - 1].name;
}

static void check_defaults(const struct config *config)
{
	CU_ASSERT_EQUAL(config->effort, EFFORT_STANDARD);
	CU_ASSERT_EQUAL(config->calibrate, CALIBRATE_AUTO);
	CU_ASSERT_EQUAL(config->scrub_weight, 0.1);
	CU_ASSERT_EQUAL(config->memory_most_bytes, 0);
	CU_ASSERT_EQUAL(config->duty_percent, 100);
	CU_ASSERT_EQUAL(config->quiet_wait_seconds, 600);
	CU_ASSERT_EQUAL(config->quiet_percent, 10);
	CU_ASSERT_EQUAL(config->verify_interval_days, 7);
	CU_ASSERT_STRING_EQUAL(config->database, "/var/lib/pageclear/calibrd.db");
	CU_ASSERT_STRING_EQUAL(config->policy, "/etc/pageclear/policy.yaml");
	CU_ASSERT_EQUAL(config->exclude, 0);
	CU_ASSERT_EQUAL(config->pin_count, 0);
}

static void defaults(void)
{
	static const char *const empty[] = {"", "\n", "# nothing\n", "---\n", "{}\n"};
	struct config config;

	CU_ASSERT_EQUAL_FATAL(config_defaults(&config, NULL), 0);
	check_defaults(&config);
	config_free(&config);
	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
		CU_ASSERT_EQUAL_FATAL(config_load(&config, write_file("empty.yaml", empty[i]), NULL), 0);
		check_defaults(&config);
		config_free(&config);
	}
}

static void every_key(void)
{
	char text[2048];
	struct config config;
	struct pc_why why = {""};

	snprintf(text, sizeof(text),
	         "effort: thorough\ncalibrate: import\nscrub_weight: 2.5\nmemory:\n  most_bytes: 1.5GiB\n"
	         "duty: {most_percent: 1}\nquiet: {wait_seconds: 86400, most_percent: 2.5}\nverify: {interval_days: "
	         "3650}\n"
	         "database: \"/srv/a b.db\"\npolicy: /srv/p.yaml\nexclude: [%s]\n"
	         "pins:\n- {intent: cold, prior: flushed, from: 1M, to: 64M, kernel: %s}\n"
	         "- intent: scrub\n  from: 0\n  kernel: libc\n- {intent: hot, prior: unknown, from: \"4K\", kernel: "
	         "libc}\n",
	         last_kernel(), last_kernel());
	int r = config_load(&config, write_file("all.yaml", text), &why);
	CU_ASSERT_STRING_EQUAL(why.text, "");
	CU_ASSERT_EQUAL_FATAL(r, 0);
	CU_ASSERT_EQUAL(config.effort, EFFORT_THOROUGH);
	CU_ASSERT_EQUAL(config.calibrate, CALIBRATE_IMPORT);
	CU_ASSERT_EQUAL(config.scrub_weight, 2.5);
	CU_ASSERT_EQUAL(config.memory_most_bytes, 1610612736);
	CU_ASSERT_EQUAL(config.duty_percent, 1);
	CU_ASSERT_EQUAL(config.quiet_wait_seconds, 86400);
	CU_ASSERT_EQUAL(config.quiet_percent, 2.5);
	CU_ASSERT_EQUAL(config.verify_interval_days, 3650);
	CU_ASSERT_STRING_EQUAL(config.database, "/srv/a b.db");
	CU_ASSERT_STRING_EQUAL(config.policy, "/srv/p.yaml");
	CU_ASSERT_EQUAL(config.exclude, (uint32_t)1 << kernel(last_kernel()));
	CU_ASSERT_EQUAL_FATAL(config.pin_count, 3);

	const struct pin *pin = config.pins;
	CU_ASSERT_EQUAL(pin[0].intent, PAGECLEAR_COLD);
	CU_ASSERT_EQUAL(pin[0].prior, PC_FLUSHED);
	CU_ASSERT_FALSE(pin[0].any_prior);
	CU_ASSERT_EQUAL(pin[0].from, 1048576);
	CU_ASSERT_EQUAL(pin[0].to, 67108864);
	CU_ASSERT_EQUAL(pin[0].kernel, kernel(last_kernel()));
	CU_ASSERT_EQUAL(pin[1].intent, PAGECLEAR_SCRUB);
	CU_ASSERT_TRUE(pin[1].any_prior);
	CU_ASSERT_EQUAL(pin[1].prior, PC_UNKNOWN);
	CU_ASSERT_EQUAL(pin[1].from, 0);
	CU_ASSERT_EQUAL(pin[1].to, UINT64_MAX);
	CU_ASSERT_EQUAL(pin[1].kernel, 0);
	CU_ASSERT_EQUAL(pin[2].intent, PAGECLEAR_HOT);
	CU_ASSERT_EQUAL(pin[2].prior, PC_UNKNOWN);
	CU_ASSERT_FALSE(pin[2].any_prior);
	config_free(&config);
}

/* --- mistakes ---------------------------------------------------------------------------------------------------- */

struct mistake {
	const char *text;
	int code;
	const char *place;    /* "line:column" */
	const char *about[2]; /* both are said */
};

static const struct mistake mistakes[] = {
	{"efort: quick\n",
         -EBADMSG,
         "1:1",
         {"unknown key \"efort\"", "effort, calibrate, scrub_weight, memory, duty, quiet, verify, "
                                   "database, policy, exclude, pins"}},
	{"# x\nmemory: {most: 3}\n", -EBADMSG, "2:10", {"unknown key \"memory.most\"", "expected one of most_bytes"}},
	{"memory.most_bytes: 3M\n", -EBADMSG, "1:1", {"unknown key", "memory.most_bytes\""}},
	{"memory: 3M\n", -EBADMSG, "1:9", {"memory", "expected a mapping"}},
	{"memory:\n", -EBADMSG, "1:8", {"memory", "expected a mapping"}},
	{"effort: fast\n", -EBADMSG, "1:9", {"effort: expected one of quick, standard, thorough", "found fast"}},
	{"effort: [quick]\n", -EBADMSG, "1:9", {"effort", "found a list"}},
	{"effort:\n", -EBADMSG, "1:8", {"effort", "found nothing"}},
	{"calibrate: yes\n", -EBADMSG, "1:12", {"auto, import, manual", "yes"}},
	{"scrub_weight: 11\n", -ERANGE, "1:15", {"scrub_weight: expected a number from 0 to 10", "11"}},
	{"scrub_weight: -0.1\n", -ERANGE, "1:15", {"from 0 to 10", "-0.1"}},
	{"scrub_weight: \"1\"\n", -EBADMSG, "1:15", {"a number", "1"}},
	{"scrub_weight: .nan\n", -EBADMSG, "1:15", {"a number", "nan"}},
	{"memory: {most_bytes: much}\n", -EBADMSG, "1:22", {"memory.most_bytes: expected a size", "found much"}},
	{"memory: {most_bytes: -1}\n", -EBADMSG, "1:22", {"expected a size", "-1"}},
	{"memory: {most_bytes: 16E}\n", -ERANGE, "1:22", {"below 16 EiB", "16E"}},
	{"memory: {most_bytes: 4K}\n", -ERANGE, "1:22", {"0 or at least 16 MiB", "4K"}},
	{"duty: {most_percent: 0}\n", -ERANGE, "1:22", {"most_percent: expected a whole number from 1 to 100", "0"}},
	{"duty: {most_percent: 101}\n", -ERANGE, "1:22", {"from 1 to 100", "101"}},
	{"duty: {most_percent: 50%}\n", -EBADMSG, "1:22", {"a whole number", "50%"}},
	{"duty: {most_percent: 2.5}\n", -EBADMSG, "1:22", {"a whole number", "2.5"}},
	{"duty: 50\n", -EBADMSG, "1:7", {"duty", "expected a mapping"}},
	{"quiet: {wait_seconds: 86401}\n",
         -ERANGE,
         "1:23",
         {"wait_seconds: expected a whole number from 0 to 86400", ""}},
	{"quiet: {wait_seconds: -1}\n", -EBADMSG, "1:23", {"from 0 to 86400", "-1"}},
	{"quiet: {wait_seconds: 10m}\n", -EBADMSG, "1:23", {"a whole number", "10m"}},
	{"quiet: {wait_seconds: 4294967296}\n", -ERANGE, "1:23", {"from 0 to 86400", "4294967296"}},
	{"quiet:\n  most_percent: 100.1\n",
         -ERANGE,
         "2:17",
         {"most_percent: expected a number from 0 to 100", "100.1"}},
	{"quiet: {wait: 3}\n",
         -EBADMSG,
         "1:9",
         {"unknown key \"quiet.wait\"", "expected one of wait_seconds, most_percent"}},
	{"verify: {interval_days: 3651}\n",
         -ERANGE,
         "1:25",
         {"interval_days: expected a whole number from 0 to 3650", ""}},
	{"verify: {interval_days: never}\n", -EBADMSG, "1:25", {"a whole number", "never"}},
	{"database: calibrd.db\n", -EBADMSG, "1:11", {"database: expected a file's path from / on", "calibrd.db"}},
	{"policy: /etc/pageclear/\n", -EBADMSG, "1:9", {"policy: expected a file's path", "/etc/pageclear/"}},
	{"policy: \"/a\\e\"\n", -EBADMSG, "1:9", {"policy", "control"}},
	{"exclude: stosb\n", -EBADMSG, "1:10", {"exclude: expected a list of kernels", "stosb"}},
	{"exclude: [libc]\n", -EBADMSG, "1:11", {"exclude", "libc"}},
	{"exclude:\n- memset\n", -EBADMSG, "2:3", {"exclude: expected one of libc, ", "found memset"}},
	{"pins: {intent: hot}\n", -EBADMSG, "1:7", {"pins: expected a list", "a mapping"}},
	{"pins: [hot]\n", -EBADMSG, "1:8", {"pins", "found hot"}},
	{"pins: [{from: 0, kernel: libc}]\n", -EBADMSG, "1:8", {"pins", "intent is missing"}},
	{"pins: [{intent: hot, kernel: libc}]\n", -EBADMSG, "1:8", {"pins", "from is missing"}},
	{"pins: [{intent: hot, from: 0}]\n", -EBADMSG, "1:8", {"pins", "kernel is missing"}},
	{"pins: [{intent: warm, from: 0, kernel: libc}]\n",
         -EBADMSG,
         "1:17",
         {"intent: expected one of hot, cold, scrub", "warm"}},
	{"pins: [{intent: hot, prior: any, from: 0, kernel: libc}]\n",
         -EBADMSG,
         "1:29",
         {"unknown, cached, flushed", "any"}},
	{"pins: [{intent: hot, from: x, kernel: libc}]\n", -EBADMSG, "1:28", {"from: expected a size", "x"}},
	{"pins: [{intent: hot, from: 0, kernel: rep}]\n",
         -EBADMSG,
         "1:39",
         {"kernel: expected one of libc, ", "found rep"}},
	{"pins: [{intent: hot, from: 0, kernel: libc, chunk: 4}]\n",
         -EBADMSG,
         "1:45",
         {"unknown key \"chunk\"", "intent, prior, from, to, kernel"}},
	{"pins: [{intent: scrub, prior: cached, from: 0, kernel: libc}]\n",
         -EBADMSG,
         "1:8",
         {"scrub has no prior", ""}},
	{"pins: [{intent: hot, from: 4K, to: 4096, kernel: libc}]\n",
         -ERANGE,
         "1:8",
         {"to must be above from", "4096"}},
	{"effort: quick\neffort: quick\n", -EBADMSG, "2:1", {"duplicate", ""}},
	{"effort: &a quick\n", -EBADMSG, "1:9", {"anchor", ""}},
	{"effort: quick\n--- \neffort: quick\n", -EBADMSG, "2:1", {"one document", ""}},
	{"effort: {\n", -EBADMSG, "2:1", {"", ""}},
	{"- effort\n", -EBADMSG, "1:1", {"expected a mapping", ""}},
	{"quick\n", -EBADMSG, "1:1", {"expected a mapping", ""}},
};

static void check_mistake(const struct mistake *mistake)
{
	const char *path = write_file("mistake.yaml", mistake->text);
	struct config config, before;
	struct pc_why why = {""};
	char start[4200];

	memset(&config, 0x5a, sizeof(config));
	memcpy(&before, &config, sizeof(config));
	int r = config_load(&config, path, &why);
	CU_ASSERT_EQUAL(r, mistake->code);
	CU_ASSERT_EQUAL(memcmp(&before, &config, sizeof(config)), 0); /* the old one stays in force */
	snprintf(start, sizeof(start), "%s:%s: ", path, mistake->place);
	bool said = strncmp(why.text, start, strlen(start)) == 0 && strstr(why.text, mistake->about[0]) != NULL &&
	            strstr(why.text, mistake->about[1]) != NULL;
	CU_ASSERT_TRUE(said);
	if (r != mistake->code || !said)
		printf("\n%s  gave %d, %s\n", mistake->text, r, why.text);
	if (r == 0)
		config_free(&config);
}

static void mistakes_are_placed(void)
{
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
		check_mistake(&mistakes[i]);
}

static void too_many_pins(void)
{
	char text[4096] = "pins:\n";
	struct config config;
	struct pc_why why = {""};

	for (unsigned i = 0; i <= CONFIG_PINS; i++) {
		if (i == CONFIG_PINS) {
			CU_ASSERT_EQUAL_FATAL(config_load(&config, write_file("pins.yaml", text), &why), 0);
			CU_ASSERT_EQUAL(config.pin_count, CONFIG_PINS);
			config_free(&config);
		}
		strcat(text, "- {intent: hot, from: 0, kernel: libc}\n");
	}
	CU_ASSERT_EQUAL(config_load(&config, write_file("pins.yaml", text), &why), -ERANGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, ":2:1: pins: expected at most 32, found 33"));
}

static void long_paths(void)
{
	char text[600] = "policy: /";
	struct config config;
	struct pc_why why = {""};

	memset(text + strlen(text), 'p', CONFIG_PATH - 2);
	CU_ASSERT_EQUAL_FATAL(config_load(&config, write_file("long.yaml", text), &why), 0);
	CU_ASSERT_EQUAL(strlen(config.policy), CONFIG_PATH - 1);
	config_free(&config);
	strcat(text, "p");
	CU_ASSERT_EQUAL(config_load(&config, write_file("long.yaml", text), &why), -ERANGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "at most 480 bytes"));
}

static void check_unreadable(const char *path, int code)
{
	struct config config;
	struct pc_why why = {""};

	CU_ASSERT_EQUAL(config_load(&config, path, &why), code);
	CU_ASSERT_EQUAL(strncmp(why.text, path, strlen(path)), 0);
	CU_ASSERT_EQUAL(why.text[strlen(path)], ':');
}

static void files_that_cannot_be_read(void)
{
	char path[4096], *large = malloc(70000);

	snprintf(path, sizeof(path), "%s/absent.yaml", unit_folder());
	check_unreadable(path, -ENOENT);
	check_unreadable(unit_folder(), -EBADMSG);
	snprintf(path, sizeof(path), "%s/fifo.yaml", unit_folder());
	CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
	check_unreadable(path, -EBADMSG);
	CU_ASSERT_PTR_NOT_NULL_FATAL(large);
	memset(large, '#', 69999);
	large[69999] = '\0';
	check_unreadable(write_file("large.yaml", large), -EFBIG);
	free(large);
}

/* --- the file as shipped ----------------------------------------------------------------------------------------- */

static char *slurp(const char *path)
{
	char *text = calloc(1, 65536);
	FILE *file = fopen(path, "r");

	CU_ASSERT_FATAL(text != NULL && file != NULL && fread(text, 1, 65535, file) > 0 && fclose(file) == 0);
	return text;
}

/* Settings start right behind their "#", prose behind a space. */
static char *uncomment(const char *text)
{
	char *out = calloc(1, strlen(text) + 1), *to = out;

	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
		size_t skip = line[0] == '#' && line[1] >= 'a' && line[1] <= 'z' ? 1 : 0, n = strcspn(line, "\n") + 1;

		memcpy(to, line + skip, n - skip);
		to += n - skip;
	}
	return out;
}

static void shipped_file(void)
{
	char *text = slurp(shipped), *settings = uncomment(text);
	struct config config;
	struct pc_why why = {""};

	CU_ASSERT_EQUAL_FATAL(config_load(&config, shipped, NULL), 0);
	check_defaults(&config);
	config_free(&config);
	int r = config_load(&config, write_file("shipped.yaml", settings), &why);
	CU_ASSERT_STRING_EQUAL(why.text, "");
	CU_ASSERT_EQUAL_FATAL(r, 0);
	check_defaults(&config);
	config_free(&config);
	free(settings);
	free(text);
}

/* "#KEY: DEFAULT", or "KEY: DEFAULT" somewhere in the braces of "#SECTION: {...}". */
static bool names_key(const char *text, const struct config_key *key)
{
	const char *dot = strchr(key->name, '.'), *at, *end;
	char line[256], member[256];

	if (dot == NULL) {
		snprintf(line, sizeof(line), "\n#%s: %s\n", key->name, key->standard);
		return strstr(text, line) != NULL;
	}
	snprintf(line, sizeof(line), "\n#%.*s: {", (int)(dot - key->name), key->name);
	snprintf(member, sizeof(member), "%s: %s", dot + 1, key->standard);
	at = strstr(text, line);
	end = at != NULL ? strchr(at, '}') : NULL;
	at = at != NULL ? strstr(at, member) : NULL;
	return at != NULL && end != NULL && at < end && strchr(",}", at[strlen(member)]) != NULL;
}

static void shipped_file_names_every_key(void)
{
	char *text = slurp(shipped);

	for (size_t i = 0; i < config_key_count; i++) {
		CU_ASSERT_TRUE(names_key(text, &config_keys[i]));
		CU_ASSERT(strlen(config_keys[i].about) > 10);
	}
	free(text);
}

/* The table's words are what the manual and the shipped file say at length. */
static void manual_names_every_key(void)
{
	char *text = slurp("man/calibrd.yaml.5");

	for (size_t i = 0; i < config_key_count; i++) {
		const char *dot = strchr(config_keys[i].name, '.');
		char word[128];

		snprintf(word, sizeof(word), "Cm %s : ", dot != NULL ? dot + 1 : config_keys[i].name);
		CU_ASSERT_PTR_NOT_NULL(strstr(text, word));
	}
	free(text);
}

static const struct unit_test tests[] = {
	{"defaults", defaults},
	{"every key", every_key},
	{"every mistake is named with its place", mistakes_are_placed},
	{"32 pins and no more", too_many_pins},
	{"paths of 480 bytes and no more", long_paths},
	{"files that can't be read", files_that_cannot_be_read},
	{"configs/calibrd.yaml holds the defaults", shipped_file},
	{"configs/calibrd.yaml names every key", shipped_file_names_every_key},
	{"calibrd.yaml(5) names every key", manual_names_every_key},
};

static int check_file(const char *path)
{
	struct config config;
	struct pc_why why = {""};

	if (config_load(&config, path, &why) < 0) {
		fprintf(stderr, "%s\n", why.text);
		return 2;
	}
	config_free(&config);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--check") == 0)
		return check_file(argv[2]);
	for (size_t i = 0; argc == 2 && strcmp(argv[1], "--keys") == 0 && i < config_key_count; i++)
		printf("%s\n", config_keys[i].name);
	for (size_t i = 0; argc == 2 && strcmp(argv[1], "--kernels") == 0 && i < pc_kernel_count; i++)
		printf("%s\n", pc_kernels[i].name);
	return argc > 1 ? 0 : unit_main("config", tests, sizeof(tests) / sizeof(tests[0]));
}
