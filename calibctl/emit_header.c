/*
 * c-header: the policy as constant tables, for kernels and projects that cannot parse YAML at run time. Needs no
 * header, no floating point and no libc where it is included. Looking up there gives what libpolicy's own look-up
 * gives.
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "calibctl/emit.h"
#include "calibctl/words.h"
#include "pageclear/policy.h"

enum { TEXT = 96, IDENTIFIER = 16, KERNELS_MAX = PC_TABLES_MAX * PC_RULES_MAX };

/* Names as the rules have them, each once; libc, which stands in where there is no table, first. */
struct names {
	unsigned count;
	const char *name[KERNELS_MAX + 1];
};

/* --- names -------------------------------------------------------------------------------------------------------- */

/* A policy's texts may hold anything: what could end a comment or a string, or begin a trigraph, becomes '_'. */
static const char *safe(const char *text, char out[TEXT])
{
	size_t n = 0;

	for (; *text != '\0' && n < TEXT - 1; text++) {
		unsigned char c = (unsigned char)*text;

		out[n++] = c < 128 && (isalnum(c) || strchr(" ._,:;()+/-@", c) != NULL) ? (char)c : '_';
	}
	out[n] = '\0';
	return out;
}

static unsigned index_of(const struct names *names, const char *name)
{
	unsigned i = 0;

	while (i < names->count && strcmp(names->name[i], name) != 0)
		i++;
	return i;
}

static void collect(struct names *names, const struct pc_document *document)
{
	names->count = 1;
	names->name[0] = "libc";
	for (size_t t = 0; t < document->table_count; t++)
		for (size_t i = 0; i < document->tables[t].rule_count; i++) {
			const char *name = document->tables[t].rules[i].kernel;
			unsigned at = index_of(names, name);

			names->name[at] = name;
			names->count += at == names->count;
		}
}

/* "STOSB": what the reader lets through as a kernel's name is an identifier. */
static const char *identifier(const char *kernel, char out[IDENTIFIER])
{
	size_t n = 0;

	for (; n < IDENTIFIER - 1 && kernel[n] != '\0'; n++)
		out[n] = (char)toupper((unsigned char)kernel[n]);
	out[n] = '\0';
	return out;
}

/* "COLD_FLUSHED_1", or in small letters. */
static void table_name(const struct pc_table *table, bool capital, char out[TEXT])
{
	snprintf(out, TEXT, "%s%s%s_%u", pc_intent_name(table->intent), table->intent == PAGECLEAR_SCRUB ? "" : "_",
	         table->intent == PAGECLEAR_SCRUB ? "" : pc_prior_name(table->prior), table->threads);
	for (char *c = out; *c != '\0' && capital; c++)
		*c = (char)toupper((unsigned char)*c);
}

/* --- parts of the header ------------------------------------------------------------------------------------------ */

static void write_head(FILE *out, const struct pc_document *document)
{
	char text[TEXT];

	fprintf(out,
	        "/*\n"
	        " * How one host clears memory best. Written by `calibctl emit c-header`; edits are lost.\n"
	        " *\n"
	        " * host        %s\n",
	        safe(words_stated(document->name), text));
	for (size_t i = 0; i < document->cpu_count; i++)
		fprintf(out, " * cpu         %s\n", safe(document->cpus[i], text));
	fprintf(out, " * topology    %s\n", safe(words_stated(document->topology), text));
	fprintf(out, " * generation  %" PRIu64 "\n", document->generation);
	fprintf(out, " * measured    %s\n", safe(words_stated(document->written), text));
	fprintf(out, " * quality     %s\n", safe(words_stated(document->quality), text));
	fputs(" *\n"
	      " * For hosts like that one: the rules are what was measured there, and name instructions that another "
	      "CPU\n"
	      " * may lack. A kernel's name means what `calibctl kernels` says; weakly ordered ones need a fence "
	      "(SFENCE)\n"
	      " * behind the last store. Sizes are bytes, of the whole extent; a chunk is what one call should cover.\n"
	      " */\n"
	      "#ifndef PAGECLEAR_TABLES_H\n"
	      "#define PAGECLEAR_TABLES_H\n\n",
	      out);
}

