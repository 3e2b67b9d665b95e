#include "calibctl/subject.h"

#include <errno.h>
#include <string.h>

#include "calibctl/output.h"
#include "calibctl/words.h"
#include "libpolicy/policy.h"

static int nothing(struct subject *out)
{
	if (where_is_off(&out->where))
		return pc_why(&out->verdict, 1, "$PAGECLEAR_POLICY is `builtin`: no policy file is in use");
	return pc_why(&out->verdict, 1,
	              "none in /run/pageclear or /etc/pageclear. `systemctl start calibrd` measures this host, "
	              "`make calibrate` does in a source tree");
}

/* The library's own check, so that both say the same. */
static int judge(struct subject *out, struct pc_why *why)
{
	struct pageclear_policy *policy = NULL;
	int r = pc_policy_load(&policy, out->where.policy, &out->verdict);

	pageclear_policy_close(policy);
	out->foreign = r == -ESTALE;
	return r == 0 || out->foreign ? 0 : pc_why(why, r, "%s: %s", out->where.policy, out->verdict.text);
}

int subject_open(struct subject *out, const struct calibctl *ctl, struct pc_why *why)
{
	struct pc_why reason;

	memset(out, 0, sizeof(*out));
	where_here(&out->where, ctl);
	if (out->where.policy_source == WHERE_NOWHERE || where_is_off(&out->where))
		return nothing(out);
	int r = pc_document_read(&out->document, out->where.policy, &reason);
	if (r < 0)
		return pc_why(why, r, "%s: %s (from %s)", out->where.policy, reason.text,
		              where_policy_origin(&out->where));
	return judge(out, why);
}

enum outcome subject_try(struct subject *out, const struct calibctl *ctl)
{
	struct pc_why why;

	if (subject_open(out, ctl, &why) >= 0)
		return DONE;
	subject_close(out);
	pc_why_say(&out->verdict, "cannot be read");
	return output_failed(&why);
}

void subject_close(struct subject *subject)
{
	subject->document = pc_document_free(subject->document);
}

bool subject_age(const struct subject *subject, int64_t *seconds)
{
	int64_t written;

	if (words_parse_time(subject->document->written, &written) < 0)
		return false;
	*seconds = output_now() - written;
	return true;
}

void subject_print_path(const struct subject *subject)
{
	output_field("policy", "%s (%s)", subject->where.policy, where_policy_origin(&subject->where));
}

json_t *subject_json(const struct subject *subject)
{
	const struct pc_document *document = subject->document;
	int64_t age;

	if (document == NULL)
		return json_null();
	return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "path",
	                 output_json_text(subject->where.policy), "origin", where_policy_origin(&subject->where),
	                 "generation", output_json_bytes(document->generation), "version",
	                 output_json_text(document->version), "written", output_json_text(document->written),
	                 "age_seconds", subject_age(subject, &age) ? json_integer(age) : json_null(), "quality",
	                 output_json_text(document->quality), "topology", output_json_text(document->topology),
	                 "foreign", subject->foreign ? output_json_text(subject->verdict.text) : json_null());
}

enum outcome subject_judge(const struct subject *subject)
{
	struct pc_why text;

	if (!subject->foreign)
		return DONE;
	pc_why_say(&text, "not for this host: %s. The library does not use it here.", subject->verdict.text);
	output_warning(text.text);
	return PROBLEM;
}

enum outcome subject_missing(const struct subject *subject, int r, const struct pc_why *why)
{
	struct pc_why text;

	if (r < 0)
		return output_failed(why);
	pc_why_say(&text, "no policy: %s", subject->verdict.text);
	return output_failed(&text);
}
