/* One database taken into another; see store_absorb.h. The only SQL that names a second database. */
#include "calibrd/store_absorb.h"

#include <errno.h>

#include "calibrd/store_internal.h"

/* Inside a transaction. A calibration is known by when it began and ended, what it was of and how it went: times alone
 * would not do on hosts whose clock begins anew with each boot. */
static const char script[] =
	"CREATE TEMP TABLE moved AS "
	"WITH pair AS (SELECT o.id AS old, (SELECT min(h.id) FROM main.calibration h WHERE h.topology = o.topology "
	"AND h.state = o.state AND h.effort = o.effort AND h.version = o.version AND h.started = o.started "
	"AND h.finished = o.finished AND h.reasons IS o.reasons AND h.surroundings IS o.surroundings) AS same FROM "
	"other.calibration o WHERE o.state <> 'running') "
	"SELECT old, coalesce(same, (SELECT coalesce(max(id), 0) FROM main.calibration) "
	"+ row_number() OVER (PARTITION BY same IS NULL ORDER BY old)) AS new, same IS NULL AS fresh FROM pair;"

	"CREATE TEMP TABLE checked AS "
	"SELECT o.id AS old, (SELECT coalesce(max(id), 0) FROM main.verification) + row_number() OVER (ORDER BY o.id) "
	"AS new FROM other.verification o WHERE NOT EXISTS (SELECT 1 FROM main.verification h "
	"WHERE h.topology = o.topology AND h.effort = o.effort AND h.at = o.at AND h.passed = o.passed);"

	"INSERT INTO main.topology (id, arch, name, key, raw) "
	"SELECT id, arch, name, key, raw FROM other.topology WHERE true ON CONFLICT (id) DO NOTHING;"

	"INSERT INTO main.kernel (name, revision) "
	"SELECT name, revision FROM other.kernel WHERE true ON CONFLICT (name, revision) DO NOTHING;"

	"INSERT INTO main.calibration (id, topology, state, effort, quality, reasons, soft, version, started, "
	"finished, "
	"knee_bytes, faulted, probe_from, probe_lines, probe_slow_ns, surroundings) "
	"SELECT m.new, o.topology, o.state, o.effort, o.quality, o.reasons, o.soft, o.version, o.started, o.finished, "
	"o.knee_bytes, o.faulted, o.probe_from, o.probe_lines, o.probe_slow_ns, o.surroundings "
	"FROM other.calibration o JOIN temp.moved m ON m.old = o.id WHERE m.fresh ORDER BY m.new;"

	"INSERT INTO main.series (calibration, op, phase, prior, threads, page, node, bytes, chunk, direction, kernel, "
	"number, n, tainted, median, mad, least) "
	"SELECT m.new, o.op, o.phase, o.prior, o.threads, o.page, o.node, o.bytes, o.chunk, o.direction, "
	"(SELECT h.id FROM main.kernel h JOIN other.kernel k USING (name, revision) WHERE k.id = o.kernel), "
	"o.number, o.n, o.tainted, o.median, o.mad, o.least "
	"FROM other.series o JOIN temp.moved m ON m.old = o.calibration WHERE m.fresh;"

	"INSERT INTO main.rounds (calibration, number, rounds) "
	"SELECT m.new, o.number, o.rounds FROM other.rounds o JOIN temp.moved m ON m.old = o.calibration WHERE m.fresh;"

	/* Before the publications: a number that is free here is the other's alone. */
	"INSERT INTO main.verification (id, generation, topology, effort, at, passed, against, soft, newest) "
	"SELECT c.new, CASE WHEN EXISTS (SELECT 1 FROM main.published h JOIN other.published p USING (generation) "
	"WHERE generation = o.generation AND h.hash <> p.hash) THEN 0 ELSE o.generation END, "
	"o.topology, o.effort, o.at, o.passed, o.against, o.soft, "
	"coalesce((SELECT max(new) FROM temp.moved WHERE old <= o.newest), 0) "
	"FROM other.verification o JOIN temp.checked c ON c.old = o.id ORDER BY c.new;"

	"INSERT INTO main.verified (verification, intent, prior, sizes, mean, p95, worst, worst_bytes, floor, "
	"floor_p95, "
	"gain, best_gain, unhinted, against, passed) "
	"SELECT c.new, o.intent, o.prior, o.sizes, o.mean, o.p95, o.worst, o.worst_bytes, o.floor, o.floor_p95, "
	"o.gain, o.best_gain, o.unhinted, o.against, o.passed "
	"FROM other.verified o JOIN temp.checked c ON c.old = o.verification;"

	"INSERT INTO main.published (generation, calibration, topology, source, at, yaml, hash, newest) "
	"SELECT o.generation, (SELECT new FROM temp.moved WHERE old = o.calibration), o.topology, o.source, o.at, "
	"o.yaml, o.hash, coalesce((SELECT max(new) FROM temp.moved WHERE old <= o.newest), 0) "
	"FROM other.published o WHERE o.generation NOT IN (SELECT generation FROM main.published);"

	"DROP TABLE temp.moved; DROP TABLE temp.checked;";

static int absorb(struct sql *sql, struct pc_why *why)
{
	int r = sql_begin(sql, why);

	if (r < 0)
		return r;
	r = sql_script(sql, script, why);
	if (r >= 0)
		r = sql_run(sql, FORGET_ROUNDS, NULL, why);
	return sql_end(sql, r < 0 ? r : 0, why);
}

int store_absorb(struct store *store, const char *path, struct pc_why *why)
{
	struct pc_why trouble;
	int r = sql_attach(store->sql, path, "other", why);

	if (r < 0)
		return r;
	r = absorb(store->sql, why);
	/* What was committed stays, whether or not the other can be let go of. */
	if (sql_script(store->sql, "DETACH other", &trouble) < 0 && r >= 0)
		return pc_why(why, -EIO, "%s", trouble.text);
	return r;
}