static void write_facts(FILE *out, const struct pc_document *document)
{
	char text[TEXT];

	fprintf(out,
	        "#define PAGECLEAR_TABLES_FORMAT 1\n"
	        "#define PAGECLEAR_TABLES_GENERATION %" PRIu64 "ull\n"
	        "#define PAGECLEAR_TABLES_TOPOLOGY \"%s\"\n",
	        document->generation, safe(document->topology, text));
	fprintf(out, "#define PAGECLEAR_TABLES_ARCH \"%s\"\n", safe(document->arch, text));
	fprintf(out, "#define PAGECLEAR_TABLES_KNEE %" PRIu64 "ull /* bytes; 0: not known */\n", document->knee_bytes);
	if (document->probe.from == 0)
		return;
	fprintf(out,
	        "\n/* From that size on it is worth finding out whether a target is cached: half of so many lines,\n"
	        " * loaded at once, and then the other half, that take longer each mean flushed. */\n"
	        "#define PAGECLEAR_TABLES_PROBE_FROM %" PRIu64 "ull\n"
	        "#define PAGECLEAR_TABLES_PROBE_LINES %u\n"
	        "#define PAGECLEAR_TABLES_PROBE_SLOW_PS %.0f /* picoseconds */\n",
	        document->probe.from, document->probe.lines, 1000 * document->probe.slow_ns);
}

static void write_kernels(FILE *out, const struct names *names)
{
	char text[TEXT], word[IDENTIFIER];

	fputs("\nenum pageclear_table_kernel {\n", out);
	for (unsigned i = 0; i < names->count; i++)
		fprintf(out, "\tPAGECLEAR_TABLE_KERNEL_%s = %u,\n", identifier(names->name[i], word), i);
	fprintf(out, "\tPAGECLEAR_TABLE_KERNELS = %u\n};\n\n", names->count);
	fputs("static const char *const pageclear_table_kernels[PAGECLEAR_TABLE_KERNELS] = {\n", out);
	for (unsigned i = 0; i < names->count; i++)
		fprintf(out, "\t\"%s\",\n", safe(names->name[i], text));
	fputs("};\n", out);
}

static const char types[] = "\n/* What comes next, and what was before; the numbers are libpolicy's own. */\n"
			    "enum pageclear_table_intent {\n"
			    "\tPAGECLEAR_TABLE_HOT = 0,   /* this CPU uses it right after */\n"
			    "\tPAGECLEAR_TABLE_COLD = 1,  /* nobody uses it soon */\n"
			    "\tPAGECLEAR_TABLE_SCRUB = 2  /* background: spare the caches; prior unknown */\n"
			    "};\n\n"
			    "enum pageclear_table_prior {\n"
			    "\tPAGECLEAR_TABLE_UNKNOWN = 0,\n"
			    "\tPAGECLEAR_TABLE_CACHED = 1,\n"
			    "\tPAGECLEAR_TABLE_FLUSHED = 2\n"
			    "};\n\n"
			    "struct pageclear_table_rule {\n"
			    "\tunsigned long long from;  /* holds from here up to the next one's */\n"
			    "\tunsigned long long chunk; /* 0: the whole extent in one call */\n"
			    "\tunsigned kernel;          /* enum pageclear_table_kernel */\n"
			    "};\n\n"
			    "struct pageclear_table {\n"
			    "\tunsigned intent, prior;\n"
			    "\tunsigned threads; /* CPUs of one last-level cache that clear at the same time */\n"
			    "\tunsigned count;   /* of rules */\n"
			    "\tconst struct pageclear_table_rule *rules;\n"
			    "};\n";

/* What a rule is worth, behind it. */
static void write_evidence(FILE *out, const struct pc_rule *rule)
{
	char low[WORDS_SHORT], high[WORDS_SHORT];

	words_size(rule->low, low);
	words_size(rule->high, high);
	fputs(rule->pinned ? " pinned" : " measured", out);
	if (rule->gain > 0)
		fprintf(out, ", gain %.2f", rule->gain);
	if (rule->high > 0 && rule->low != rule->high)
		fprintf(out, ", crossover %s - %s", low, high);
	else if (rule->high > 0)
		fprintf(out, ", crossover %s", high);
}

