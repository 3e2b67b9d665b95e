/*
 * libyaml's emitter, event by event; see export.h. Every event belongs to the emitter once it was emitted, whether that
 * went well or not: deleting it here would free it twice.
 */
#include "calibrd/export.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pageclear/policy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

static const char heading[] = "# Measured by calibrd on this host. Edits are lost: pin choices in calibrd.yaml.\n";

enum style { PLAIN, QUOTED };

struct writer {
	yaml_emitter_t emitter;
	int error; /* the first one; nothing is emitted after it */
	struct pc_why *why;
};

/* --- events ------------------------------------------------------------------------------------------------------ */

/* The buffer is the limit: where it is full the emitter's own writer fails. */
static void emit(struct writer *writer, yaml_event_t *event, int initialized)
{
	if (!initialized) {
		writer->error = pc_why(writer->why, -EINVAL, "text that is not UTF-8, or out of memory");
		return;
	}
	if (yaml_emitter_emit(&writer->emitter, event))
		return;
	if (writer->emitter.error == YAML_WRITER_ERROR)
		writer->error = pc_why(writer->why, -EFBIG, "a policy of more than %d bytes", EXPORT_MAX_BYTES - 1);
	else if (writer->emitter.error == YAML_MEMORY_ERROR)
		writer->error = pc_why(writer->why, -ENOMEM, "out of memory");
	else
		writer->error = pc_why(writer->why, -EINVAL, "libyaml: %s", writer->emitter.problem);
}

static void emit_scalar(struct writer *writer, const char *text, enum style style)
{
	yaml_event_t event;

	if (writer->error != 0)
		return;
	emit(writer, &event,
	     yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text, (int)strlen(text), 1, 1,
	                                  style == QUOTED ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_PLAIN_SCALAR_STYLE));
}

static void begin_map(struct writer *writer, yaml_mapping_style_t style)
{
	yaml_event_t event;

	if (writer->error == 0)
		emit(writer, &event, yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, style));
}

static void end_map(struct writer *writer)
{
	yaml_event_t event;

	if (writer->error == 0)
		emit(writer, &event, yaml_mapping_end_event_initialize(&event));
}

static void begin_list(struct writer *writer, yaml_sequence_style_t style)
{
	yaml_event_t event;

	if (writer->error == 0)
		emit(writer, &event, yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, style));
}

static void end_list(struct writer *writer)
{
	yaml_event_t event;

	if (writer->error == 0)
		emit(writer, &event, yaml_sequence_end_event_initialize(&event));
}

static void begin_document(struct writer *writer)
{
	yaml_event_t event;

	emit(writer, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
	if (writer->error == 0)
		emit(writer, &event, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1));
}

static void end_document(struct writer *writer)
{
	yaml_event_t event;

	if (writer->error == 0)
		emit(writer, &event, yaml_document_end_event_initialize(&event, 1));
	if (writer->error == 0)
		emit(writer, &event, yaml_stream_end_event_initialize(&event));
}

/* --- members ----------------------------------------------------------------------------------------------------- */

static void put_text(struct writer *writer, const char *key, const char *text, enum style style)
{
	emit_scalar(writer, key, PLAIN);
	emit_scalar(writer, text, style);
}

static void put_number(struct writer *writer, const char *key, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	put_text(writer, key, text, PLAIN);
}

static void put_number_if(struct writer *writer, const char *key, uint64_t number)
{
	if (number != 0)
		put_number(writer, key, number);
}

/* What a number is as written: hundredths. False if it is none that the format can hold. */
static bool hundredths(double number, uint64_t *out)
{
	if (!isfinite(number) || number < 0 || number > 1e12)
		return false;
	*out = (uint64_t)llround(number * 100);
	return true;
}

/* By hand, since printf would write the decimal comma of the program's locale. `trim` leaves out zeros at the end. */
static void put_decimal(struct writer *writer, const char *key, double number, bool trim)
{
	char text[32];
	uint64_t n;

	if (writer->error != 0)
		return;
	if (!hundredths(number, &n)) {
		writer->error = pc_why(writer->why, -EINVAL, "%s: a number that means nothing: %g", key, number);
		return;
	}
	int len = snprintf(text, sizeof(text), "%" PRIu64 ".%02u", n / 100, (unsigned)(n % 100));
	if (trim && n % 10 == 0)
		text[n % 100 == 0 ? len - 3 : len - 1] = '\0';
	put_text(writer, key, text, PLAIN);
}

