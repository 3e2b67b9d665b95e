/* calibrd.yaml: which files are read, in which order, and what a later one does to an earlier one. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calibrd/config.h"
#include "kernels/kernels.h"
#include "tests/unit/harness.h"
#include "tests/unit/trees.h"

#define VENDOR "/usr/lib/pageclear/calibrd.yaml"
#define HOST "/etc/pageclear/calibrd.yaml"
#define FOLDER "/etc/pageclear/calibrd.yaml.d"

/* Loads what lies below root; it must be good. */
static struct config loaded(const char *root)
{
	struct config config;
	struct pc_why why = {""};
	int r = config_load_host(&config, root, &why);

	CU_ASSERT_STRING_EQUAL(why.text, "");
	CU_ASSERT_EQUAL_FATAL(r, 0);
	return config;
}

static double weight(const char *root)
{
	struct config config = loaded(root);

	config_free(&config);
	return config.scrub_weight;
}

/* --- order ------------------------------------------------------------------------------------------------------- */

static void nothing_is_there(void)
{
	struct config config = loaded(new_root()), standard;

	CU_ASSERT_EQUAL_FATAL(config_defaults(&standard, NULL), 0);
	CU_ASSERT_EQUAL(config.effort, standard.effort);
	CU_ASSERT_EQUAL(config.quiet_wait_seconds, standard.quiet_wait_seconds);
	CU_ASSERT_STRING_EQUAL(config.database, standard.database);
	config_free(&config);
	config_free(&standard);
}

static void later_layers_win(void)
{
	const char *root = new_root();

	put_file(root, VENDOR, "scrub_weight: 1\n");
	CU_ASSERT_EQUAL(weight(root), 1);
	put_file(root, HOST, "scrub_weight: 2\n");
	CU_ASSERT_EQUAL(weight(root), 2);
	put_file(root, FOLDER "/10-site.yaml", "scrub_weight: 3\n");
	CU_ASSERT_EQUAL(weight(root), 3);
	put_file(root, FOLDER "/20-rack.yaml", "scrub_weight: 4\n");
	CU_ASSERT_EQUAL(weight(root), 4);
	put_file(root, FOLDER "/05-early.yaml", "scrub_weight: 5\n");
	CU_ASSERT_EQUAL(weight(root), 4);
	put_file(root, FOLDER "/20-rack.yaml", "effort: quick\n");
	CU_ASSERT_EQUAL(weight(root), 3);
	put_file(root, FOLDER "/20-rack.yaml", "");
	CU_ASSERT_EQUAL(weight(root), 3);
}

/* Bytes, whatever a locale would say: capitals before "_" before small letters, 10 before 9, UTF-8 last. */
static void names_are_ordered_by_bytes(void)
{
	static const char *const names[] = {"10.yaml",  "9.yaml", "Z.yaml", "_.yaml",
	                                    "a-b.yaml", "a.yaml", "b.yaml", "é.yaml"};
	enum { NAMES = sizeof(names) / sizeof(names[0]) };
	const char *root = new_root();

	for (size_t i = NAMES; i-- > 0;) { /* made in the wrong order */
		char path[128], text[64];

		snprintf(path, sizeof(path), FOLDER "/%s", names[i]);
		snprintf(text, sizeof(text), "scrub_weight: %zu\n", i);
		put_file(root, path, text);
	}
	for (size_t i = NAMES; i-- > 0;) {
		char path[8192];

		CU_ASSERT_EQUAL(weight(root), (double)i);
		snprintf(path, sizeof(path), "%s" FOLDER "/%s", root, names[i]);
		CU_ASSERT_EQUAL(unlink(path), 0);
	}
}

/* --- what replaces what ------------------------------------------------------------------------------------------ */

