#include "libpolicy/search.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* A path may be any bytes and very long; the text is for people, on one line. */
static void say_path(struct pc_search *search, const char *path)
{
	char text[256];
	size_t n = 0;

	while (*path != '\0' && n < sizeof(text) - 1) {
		unsigned control = pc_control(path);

		text[n++] = control > 0 ? '?' : *path;
		path += control > 0 ? control : 1;
	}
	text[n] = '\0';
	say(search, "%s%s", text, *path == '\0' ? "" : "...");
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
	const struct pc_document *document = pc_builtin_document();
	const struct pc_table *scrub = &document->tables[0];
	struct pc_why lacking;

	search->used = PC_CANDIDATES;
	say(search, "built-in policy (libc; scrub from %llu bytes: %s)", (unsigned long long)scrub->rules[1].from,
	    scrub->rules[1].kernel);
	return pc_policy_build(out, document, 0, &lacking);
}

/* 0 found, else the last candidate's error; those of passing trouble end the search that keeps what there is. */
static int use_first(struct pageclear_policy **out, struct pc_search *search, struct passed *passed, bool keeps)
{
	int r = -ENOENT;

	for (unsigned i = 0; i < PC_CANDIDATES; i++) {
		const char *path = candidate(search, i);

		if (path == NULL)
			continue;
		search->seen[i] = pc_file_identity(path);
		r = pc_policy_load(out, path, &passed->why[i]);
		if (r == 0) {
			search->used = i;
			say_path(search, path);
			say(search, ": %s", passed->why[i].text);
		}
		if (r == 0 || (keeps && is_passing(r)))
			return r;
		search->unsure = search->unsure || is_passing(r);
		passed->code[i] = r;
	}
	return r;
}

int pc_search(struct pageclear_policy **out, struct pc_search *search, bool keeps)
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
	int r = use_first(out, search, &passed, keeps);
	if (keeps && is_passing(r))
		return r;
	if (r < 0)
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
