/*
 * emit: the verb, its options, and where the text goes.
 */
#include "calibctl/emit.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "calibctl/args.h"
#include "calibctl/output.h"

static const struct emit_format formats[] = {
	{"glibc-tunables", emit_glibc_tunables, true},
	{"environment.d", emit_environment_d, true},
	{"c-header", emit_c_header, false},
};

static const struct emit_format *find_format(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strcmp(formats[i].name, name) == 0)
			return &formats[i];
	return NULL;
}

void emit_note(struct emit *emit, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	int length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0) {
		output_failed(&(struct pc_why){"out of memory"});
		exit(UNREADABLE);
	}
	fprintf(stderr, "calibctl emit: %s\n", text);
	json_array_append_new(emit->notes, output_json_text(text));
	free(text);
}

static enum outcome parse(struct args *args, struct calibctl *ctl, struct emit *emit, const struct emit_format **format)
{
	const struct arg_option options[] = {{"--loader", &emit->loader, NULL}, {"--verify", NULL, &emit->verify}, {0}};
	struct arg_words words = {.least = 1, .most = 1, .names = "FORMAT: glibc-tunables, environment.d or c-header"};

	if (args_parse(args, ctl, options, &words) != DONE)
		return USAGE;
	*format = find_format(words.word[0]);
	if (*format == NULL)
		return args_misused(args, "FORMAT '%s' is none of glibc-tunables, environment.d, c-header",
		                    words.word[0]);
	if (!(*format)->tunes && (emit->loader != NULL || emit->verify))
		return args_misused(args, "%s is for glibc-tunables and environment.d",
		                    emit->loader != NULL ? "--loader" : "--verify");
	if (emit->loader != NULL && emit->verify)
		return args_misused(args, "--verify measures with this program's own loader: not with --loader");
	return DONE;
}

static enum outcome print_json(const struct emit *emit, const struct emit_format *format, const char *text,
                               enum outcome outcome)
{
	json_t *root = json_pack("{s:s, s:o, s:o, s:O}", "format", format->name, "policy", subject_json(&emit->subject),
	                         "text", output_json_text(text), "notes", emit->notes);

	if (root != NULL && emit->details != NULL)
		json_object_update(root, emit->details);
	return output_json(root, outcome);
}

/* The text is whole before any of it is printed: a redirection never holds half a header. */
static enum outcome print(struct emit *emit, const struct emit_format *format, const struct calibctl *ctl)
{
	char *text = NULL;
	size_t size = 0;

	emit->notes = json_array();
	emit->out = open_memstream(&text, &size);
	if (emit->out == NULL || emit->notes == NULL)
		return output_failed(&(struct pc_why){"out of memory"});
	enum outcome outcome = format->run(emit);
	bool whole = !ferror(emit->out);
	if (fclose(emit->out) != 0 || !whole)
		outcome = output_failed(&(struct pc_why){"out of memory"});
	else if (ctl->json && outcome != UNREADABLE)
		outcome = print_json(emit, format, text, outcome);
	else if (outcome != UNREADABLE)
		fputs(text, stdout);
	free(text);
	json_decref(emit->notes);
	json_decref(emit->details);
	return outcome;
}

enum outcome verb_emit(struct calibctl *ctl, struct args *args)
{
	const struct emit_format *format;
	struct emit emit = {0};
	struct pc_why why;

	if (parse(args, ctl, &emit, &format) != DONE)
		return USAGE;
	int r = subject_open(&emit.subject, ctl, &why);
	enum outcome outcome = r != 0 ? subject_missing(&emit.subject, r, &why) : print(&emit, format, ctl);
	subject_close(&emit.subject);
	return outcome;
}