/* Every crossover under a name of its own, for #if and for assembly. */
static void write_crossovers(FILE *out, const struct pc_table *table)
{
	char name[TEXT], word[IDENTIFIER];

	table_name(table, true, name);
	for (size_t i = 1; i < table->rule_count; i++) {
		const struct pc_rule *rule = &table->rules[i];

		fprintf(out, "#define PAGECLEAR_TABLE_%s_FROM_%zu %" PRIu64 "ull /* %s:", name, i, rule->from,
		        identifier(rule->kernel, word));
		write_evidence(out, rule);
		fputs(" */\n", out);
	}
}

/* Chunks as the library takes them: below a page the calls themselves cost. */
static void write_rules(FILE *out, const struct pc_table *table)
{
	char name[TEXT], word[IDENTIFIER];

	fputc('\n', out);
	write_crossovers(out, table);
	table_name(table, false, name);
	fprintf(out, "static const struct pageclear_table_rule pageclear_table_%s[%zu] = {\n", name, table->rule_count);
	for (size_t i = 0; i < table->rule_count; i++) {
		const struct pc_rule *rule = &table->rules[i];
		uint64_t chunk = rule->chunk > 0 && rule->chunk < PC_CHUNK_LEAST ? PC_CHUNK_LEAST : rule->chunk;

		fprintf(out, "\t{%" PRIu64 "ull, %" PRIu64 "ull, PAGECLEAR_TABLE_KERNEL_%s},\n", rule->from, chunk,
		        identifier(rule->kernel, word));
	}
	fputs("};\n", out);
}

static void write_tables(FILE *out, const struct pc_document *document)
{
	fputs("\n/* Ends with one that has no rules. */\nstatic const struct pageclear_table pageclear_tables[] = {\n",
	      out);
	for (size_t t = 0; t < document->table_count; t++) {
		const struct pc_table *table = &document->tables[t];
		char name[TEXT];

		table_name(table, false, name);
		fprintf(out, "\t{%u, %u, %u, %zu, pageclear_table_%s},\n", table->intent, (unsigned)table->prior,
		        table->threads, table->rule_count, name);
	}
	fputs("\t{0, 0, 0, 0, 0}\n};\n", out);
}

static const char lookup[] =
	"\n/* The rule for len bytes: of the fewest measured threads from `threads` up, else of the most; 0 where no "
	"table\n"
	" * serves, which means libc's memset, whole. */\n"
	"static inline const struct pageclear_table_rule *pageclear_table_choose(unsigned intent, unsigned prior,\n"
	"\t\t\t\t\t\t\t\t\tunsigned threads, unsigned long long len)\n"
	"{\n"
	"\tconst struct pageclear_table *table, *best = 0;\n"
	"\tunsigned i;\n\n"
	"\tfor (table = pageclear_tables; table->count != 0; table++) {\n"
	"\t\tif (table->intent != intent || table->prior != prior)\n"
	"\t\t\tcontinue;\n"
	"\t\tif (best == 0 || (best->threads < threads ? table->threads > best->threads\n"
	"\t\t\t\t\t\t\t: table->threads >= threads && table->threads < best->threads))\n"
	"\t\t\tbest = table;\n"
	"\t}\n"
	"\tif (best == 0)\n"
	"\t\treturn 0;\n"
	"\tfor (i = 0; i + 1 < best->count && len >= best->rules[i + 1].from; i++)\n"
	"\t\t;\n"
	"\treturn &best->rules[i];\n"
	"}\n\n"
	"#endif\n";

enum outcome emit_c_header(struct emit *emit)
{
	static struct names names;
	const struct pc_document *document = emit->subject.document;

	if (emit->subject.foreign)
		emit_note(emit, "not of this host: %s", emit->subject.verdict.text);
	collect(&names, document);
	write_head(emit->out, document);
	write_facts(emit->out, document);
	write_kernels(emit->out, &names);
	fputs(types, emit->out);
	for (size_t t = 0; t < document->table_count; t++)
		write_rules(emit->out, &document->tables[t]);
	write_tables(emit->out, document);
	fputs(lookup, emit->out);
	return DONE;
}