/* --- the format -------------------------------------------------------------------------------------------------- */

static void put_head(struct writer *writer, const struct pc_document *document)
{
	put_number(writer, "format", PC_DOCUMENT_FORMAT);
	put_number(writer, "generation", document->generation);
	put_text(writer, "version", document->version, QUOTED);
	put_text(writer, "written", document->written, QUOTED);
	put_text(writer, "quality", document->quality, PLAIN);
}

static void put_host(struct writer *writer, const struct pc_document *document)
{
	emit_scalar(writer, "host", PLAIN);
	begin_map(writer, YAML_BLOCK_MAPPING_STYLE);
	put_text(writer, "topology", document->topology, QUOTED);
	put_text(writer, "arch", document->arch, QUOTED);
	emit_scalar(writer, "cpus", PLAIN);
	begin_list(writer, YAML_FLOW_SEQUENCE_STYLE);
	for (size_t i = 0; i < document->cpu_count; i++)
		emit_scalar(writer, document->cpus[i], QUOTED);
	end_list(writer);
	put_text(writer, "name", document->name, QUOTED);
	put_number_if(writer, "knee_bytes", document->knee_bytes);
	end_map(writer);
}

static void put_probe(struct writer *writer, const struct pc_document *document)
{
	if (document->probe.from == 0)
		return;
	emit_scalar(writer, "probe", PLAIN);
	begin_map(writer, YAML_FLOW_MAPPING_STYLE);
	put_number(writer, "from", document->probe.from);
	put_number(writer, "lines", document->probe.lines);
	put_decimal(writer, "slow_ns", document->probe.slow_ns, true);
	end_map(writer);
}

static bool is_libc(const struct pc_rule *rule)
{
	return strcmp(rule->kernel, "libc") == 0;
}

/* As written; 0 is "not stated". */
static uint64_t gain_hundredths(const struct pc_rule *rule)
{
	uint64_t n;

	if (is_libc(rule))
		return 0;
	return hundredths(rule->gain, &n) ? n : UINT64_MAX;
}

static void put_rule(struct writer *writer, const struct pc_rule *rule)
{
	begin_map(writer, YAML_FLOW_MAPPING_STYLE);
	put_number(writer, "from", rule->from);
	put_number_if(writer, "low", rule->low);
	put_number_if(writer, "high", rule->high);
	put_text(writer, "kernel", rule->kernel, PLAIN);
	if (rule->chunk != 0 || !is_libc(rule))
		put_number(writer, "chunk", rule->chunk);
	if (gain_hundredths(rule) != 0)
		put_decimal(writer, "gain", rule->gain, false);
	if (rule->pinned)
		put_text(writer, "pinned", "true", PLAIN);
	end_map(writer);
}

static void put_table(struct writer *writer, const struct pc_table *table)
{
	begin_map(writer, YAML_BLOCK_MAPPING_STYLE);
	put_text(writer, "intent", pc_intent_name(table->intent), PLAIN);
	emit_scalar(writer, "when", PLAIN);
	begin_map(writer, YAML_FLOW_MAPPING_STYLE);
	put_number(writer, "threads", table->threads);
	if (table->intent != PAGECLEAR_SCRUB)
		put_text(writer, "prior", pc_prior_name(table->prior), PLAIN);
	end_map(writer);
	emit_scalar(writer, "rules", PLAIN);
	begin_list(writer, YAML_BLOCK_SEQUENCE_STYLE);
	for (size_t i = 0; i < table->rule_count; i++)
		put_rule(writer, &table->rules[i]);
	end_list(writer);
	end_map(writer);
}

static void put_document(struct writer *writer, const struct pc_document *document)
{
	begin_document(writer);
	begin_map(writer, YAML_BLOCK_MAPPING_STYLE);
	put_head(writer, document);
	put_host(writer, document);
	put_probe(writer, document);
	emit_scalar(writer, "clear", PLAIN);
	begin_list(writer, YAML_BLOCK_SEQUENCE_STYLE);
	for (size_t i = 0; i < document->table_count; i++)
		put_table(writer, &document->tables[i]);
	end_list(writer);
	end_map(writer);
	end_document(writer);
}

