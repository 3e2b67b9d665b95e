#include "calibctl/ledger.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "calibctl/words.h"
#include "calibrd/pool.h"

static const char nameless[] = "database: ";

static bool is_nameless(const struct pc_why *reason)
{
	return strncmp(reason->text, nameless, strlen(nameless)) == 0;
}

/* Some of the store's reasons name the path, others say "database: " in its place, and want of memory has none. */
int ledger_why(int r, const struct where *where, const struct pc_why *reason, struct pc_why *why)
{
	if (r == -ENOMEM || strstr(reason->text, where->database) != NULL)
		return pc_why(why, r, "%s", reason->text);
	return pc_why(why, r, "%s: %s", where->database, reason->text + (is_nameless(reason) ? strlen(nameless) : 0));
}

int ledger_why_mixed(int r, const struct where *where, const struct pc_why *reason, struct pc_why *why)
{
	return is_nameless(reason) ? ledger_why(r, where, reason, why) : pc_why(why, r, "%s", reason->text);
}

int ledger_open(struct store **out, const struct where *where, struct pc_why *why)
{
	struct pc_why reason = {""};

	if (where->database_source == WHERE_NOWHERE)
		return pc_why(why, 1, "no database: there is no %s", where->database);
	int r = store_open(out, where->database, STORE_READ, NULL, &reason);
	return r < 0 ? ledger_why(r, where, &reason, why) : 0;
}

static int load(struct store *store, const char *topology, struct calibration *out, struct dataset *data,
                struct pc_why *why)
{
	int r = store_latest(store, topology, out, why);

	if (r == 1)
		return pc_why(why, 1, "no finished calibration%s%s", topology == NULL ? "" : " of topology ",
		              topology == NULL ? "" : topology);
	if (r < 0 || data == NULL)
		return r;
	r = pool_read(data, store, out, why);
	if (r < 0)
		store_calibration_free(out);
	return r;
}

int ledger_latest(const struct where *where, const char *topology, struct calibration *out, struct dataset *data,
                  struct pc_why *why)
{
	struct pc_why reason = {""};
	struct store *store = NULL;
	int r = ledger_open(&store, where, why);

	if (r != 0)
		return r;
	r = load(store, topology, out, data, &reason);
	store_close(store);
	return r != 0 ? ledger_why(r, where, &reason, why) : 0;
}

/* "7, 1-5": the newest ones, as many as there is room for. */
static void list_generations(const struct published *list, size_t count, char *out, size_t size)
{
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && list[end].generation + 1 == list[end - 1].generation; end++)
			;
		if (strlen(out) + 48 > size) {
			words_append(out, size, ", ...");
			return;
		}
		words_append(out, size, "%s%" PRIu64, i > 0 ? ", " : "", list[end - 1].generation);
		if (end - i > 1)
			words_append(out, size, "-%" PRIu64, list[i].generation);
	}
}

int ledger_lacks(struct store *store, const struct where *where, uint64_t generation, struct pc_why *why)
{
	struct published *list = NULL;
	struct pc_why reason;
	char there[160] = "";
	size_t count = 0;
	int r = store_publications(store, SIZE_MAX, &list, &count, &reason);

	if (r < 0)
		return ledger_why(r, where, &reason, why);
	list_generations(list, count, there, sizeof(there));
	free(list);
	if (count == 0)
		return pc_why(why, 1, "there is no generation %" PRIu64 ": nothing was published yet", generation);
	return pc_why(why, 1, "there is no generation %" PRIu64 "; there are %s", generation, there);
}