static void keys_of_a_section_stand_alone(void)
{
	const char *root = new_root();
	struct config config;

	put_file(root, HOST, "quiet: {wait_seconds: 5, most_percent: 3}\neffort: quick\n");
	put_file(root, FOLDER "/a.yaml", "quiet: {most_percent: 4}\n");
	config = loaded(root);
	CU_ASSERT_EQUAL(config.quiet_wait_seconds, 5);
	CU_ASSERT_EQUAL(config.quiet_percent, 4);
	CU_ASSERT_EQUAL(config.effort, EFFORT_QUICK);
	config_free(&config);
}

static void lists_replace_lists(void)
{
	const char *root = new_root(), *last = pc_kernels[pc_kernel_count - 1].name; /* any but libc */
	struct config config;
	char text[512];

	snprintf(text, sizeof(text),
	         "exclude: [%s]\npins: [{intent: hot, from: 0, to: 1K, kernel: libc}, {intent: hot, from: 2K, kernel: "
	         "libc}]\n",
	         last);
	put_file(root, VENDOR, text);
	config = loaded(root);
	CU_ASSERT_EQUAL(config.pin_count, 2);
	CU_ASSERT_NOT_EQUAL(config.exclude, 0);
	config_free(&config);
	put_file(root, HOST, "exclude: []\npins: [{intent: cold, from: 3K, kernel: libc}]\n");
	config = loaded(root);
	CU_ASSERT_EQUAL(config.exclude, 0);
	CU_ASSERT_EQUAL_FATAL(config.pin_count, 1);
	CU_ASSERT_EQUAL(config.pins[0].from, 3072);
	config_free(&config);
	put_file(root, FOLDER "/none.yaml", "pins: []\n");
	config = loaded(root);
	CU_ASSERT_EQUAL(config.pin_count, 0);
	CU_ASSERT_PTR_NULL(config.pins);
	config_free(&config);
}

/* --- what is no drop-in ------------------------------------------------------------------------------------------ */

static const char *below(const char *root, const char *path)
{
	static char full[2][8192];
	static unsigned turn;

	snprintf(full[turn ^= 1], sizeof(full[0]), "%s%s", root, path);
	return full[turn];
}

static void others_are_passed_over(void)
{
	static const char *const names[] = {"z.yml", "z.yaml~", "z.yaml.bak", ".z.yaml",
	                                    ".yaml", "yaml",    "z.YAML",     "z.yaml.dpkg-new"};
	const char *root = new_root();

	put_file(root, FOLDER "/a.yaml", "scrub_weight: 1\n");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[128];

		snprintf(path, sizeof(path), FOLDER "/%s", names[i]);
		put_file(root, path, "nonsense\n");
	}
	CU_ASSERT_EQUAL_FATAL(mkdir(below(root, FOLDER "/folder.yaml"), 0755), 0);
	CU_ASSERT_EQUAL_FATAL(mkfifo(below(root, FOLDER "/pipe.yaml"), 0600), 0);
	CU_ASSERT_EQUAL_FATAL(symlink("/dev/null", below(root, FOLDER "/masked.yaml")), 0);
	CU_ASSERT_EQUAL(weight(root), 1);
}

static void links(void)
{
	const char *root = new_root();

	put_file(root, "/srv/shared", "scrub_weight: 6\n");
	put_file(root, FOLDER "/a.yaml", "scrub_weight: 1\n");
	CU_ASSERT_EQUAL_FATAL(symlink("../../../srv/shared", below(root, FOLDER "/b.yaml")), 0);
	CU_ASSERT_EQUAL(weight(root), 6);
	CU_ASSERT_EQUAL_FATAL(unlink(below(root, "/srv/shared")), 0); /* listed, and not there when it is read */
	CU_ASSERT_EQUAL(weight(root), 1);
}

/* --- mistakes ---------------------------------------------------------------------------------------------------- */

