#include "calibctl/args.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { GLOBAL_OPTIONS = 3 };

enum outcome args_misused(const struct args *args, const char *format, ...)
{
	const char *space = args->verb == NULL ? "" : " ", *verb = args->verb == NULL ? "" : args->verb;
	va_list arguments;

	fprintf(stderr, "calibctl%s%s: ", space, verb);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "\nTry 'calibctl help%s%s'.\n", space, verb);
	return USAGE;
}

/* Length of the option's name in "--name=value". */
static size_t name_length(const char *text)
{
	return strcspn(text, "=");
}

static const struct arg_option *find(const struct arg_option *options, const char *text)
{
	for (; options != NULL && options->name != NULL; options++)
		if (strlen(options->name) == name_length(text) && strncmp(options->name, text, name_length(text)) == 0)
			return options;
	return NULL;
}

/* A value that looks like an option is more likely a forgotten value; --name=--value says that it is meant. */
static enum outcome take(struct args *args, const struct arg_option *option, const char *text)
{
	const char *value = text[name_length(text)] == '=' ? text + name_length(text) + 1 : NULL;

	assert((option->value == NULL) != (option->flag == NULL));
	if (option->value == NULL) {
		if (value != NULL)
			return args_misused(args, "%s takes no value", option->name);
		*option->flag = true;
		return DONE;
	}
	if (value == NULL && *args->next != NULL && (*args->next)[0] != '-')
		value = *args->next++;
	if (value == NULL || value[0] == '\0')
		return args_misused(args, "%s needs a value", option->name);
	*option->value = value;
	return DONE;
}

static bool is_option(const char *text)
{
	return text[0] == '-' && text[1] != '\0';
}

static enum outcome option(struct args *args, struct calibctl *ctl, const struct arg_option *own)
{
	const struct arg_option global[GLOBAL_OPTIONS + 1] = {{"--policy", &ctl->policy, NULL},
	                                                      {"--database", &ctl->database, NULL},
	                                                      {"--json", NULL, &ctl->json},
	                                                      {0}};
	const char *text = *args->next++;
	const struct arg_option *found = find(own, text);

	if (found == NULL)
		found = find(global, text);
	if (found == NULL)
		return args_misused(args, "unknown option '%.*s'", (int)name_length(text), text);
	return take(args, found, text);
}

static enum outcome add_word(struct args *args, struct arg_words *words, size_t *count)
{
	if (*count == words->most)
		return args_misused(args, "unexpected argument '%s'", *args->next);
	words->word[(*count)++] = *args->next++;
	return DONE;
}

enum outcome args_parse(struct args *args, struct calibctl *ctl, const struct arg_option *own, struct arg_words *words)
{
	bool only_words = false;
	size_t count = 0;
	enum outcome outcome = DONE;

	while (outcome == DONE && *args->next != NULL) {
		if (!only_words && strcmp(*args->next, "--") == 0) {
			only_words = true;
			args->next++;
		} else if (!only_words && is_option(*args->next)) {
			outcome = option(args, ctl, own);
		} else {
			outcome = add_word(args, words, &count);
		}
	}
	if (outcome == DONE && count < words->least)
		outcome = args_misused(args, "expected %s", words->names);
	return outcome;
}

enum outcome args_parse_leading(struct args *args, struct calibctl *ctl)
{
	enum outcome outcome = DONE;

	while (outcome == DONE && *args->next != NULL && is_option(*args->next) && strcmp(*args->next, "--") != 0)
		outcome = option(args, ctl, NULL);
	return outcome;
}
