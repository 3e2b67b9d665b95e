/*
 * Where the daemon's database is: at home, or, while home is missing, read-only or full, under /run, from where it goes
 * back once home works. So a host without a place for it measures at each boot, and no host loses what it knew.
 */
#ifndef CALIBRD_STORE_PLACE_H
#define CALIBRD_STORE_PLACE_H

#include <stdbool.h>

#include "calibrd/store.h"
#include "calibrd/store_file.h"

/* Only this home has a fallback: a path that somebody chose is used or refused. */
#define STORE_PLACE_HOME "/var/lib/pageclear/calibrd.db"
#define STORE_PLACE_FALLBACK "/run/pageclear/calibrd.db"

struct store_place {
	bool fallback;          /* it stands in now */
	char path[STORE_PATH];  /* of the database that is open */
	char home[STORE_PATH];  /* as configured */
	char spare[STORE_PATH]; /* "": no fallback */
};

/*
 * Opens the database for writing, as store_open() with STORE_WRITE. Returns >= 0 with *out: 0 at home; 1 at the
 * fallback, which then also knows what could be read of home. why->text is "" or what the log should say once: why the
 * fallback is used and what to do about it, what was brought home, or why it could not be.
 *
 * -errno with why where neither can be had, and without trying the fallback: what store_open() refuses for another
 * reason than a missing, read-only or full folder (-EBUSY, -EPROTONOSUPPORT, -EMEDIUMTYPE ...), also where home is
 * read-only besides. -EBUSY too while another process writes the fallback: one writer, wherever it writes.
 *
 * Where a database fails while it is open (store_place_reopens() of any store_ function's error) the caller closes
 * it and opens again: a damaged one is then set aside, a full one stood in for. Ids of calibrations don't outlive that.
 */
int store_place_open(struct store **out, struct store_place *place, const char *configured, char renamed[512],
                     struct pc_why *why);

/* The same between two given places; spare NULL: none. */
int store_place_between(struct store **out, struct store_place *place, const char *home, const char *spare,
                        char renamed[512], struct pc_why *why);

/* True for errors of store_ functions after which the caller closes the database and opens it again. */
bool store_place_reopens(int code);

/*
 * While the fallback stands in: home again, if it works now. 0: *store is home's, which has what both knew (see
 * store_absorb()), the fallback is removed, why->text is for the log. -errno with why: not yet, *store is as it was;
 * cheap enough to be asked every few minutes. Not while a calibration runs: its id is the fallback's. 0 at once with
 * "" where it is home already.
 */
int store_place_return(struct store **store, struct store_place *place, char renamed[512], struct pc_why *why);

#endif