/* Refused with this code and the start of this message behind root; what was in force stays. */
static void refused(const char *root, int code, const char *message)
{
	struct config config, before;
	struct pc_why why = {""};

	memset(&config, 0x5a, sizeof(config));
	memcpy(&before, &config, sizeof(config));
	CU_ASSERT_EQUAL(config_load_host(&config, root, &why), code);
	CU_ASSERT_EQUAL(memcmp(&before, &config, sizeof(config)), 0);
	CU_ASSERT_EQUAL(strncmp(why.text, root, strlen(root)), 0);
	CU_ASSERT_EQUAL(strncmp(why.text + strlen(root), message, strlen(message)), 0);
}

static void mistakes_name_their_file(void)
{
	const char *root = new_root();

	put_file(root, FOLDER "/b.yaml", "effort: quick\n\nduty: {most_percent: 0}\n");
	refused(root, -ERANGE, FOLDER "/b.yaml:3:22: most_percent: expected a whole number from 1 to 100");
	put_file(root, FOLDER "/a.yaml", "efort: quick\n");
	refused(root, -EBADMSG, FOLDER "/a.yaml:1:1: unknown key \"efort\"");
	put_file(root, HOST,
	         "pins: [{intent: hot, from: 0, kernel: libc}]\nscrub_weight: x\n"); /* holds memory by then */
	refused(root, -EBADMSG, HOST ":2:15: scrub_weight: expected a number");
	put_file(root, VENDOR, "effort: {\n");
	refused(root, -EBADMSG, VENDOR ":2:1: ");
}

/* A later layer's good value doesn't hide an earlier one's bad one. */
static void a_bad_layer_is_refused_though_overridden(void)
{
	const char *root = new_root();

	put_file(root, VENDOR, "scrub_weight: 99\n");
	put_file(root, HOST, "scrub_weight: 1\n");
	refused(root, -ERANGE, VENDOR ":1:15: ");
}

static void a_folder_that_is_none(void)
{
	const char *root = new_root();

	put_file(root, FOLDER, "scrub_weight: 1\n");
	refused(root, -ENOTDIR, FOLDER ": Not a directory");
}

static void a_long_root(void)
{
	char root[6000];
	struct config config;
	struct pc_why why = {""};

	memset(root, '/', sizeof(root) - 1);
	root[sizeof(root) - 1] = '\0';
	CU_ASSERT_EQUAL(config_load_host(&config, root, &why), -ENAMETOOLONG);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "the path is too long"));
}

/* --- in processes of their own ----------------------------------------------------------------------------------- */

enum { SKIPPED = 77 };

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			printf("\n%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, why.text);                        \
			fflush(stdout);                                                                                \
			_exit(1);                                                                                      \
		}                                                                                                      \
	} while (0)

static bool in_child(void (*run)(const char *root), const char *root)
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	CU_ASSERT_FATAL(child >= 0);
	if (child == 0) {
		run(root);
		_exit(0);
	}
	CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
		return false;
	CU_ASSERT_EQUAL(status, 0);
	return true;
}

/* Root reads everything: as somebody else. */
static void load_unreadable(const char *root)
{
	struct pc_why why = {""};
	struct config config;

	if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
		_exit(SKIPPED);
	if (access(below(root, HOST), R_OK) < 0)
		_exit(SKIPPED); /* $TMPDIR is root's alone */
	CHECK(config_load_host(&config, root, &why) == -EACCES);
	CHECK(strcmp(why.text, below(root, FOLDER ": Permission denied")) == 0);
	_exit(0);
}

static void a_folder_that_cannot_be_read(void)
{
	const char *root = new_root();

	put_file(root, HOST, "");
	put_file(root, FOLDER "/a.yaml", "");
	CU_ASSERT_EQUAL_FATAL(chmod(unit_folder(), 0755), 0);
	CU_ASSERT_EQUAL_FATAL(chmod(below(root, FOLDER), 0), 0);
	if (!in_child(load_unreadable, root))
		unit_skip("needs to become somebody else who may reach %s", root);
	CU_ASSERT_EQUAL(chmod(below(root, FOLDER), 0755), 0);
}

