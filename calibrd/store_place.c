/* Home or its fallback; see store_place.h. */
#include "calibrd/store_place.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "calibrd/store_absorb.h"
#include "calibrd/store_migrate.h"

/* What stands in the way of home that the fallback can do without. */
static bool may_stand_in(int code)
{
	switch (-code) {
	case ENOENT:
	case ENOTDIR:
	case EROFS:
	case EACCES:
	case EPERM:
	case ENOSPC:
	case EDQUOT:
		return true;
	default:
		return false;
	}
}

bool store_place_reopens(int code)
{
	return may_stand_in(code) || code == -EUCLEAN || code == -ESTALE || code == -EIO;
}

static const char *remedy(int code)
{
	switch (-code) {
	case ENOENT:
	case ENOTDIR:
		return "make its folder";
	case ENOSPC:
	case EDQUOT:
		return "make room there";
	default:
		return "let it be written there, or name another place in calibrd.yaml";
	}
}

static void say_stands_in(const struct store_place *place, int code, const char *reason, bool known, struct pc_why *why)
{
	pc_why_say(why, "%.90s: measurements are kept in %.40s till the next boot%s; %s", reason, place->spare,
	           known ? "" : ", without those of before", remedy(code));
}

/* --- between the two --------------------------------------------------------------------------------------------- */

/* An open store takes in a database that is not; then that one is removed. Both locks are held. */
static int bring(struct store *home, const char *spare, char damaged[512], struct pc_why *why)
{
	struct store *from = NULL;
	int r = store_open(&from, spare, STORE_WRITE, damaged, why);

	if (r == 0)
		r = store_absorb(home, spare, why);
	if (r == 0)
		r = store_file_remove(spare, why);
	store_close(from);
	return r;
}

static void say_brought(const struct store_place *place, struct pc_why *why)
{
	pc_why_say(why, "%.100s can be written: what %.40s held was brought there", place->home, place->spare);
}

/* Home is open. What the fallback still holds comes from a process that ended before it could bring it. */
static int take_leftover(struct store *home, const struct store_place *place, struct pc_why *why)
{
	struct pc_why reason;
	char damaged[512];

	if (place->spare[0] == '\0' || access(place->spare, F_OK) < 0)
		return 0;
	int r = bring(home, place->spare, damaged, &reason);
	if (r == -EBUSY)
		return pc_why(why, r, "%s", reason.text);
	if (r < 0)
		pc_why_say(why, "%.40s is left as it is, and its measurements unused: %.180s", place->spare,
		           reason.text);
	else if (damaged[0] != '\0')
		pc_why_say(why, "%.40s was damaged: it is kept as %.60s", place->spare, damaged);
	else
		say_brought(place, why);
	return 0;
}

/* What can be read of home saves measuring anew; if nothing can, no more than that is lost. False: there is something,
 * but it can't be read. */
static bool seed(struct store *spare, const struct store_place *place)
{
	struct store *home = NULL;
	struct pc_why unread;
	int r = store_open(&home, place->home, STORE_READ, NULL, &unread);

	if (r == 0)
		r = store_absorb(spare, place->home, &unread);
	store_close(home);
	return r == 0 || r == -ENOENT || r == -ENOTDIR;
}

/* --- opening ----------------------------------------------------------------------------------------------------- */

static int open_home(struct store **out, const struct store_place *place, char renamed[512], struct pc_why *why)
{
	struct store *store = NULL;
	char real[STORE_PATH]; /* where a link leads, there must be room */
	int r = store_open(&store, place->home, STORE_WRITE, renamed, why);

	if (r == 0 && place->spare[0] != '\0')
		r = store_file_locate(real, place->home, 0, why);
	if (r == 0 && place->spare[0] != '\0')
		r = store_file_room(real, why);
	if (r < 0) {
		store_close(store);
		return r;
	}
	*out = store;
	return 0;
}

/* A home that may not be written is still looked at: another program's and a newer version's are refused everywhere. */
static int refuse_foreign(const struct store_place *place, struct pc_why *why)
{
	struct pc_why reason;
	unsigned schema, newest = store_migrations[store_migration_count - 1].number;
	int r = store_file_identify(place->home, newest, &schema, &reason);

	return r == -EMEDIUMTYPE || r == -EPROTONOSUPPORT ? pc_why(why, r, "%s", reason.text) : 0;
}

static int stand_in(struct store **out, struct store_place *place, int code, char renamed[512], struct pc_why *why)
{
	struct pc_why reason = *why, trouble;
	char damaged[512] = "";
	int r = refuse_foreign(place, why);

	if (r < 0)
		return r;
	r = store_open(out, place->spare, STORE_WRITE, damaged, &trouble);
	if (renamed[0] == '\0') /* home's own goes before */
		strcpy(renamed, damaged);
	if (r == -EBUSY)
		return pc_why(why, r, "%s", trouble.text);
	if (r < 0)
		return pc_why(why, code, "%.120s; nor can it be in its stead: %.100s", reason.text, trouble.text);
	place->fallback = true;
	strcpy(place->path, place->spare);
	say_stands_in(place, code, reason.text, seed(*out, place), why);
	return 1;
}

static int set_place(struct store_place *place, const char *home, const char *spare, struct pc_why *why)
{
	*place = (struct store_place){0};
	if (strlen(home) >= sizeof(place->home))
		return pc_why(why, -ENAMETOOLONG, "%.64s...: the name is longer than SQLite allows", home);
	strcpy(place->home, home);
	strcpy(place->path, home);
	if (spare != NULL)
		snprintf(place->spare, sizeof(place->spare), "%s", spare);
	return 0;
}

int store_place_between(struct store **out, struct store_place *place, const char *home, const char *spare,
                        char renamed[512], struct pc_why *why)
{
	struct store *store = NULL;
	int r = set_place(place, home, spare, why);

	if (r < 0)
		return r;
	why->text[0] = '\0';
	r = open_home(&store, place, renamed, why);
	if (r == 0)
		r = take_leftover(store, place, why);
	else if (place->spare[0] != '\0' && may_stand_in(r))
		r = stand_in(&store, place, r, renamed, why);
	if (r < 0) {
		store_close(store);
		return r;
	}
	*out = store;
	return r;
}

int store_place_open(struct store **out, struct store_place *place, const char *configured, char renamed[512],
                     struct pc_why *why)
{
	bool installed = strcmp(configured, STORE_PLACE_HOME) == 0;

	return store_place_between(out, place, configured, installed ? STORE_PLACE_FALLBACK : NULL, renamed, why);
}

int store_place_return(struct store **store, struct store_place *place, char renamed[512], struct pc_why *why)
{
	struct store *home = NULL;

	why->text[0] = renamed[0] = '\0';
	if (!place->fallback)
		return 0;
	int r = open_home(&home, place, renamed, why);
	if (r == 0)
		r = store_absorb(home, place->spare, why);
	if (r < 0) {
		store_close(home);
		return r;
	}
	/* All of it is home now: what can't be removed is found to be there already by whoever opens it next. */
	int removed = store_file_remove(place->spare, why);
	store_close(*store);
	*store = home;
	place->fallback = false;
	strcpy(place->path, place->home);
	if (removed == 0)
		say_brought(place, why);
	return 0;
}
