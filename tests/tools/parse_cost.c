/*
 * tool-parse_cost LEAST MOST: every shape of text at LEAST bytes, twice that, and so on up to MOST, read as a policy by
 * parse_measured(), one call each; a line with shape, length and result for each call, in the same order. The last
 * shape is one that libyaml alone takes the square of the length for, an eighth as long. For callgrind, which can write
 * what each call of a function took (tests/cli/linear.bats).
 */
#include <stdbool.h>
#include <stdlib.h>
#include <yaml.h>

#include "libpolicy/document.h"
#include "tests/unit/shapes.h"

int parse_measured(const char *text, size_t len, bool bare);

static int parse_bare(const char *text, size_t len)
{
	yaml_event_type_t type = YAML_NO_EVENT;
	yaml_parser_t yaml;
	yaml_event_t event;

	if (!yaml_parser_initialize(&yaml))
		return -1;
	yaml_parser_set_input_string(&yaml, (const unsigned char *)text, len);
	while (type != YAML_STREAM_END_EVENT && yaml_parser_parse(&yaml, &event)) {
		type = event.type;
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&yaml);
	return 0;
}

static int parse(const char *text, size_t len)
{
	struct pc_document *document = NULL;
	int r = pc_document_parse(&document, text, len, NULL);

	pc_document_free(document);
	return r;
}

__attribute__((noinline)) int parse_measured(const char *text, size_t len, bool bare)
{
	return bare ? parse_bare(text, len) : parse(text, len);
}

int main(int argc, char **argv)
{
	size_t least = argc == 3 ? strtoul(argv[1], NULL, 10) : 0, most = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;

	if (least < 1024 || most > 65536 || least > most) {
		fprintf(stderr, "usage: tool-parse_cost LEAST MOST, within 1024 to 65536\n");
		return 2;
	}
	char *text = malloc(most);
	if (text == NULL)
		return 1;
	for (size_t i = 0; i < SHAPES; i++)
		for (size_t len = least; len <= most; len *= 2) {
			shape_fill(&shapes[i], text, len);
			printf("%s\t%zu\t%d\n", shapes[i].name, len, parse_measured(text, len, false));
		}
	memset(text, '[', most);
	for (size_t len = least; len <= most; len *= 2)
		printf("libyaml alone\t%zu\t%d\n", len / 8, parse_measured(text, len / 8, true));
	free(text);
	return 0;
}