static void load_unreadable_file(const char *root)
{
	struct pc_why why = {""};
	struct config config;

	if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
		_exit(SKIPPED);
	if (access(below(root, FOLDER), R_OK) < 0)
		_exit(SKIPPED);
	CHECK(config_load_host(&config, root, &why) == -EACCES);
	CHECK(strcmp(why.text, below(root, FOLDER "/a.yaml: Permission denied")) == 0);
}

static void a_drop_in_that_cannot_be_read(void)
{
	const char *root = new_root();

	put_file(root, FOLDER "/a.yaml", "");
	CU_ASSERT_EQUAL_FATAL(chmod(unit_folder(), 0755), 0);
	CU_ASSERT_EQUAL_FATAL(chmod(below(root, FOLDER "/a.yaml"), 0), 0);
	if (!in_child(load_unreadable_file, root))
		unit_skip("needs to become somebody else who may reach %s", root);
}

/* In a process whose /etc and /usr/lib are its own: without a root, and --config instead of all layers. */
static void load_of_this_host(const char *root)
{
	struct pc_why why = {""};
	struct config config;

	(void)root;
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) < 0)
		_exit(SKIPPED);
	CHECK(mount("tmpfs", "/etc", "tmpfs", 0, NULL) == 0 && mount("tmpfs", "/usr/lib", "tmpfs", 0, NULL) == 0);
	CHECK(config_load(&config, NULL, &why) == 0 && config.effort == EFFORT_STANDARD);
	put_file("", VENDOR, "effort: quick\nscrub_weight: 3\n");
	CHECK(config_load(&config, NULL, &why) == 0 && config.effort == EFFORT_QUICK && config.scrub_weight == 3);
	put_file("", HOST, "scrub_weight: 4\n");
	CHECK(config_load(&config, NULL, &why) == 0 && config.effort == EFFORT_QUICK && config.scrub_weight == 4);
	put_file("", FOLDER "/a.yaml", "scrub_weight: 5\n");
	CHECK(config_load(&config, NULL, &why) == 0 && config.effort == EFFORT_QUICK && config.scrub_weight == 5);
	put_file("", "/etc/pageclear/other.yaml", "calibrate: manual\n");
	CHECK(config_load(&config, "/etc/pageclear/other.yaml", &why) == 0 && config.scrub_weight == 0.1);
	CHECK(config.effort == EFFORT_STANDARD && config.calibrate == CALIBRATE_MANUAL);
	put_file("", VENDOR, "effort: quick\nscrub_weight: x\n");
	CHECK(config_load(&config, NULL, &why) == -EBADMSG);
	CHECK(strncmp(why.text, VENDOR ":2:15: ", strlen(VENDOR) + 7) == 0);
}

static void this_host(void)
{
	if (!in_child(load_of_this_host, NULL))
		unit_skip("needs root and mounts of its own");
}

static const struct unit_test tests[] = {
	{"without files the defaults", nothing_is_there},
	{"vendor, host, drop-ins in order", later_layers_win},
	{"names are ordered by their bytes", names_are_ordered_by_bytes},
	{"keys of a section stand alone", keys_of_a_section_stand_alone},
	{"lists replace lists", lists_replace_lists},
	{"what is no drop-in is passed over", others_are_passed_over},
	{"links, and files that vanish", links},
	{"mistakes name their file", mistakes_name_their_file},
	{"a bad layer is refused though overridden", a_bad_layer_is_refused_though_overridden},
	{"a folder of drop-ins that is none", a_folder_that_is_none},
	{"a root that is too long", a_long_root},
	{"a folder that can't be read", a_folder_that_cannot_be_read},
	{"a drop-in that can't be read", a_drop_in_that_cannot_be_read},
	{"this host's files; --config instead of all", this_host},
};

UNIT_MAIN("config_layers", tests)