/* Into out[EXPORT_MAX_BYTES]; NUL-terminated. */
static int write_text(const struct pc_document *document, char *out, size_t *len, struct pc_why *why)
{
	struct writer writer = {.why = why};
	const size_t head = sizeof(heading) - 1;
	size_t written = 0;

	memcpy(out, heading, head);
	if (!yaml_emitter_initialize(&writer.emitter))
		return pc_why(why, -ENOMEM, "out of memory");
	yaml_emitter_set_output_string(&writer.emitter, (unsigned char *)out + head, EXPORT_MAX_BYTES - head - 1,
	                               &written);
	yaml_emitter_set_unicode(&writer.emitter, 1);
	yaml_emitter_set_width(&writer.emitter, -1); /* one line a rule */
	put_document(&writer, document);
	yaml_emitter_delete(&writer.emitter);
	*len = head + written;
	out[*len] = '\0';
	return writer.error;
}

static int read_back(const struct pc_document *document, const char *text, size_t len, struct pc_why *why)
{
	struct pc_document *copy;
	struct pc_why refusal = {""};
	int r = pc_document_parse(&copy, text, len, &refusal);

	if (r == -ENOMEM)
		return pc_why(why, r, "out of memory");
	if (r < 0)
		return pc_why(why, -EBADMSG, "a policy that readers would refuse: %.180s", refusal.text);
	bool same = export_same(document, copy) && copy->generation == document->generation;
	pc_document_free(copy);
	return same ? 0 : pc_why(why, -EBADMSG, "a policy that readers would take for another one");
}

int export_yaml(const struct pc_document *document, char **text, size_t *len, struct pc_why *why)
{
	size_t written;
	char *out = malloc(EXPORT_MAX_BYTES);

	if (out == NULL)
		return pc_why(why, -ENOMEM, "out of memory");
	int r = write_text(document, out, &written, why);
	if (r == 0)
		r = read_back(document, out, written, why);
	if (r < 0) {
		free(out);
		return r;
	}
	*text = out;
	*len = written;
	return 0;
}

/* --- sameness ---------------------------------------------------------------------------------------------------- */

static bool same_rule(const struct pc_rule *a, const struct pc_rule *b)
{
	return a->from == b->from && a->low == b->low && a->high == b->high && a->chunk == b->chunk &&
	       a->pinned == b->pinned && gain_hundredths(a) == gain_hundredths(b) && strcmp(a->kernel, b->kernel) == 0;
}

static bool same_table(const struct pc_table *a, const struct pc_table *b)
{
	if (a->intent != b->intent || a->prior != b->prior || a->threads != b->threads ||
	    a->rule_count != b->rule_count)
		return false;
	for (size_t i = 0; i < a->rule_count; i++)
		if (!same_rule(&a->rules[i], &b->rules[i]))
			return false;
	return true;
}

static bool same_host(const struct pc_document *a, const struct pc_document *b)
{
	if (strcmp(a->topology, b->topology) != 0 || strcmp(a->arch, b->arch) != 0 || strcmp(a->name, b->name) != 0 ||
	    a->knee_bytes != b->knee_bytes || a->cpu_count != b->cpu_count)
		return false;
	for (size_t i = 0; i < a->cpu_count; i++)
		if (strcmp(a->cpus[i], b->cpus[i]) != 0)
			return false;
	return true;
}

static bool same_probe(const struct pc_document *a, const struct pc_document *b)
{
	uint64_t slow_a, slow_b;

	if (a->probe.from == 0 || b->probe.from == 0)
		return a->probe.from == b->probe.from;
	return a->probe.from == b->probe.from && a->probe.lines == b->probe.lines &&
	       hundredths(a->probe.slow_ns, &slow_a) && hundredths(b->probe.slow_ns, &slow_b) && slow_a == slow_b;
}

bool export_same(const struct pc_document *a, const struct pc_document *b)
{
	if (strcmp(a->version, b->version) != 0 || strcmp(a->quality, b->quality) != 0 || !same_host(a, b) ||
	    !same_probe(a, b) || a->table_count != b->table_count)
		return false;
	for (size_t i = 0; i < a->table_count; i++)
		if (!same_table(&a->tables[i], &b->tables[i]))
			return false;
	return true;
}
