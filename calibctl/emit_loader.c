/* The loader's own list of tunables; see emit_loader.h. */
#include "calibctl/emit_loader.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "calibctl/emit_child.h"

enum { LIST_MOST = 65536, DEADLINE_MS = 10000 };

/* "0x800", "3"; false if it is no number, or one that 64 bits don't hold. Moves behind it. */
static bool take_number(const char **at, uint64_t *out)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	*out = strtoull(*at, &end, 0);
	*at = end;
	return errno == 0;
}

static bool take_word(const char **at, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*at, word, length) != 0)
		return false;
	*at += length;
	return true;
}

/* "name: 0x800 (min: 0x1, max: 0xffff)"; a tunable of text has nothing behind its colon. */
static bool parse_line(const char *line, const char *name, struct loader_tunable *out)
{
	*out = (struct loader_tunable){0};
	out->listed = take_word(&line, name) && take_word(&line, ": ") && take_number(&line, &out->present) &&
	              take_word(&line, " (min: ") && take_number(&line, &out->least) && take_word(&line, ", max: ") &&
	              take_number(&line, &out->most) && take_word(&line, ")") && out->least <= out->most;
	return out->listed;
}

bool loader_find(const char *list, const char *name, struct loader_tunable *out)
{
	*out = (struct loader_tunable){0};
	while (list != NULL) {
		if (parse_line(list, name, out))
			return true;
		list = strchr(list, '\n');
		list = list == NULL ? NULL : list + 1;
	}
	return false;
}

/* PT_INTERP of this program; NULL for a static one. An address in PT_PHDR is as linked, in AT_PHDR as loaded. */
static const char *own_loader(void)
{
	const ElfW(Phdr) *header = (const ElfW(Phdr) *)getauxval(AT_PHDR);
	unsigned long count = getauxval(AT_PHNUM);
	const char *base = NULL;

	for (unsigned long i = 0; header != NULL && i < count; i++)
		if (header[i].p_type == PT_PHDR)
			base = (const char *)header - header[i].p_vaddr;
	for (unsigned long i = 0; base != NULL && i < count; i++)
		if (header[i].p_type == PT_INTERP)
			return base + header[i].p_vaddr;
	return NULL;
}

int loader_list(const char *loader, char **list, struct pc_why *why)
{
	struct child_ask ask = {
		.program = loader != NULL ? loader : own_loader(), .most = LIST_MOST, .deadline_ms = DEADLINE_MS};
	char option[] = "--list-tunables", *arguments[] = {NULL, option, NULL};

	if (ask.program == NULL)
		return pc_why(why, -ENOENT, "this program has no dynamic loader to ask: name one with --loader");
	arguments[0] = (char *)ask.program;
	ask.arguments = arguments;
	return child_ask(&ask, list, why);
}
