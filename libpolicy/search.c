#include "libpolicy/search.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu.h"
#include "libpolicy/builtin.h"
#include "libpolicy/policy.h"

static const char off_switch[] = "builtin";

const char *pc_search_paths[PC_CANDIDATES - 1] = {"/run/pageclear/policy.yaml", "/etc/pageclear/policy.yaml"};

__attribute__((format(printf, 2, 3))) static void say(struct pc_search *search, const char *format, ...)
{
	size_t used = strlen(search->text);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(search->text + used, sizeof(search->text) - used, format, arguments);
	va_end(arguments);
}

static void say_path(struct pc_search *search, const char *path)
{
	char text[256];
	const char *left = pc_shown(text, sizeof(text), path);

	say(search, "%s%s", text, *left == '\0' ? "" : "...");
}

/* NULL: that candidate isn't there at all. */
static const char *candidate(const struct pc_search *search, unsigned i)
{
	if (i > 0)
		return pc_search_paths[i - 1];
	return search->named[0] == '\0' ? NULL : search->named;
}

static void note_named(char named[PATH_MAX + 1])
{
	const char *value = secure_getenv("PAGECLEAR_POLICY");

	snprintf(named, PATH_MAX + 1, "%s", value == NULL ? "" : value);
}

/* Errors that say nothing about the file: the next look may well succeed. */
static bool is_passing(int r)
{
	return r == -ENOMEM || r == -EMFILE || r == -ENFILE || r == -EIO || r == -EAGAIN || r == -EINTR;
}

/* Nor do these say anything about a file that was read before: a sandbox has closed since, or privileges were dropped.
 */
static bool is_denied(int r)
{
	return r == -EACCES || r == -EPERM || r == -ENOSYS;
}

static bool is_in_use(const struct pc_search *search, const struct pc_search *kept, unsigned i)
{
	return i == kept->used && (i > 0 || strcmp(search->named, kept->named) == 0);
}

/* What became of the candidates before the one in use. */
struct passed {
	int code[PC_CANDIDATES]; /* 0: not looked at */
	struct pc_why why[PC_CANDIDATES];
};

/* That one of the two fixed files isn't there is worth a word only where no other was found. */
static void say_passed(struct pc_search *search, const struct passed *passed)
{
	for (unsigned i = 0; i < PC_CANDIDATES; i++) {
		bool expected = passed->code[i] == -ENOENT && i > 0 && search->used < PC_CANDIDATES;

		if (passed->code[i] == 0 || expected)
			continue;
		say(search, "; not ");
		say_path(search, candidate(search, i));
		say(search, ": %s", passed->why[i].text);
	}
}

static int use_builtin(struct pageclear_policy **out, struct pc_search *search)
{
	struct pc_builtin builtin;
	const struct pc_document *document = &builtin.document;
	const struct pc_table *scrub = &builtin.tables[PC_BUILTIN_SCRUB];
	struct pc_why lacking;

	pc_builtin_here(&builtin);
	search->used = PC_CANDIDATES;
	say(search, "built-in policy (libc; scrub from %llu bytes: %s", (unsigned long long)scrub->rules[1].from,
	    scrub->rules[1].kernel);
	if (document->table_count > PC_BUILTIN_FLUSHED) {
		const struct pc_rule *flushed = &document->tables[PC_BUILTIN_FLUSHED].rules[1];

		say(search, "; cold and flushed from %llu bytes: %s", (unsigned long long)flushed->from,
		    flushed->kernel);
	}
	say(search, ")");
	return pc_policy_build(out, document, 0, &lacking); /* it names none that this CPU lacks */
}

/* 0 found, 1 there is none; -errno: could not look, and what is kept stays. */
static int use_first(struct pageclear_policy **out, struct pc_search *search, struct passed *passed,
                     const struct pc_search *kept)
{
	for (unsigned i = 0; i < PC_CANDIDATES; i++) {
		const char *path = candidate(search, i);

		if (path == NULL)
			continue;
		search->seen[i] = pc_file_identity(path);
		int r = pc_policy_load(out, path, &passed->why[i]);
		if (r == 0) {
			search->used = i;
			say_path(search, path);
			say(search, ": %s", passed->why[i].text);
			return 0;
		}
		if (kept != NULL && (is_passing(r) || (is_denied(r) && is_in_use(search, kept, i))))
			return r;
		search->unsure = search->unsure || is_passing(r);
		passed->code[i] = r;
	}
	return 1;
}

int pc_search(struct pageclear_policy **out, struct pc_search *search, const struct pc_search *kept)
{
	struct passed passed = {0};

	memset(search->seen, 0, sizeof(search->seen));
	search->text[0] = '\0';
	search->unsure = false;
	note_named(search->named);
	if (strcmp(search->named, off_switch) == 0) {
		int r = use_builtin(out, search);
		say(search, "; PAGECLEAR_POLICY=%s", off_switch);
		return r;
	}
	int r = use_first(out, search, &passed, kept);
	if (r < 0)
		return r;
	if (r > 0)
		r = use_builtin(out, search);
	say_passed(search, &passed);
	return r;
}

bool pc_search_holds(const struct pc_search *search)
{
	char named[PATH_MAX + 1];

	note_named(named);
	if (search->unsure || strcmp(named, search->named) != 0)
		return false;
	if (strcmp(named, off_switch) == 0)
		return true;
	for (unsigned i = 0; i < PC_CANDIDATES && i <= search->used; i++) {
		const char *path = candidate(search, i);

		if (path == NULL)
			continue;
		struct pc_identity now = pc_file_identity(path);
		if (!pc_identity_same(&now, &search->seen[i]))
			return false;
	}
	return true;
}
