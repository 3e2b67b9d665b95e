/* All SQL but the schema's own: one row a statement, one table of members a record. */
#include "calibrd/store_internal.h"

#define FIELD SQL_FIELD
#define END                                                                                                            \
	{                                                                                                              \
		NULL, SQL_SIGNED, 0, 0                                                                                 \
	}

static const struct sql_field topology_fields[] = {
	FIELD(struct topology_row, id, "id", SQL_STRING),     FIELD(struct topology_row, arch, "arch", SQL_STRING),
	FIELD(struct topology_row, name, "name", SQL_STRING), FIELD(struct topology_row, key, "key", SQL_STRING),
	FIELD(struct topology_row, raw, "raw", SQL_STRING),   END,
};

static const struct sql_field kernel_fields[] = {
	FIELD(struct kernel_row, name, "name", SQL_STRING),
	FIELD(struct kernel_row, revision, "revision", SQL_UNSIGNED),
	END,
};

static const struct sql_field calibration_fields[] = {
	FIELD(struct calibration_row, c.id, "id", SQL_SIGNED),
	FIELD(struct calibration_row, c.topology, "topology", SQL_CHARS),
	FIELD(struct calibration_row, c.effort, "effort", SQL_CHARS),
	FIELD(struct calibration_row, c.quality, "quality", SQL_CHARS),
	FIELD(struct calibration_row, c.reasons, "reasons", SQL_STRING),
	FIELD(struct calibration_row, c.soft, "soft", SQL_STRING),
	FIELD(struct calibration_row, c.started, "started", SQL_SIGNED),
	FIELD(struct calibration_row, c.finished, "finished", SQL_SIGNED),
	FIELD(struct calibration_row, c.knee_bytes, "knee_bytes", SQL_UNSIGNED),
	FIELD(struct calibration_row, c.faulted, "faulted", SQL_STRING),
	FIELD(struct calibration_row, c.surroundings, "surroundings", SQL_STRING),
	FIELD(struct calibration_row, c.probe_from, "probe_from", SQL_UNSIGNED),
	FIELD(struct calibration_row, c.probe_lines, "probe_lines", SQL_UNSIGNED),
	FIELD(struct calibration_row, c.probe_slow_ns, "probe_slow_ns", SQL_DOUBLE),
	FIELD(struct calibration_row, wanted, "wanted", SQL_STRING),
	FIELD(struct calibration_row, version, "version", SQL_STRING),
	FIELD(struct calibration_row, state, "state", SQL_CHARS),
	FIELD(struct calibration_row, most, "most", SQL_UNSIGNED),
	END,
};

static const struct sql_field series_fields[] = {
	FIELD(struct series_row, calibration, "calibration", SQL_SIGNED),
	FIELD(struct series_row, key.bytes, "bytes", SQL_UNSIGNED),
	FIELD(struct series_row, key.chunk, "chunk", SQL_UNSIGNED),
	FIELD(struct series_row, key.threads, "threads", SQL_UNSIGNED),
	FIELD(struct series_row, kernel, "kernel", SQL_CHARS),
	FIELD(struct series_row, revision, "revision", SQL_UNSIGNED),
	FIELD(struct series_row, phase, "phase", SQL_CHARS),
	FIELD(struct series_row, prior, "prior", SQL_CHARS),
	FIELD(struct series_row, page, "page", SQL_CHARS),
	FIELD(struct series_row, direction, "direction", SQL_CHARS),
	FIELD(struct series_row, number, "number", SQL_UNSIGNED),
	FIELD(struct series_row, n, "n", SQL_UNSIGNED),
	FIELD(struct series_row, tainted, "tainted", SQL_UNSIGNED),
	FIELD(struct series_row, median, "median", SQL_DOUBLE),
	FIELD(struct series_row, mad, "mad", SQL_DOUBLE),
	FIELD(struct series_row, least, "least", SQL_DOUBLE),
	FIELD(struct series_row, rounds, "rounds", SQL_BYTES),
	END,
};

static const struct sql_field published_fields[] = {
	FIELD(struct published_row, p.generation, "generation", SQL_UNSIGNED),
	FIELD(struct published_row, p.calibration, "calibration", SQL_SIGNED),
	FIELD(struct published_row, p.at, "at", SQL_SIGNED),
	FIELD(struct published_row, p.newest, "newest", SQL_SIGNED),
	FIELD(struct published_row, p.source, "source", SQL_CHARS),
	FIELD(struct published_row, p.topology, "topology", SQL_CHARS),
	FIELD(struct published_row, p.yaml, "yaml", SQL_STRING),
	FIELD(struct published_row, wanted, "wanted", SQL_STRING),
	FIELD(struct published_row, hash, "hash", SQL_CHARS),
	FIELD(struct published_row, most, "most", SQL_UNSIGNED),
	END,
};

static const struct sql_field verification_fields[] = {
	FIELD(struct verification_row, v.id, "id", SQL_SIGNED),
	FIELD(struct verification_row, v.generation, "generation", SQL_UNSIGNED),
	FIELD(struct verification_row, v.topology, "topology", SQL_CHARS),
	FIELD(struct verification_row, v.effort, "effort", SQL_CHARS),
	FIELD(struct verification_row, v.at, "at", SQL_SIGNED),
	FIELD(struct verification_row, v.newest, "newest", SQL_SIGNED),
	FIELD(struct verification_row, v.against, "against", SQL_STRING),
	FIELD(struct verification_row, v.soft, "soft", SQL_STRING),
	FIELD(struct verification_row, passed, "passed", SQL_SIGNED),
	FIELD(struct verification_row, most, "most", SQL_UNSIGNED),
	END,
};

static const struct sql_field verified_fields[] = {
	FIELD(struct verified_row, verification, "verification", SQL_SIGNED),
	FIELD(struct verified_row, intent, "intent", SQL_CHARS),
	FIELD(struct verified_row, prior, "prior", SQL_CHARS),
	FIELD(struct verified_row, v.sizes, "sizes", SQL_UNSIGNED),
	FIELD(struct verified_row, v.mean, "mean", SQL_DOUBLE),
	FIELD(struct verified_row, v.p95, "p95", SQL_DOUBLE),
	FIELD(struct verified_row, v.worst, "worst", SQL_DOUBLE),
	FIELD(struct verified_row, v.worst_bytes, "worst_bytes", SQL_UNSIGNED),
	FIELD(struct verified_row, v.floor, "floor", SQL_DOUBLE),
	FIELD(struct verified_row, v.floor_p95, "floor_p95", SQL_DOUBLE),
	FIELD(struct verified_row, v.gain, "gain", SQL_DOUBLE),
	FIELD(struct verified_row, v.best_gain, "best_gain", SQL_DOUBLE),
	FIELD(struct verified_row, v.unhinted, "unhinted", SQL_DOUBLE),
	FIELD(struct verified_row, v.against, "against", SQL_DOUBLE),
	FIELD(struct verified_row, passed, "passed", SQL_SIGNED),
	END,
};

#define CALIBRATION_COLUMNS                                                                                            \
	"SELECT id, topology, state, effort, quality, reasons, soft, started, finished, knee_bytes, faulted, "         \
	"surroundings, probe_from, probe_lines, probe_slow_ns FROM calibration "
/* Whatever clocks say, this came before. */
#define NEWEST "(SELECT coalesce(max(id), 0) FROM calibration)"

#define PUBLISHED_COLUMNS "SELECT generation, calibration, at, newest, source, topology, yaml, hash FROM published "

/* clang-format off */
const struct sql_statement store_statements[STATEMENTS] = {
	[SAVE_TOPOLOGY] = {
		"INSERT INTO topology (id, arch, name, key, raw) VALUES (:id, :arch, :name, :key, :raw) "
		"ON CONFLICT (id) DO UPDATE SET raw = coalesce(excluded.raw, raw), name = excluded.name",
		topology_fields},
	[LOAD_TOPOLOGY] = {"SELECT key, raw FROM topology WHERE id = :id", topology_fields},
	[SAVE_KERNEL] = {
		"INSERT INTO kernel (name, revision) VALUES (:name, :revision) ON CONFLICT (name, revision) DO NOTHING",
		kernel_fields},
	[BEGIN_CALIBRATION] = {
		"INSERT INTO calibration (topology, state, effort, soft, version, started) "
		"VALUES (:topology, 'running', :effort, :soft, :version, :started) RETURNING id",
		calibration_fields},
	[END_CALIBRATION] = {
		"UPDATE calibration SET state = :state, quality = nullif(:quality, ''), reasons = :reasons, "
		"finished = :finished, knee_bytes = :knee_bytes, faulted = :faulted, surroundings = :surroundings, "
		"probe_from = :probe_from, probe_lines = :probe_lines, probe_slow_ns = :probe_slow_ns "
		"WHERE id = :id AND state = 'running' RETURNING id",
		calibration_fields},
	[FAULT_CALIBRATION] = {"UPDATE calibration SET faulted = :faulted WHERE id = :id RETURNING id", calibration_fields},
	[FAIL_INTERRUPTED] = {
		"UPDATE calibration SET state = 'failed', reasons = :reasons, finished = :finished WHERE state = 'running'",
		calibration_fields},
	[LOAD_LATEST] = {
		CALIBRATION_COLUMNS "WHERE state = 'done' AND (:wanted IS NULL OR topology = :wanted) "
		"ORDER BY quality = 'noisy', id DESC LIMIT 1",
		calibration_fields},
	[LOAD_CALIBRATION] = {CALIBRATION_COLUMNS "WHERE id = :id", calibration_fields},
	[LIST_CALIBRATIONS] = {CALIBRATION_COLUMNS "ORDER BY id DESC LIMIT :most", calibration_fields},
	[SAVE_SERIES] = {
		"INSERT INTO series (calibration, op, phase, prior, threads, page, node, bytes, chunk, direction, kernel, "
		"number, n, tainted, median, mad, least) "
		"VALUES (:calibration, 'clear', :phase, :prior, :threads, :page, -1, :bytes, :chunk, :direction, "
		"(SELECT id FROM kernel WHERE name = :kernel AND revision = :revision), :number, "
		":n, :tainted, :median, :mad, :least)",
		series_fields},
	[SAVE_ROUNDS] = {
		"INSERT INTO rounds (calibration, number, rounds) VALUES (:calibration, :number, :rounds)",
		series_fields},
	[FORGET_ROUNDS] = {
		"DELETE FROM rounds WHERE calibration NOT IN "
		"(SELECT id FROM (SELECT id, row_number() OVER "
		"(PARTITION BY topology, quality = 'noisy' ORDER BY id DESC) AS age FROM calibration WHERE state = 'done') "
		"WHERE age <= 3)",
		series_fields},
	[LOAD_SERIES] = {
		"SELECT phase, prior, threads, page, bytes, chunk, direction, kernel.name AS kernel, "
		"n, tainted, median, mad, least, rounds.rounds AS rounds "
		"FROM series JOIN kernel ON kernel.id = series.kernel "
		"LEFT JOIN rounds ON rounds.calibration = series.calibration AND rounds.number = series.number "
		"WHERE series.calibration = :calibration AND op = 'clear' AND node = -1",
		series_fields},
	[SAVE_PUBLISHED] = {
		"INSERT INTO published (generation, calibration, topology, source, at, yaml, hash, newest) "
		"VALUES (:generation, nullif(:calibration, 0), :topology, :source, :at, :yaml, :hash, " NEWEST ")",
		published_fields},
	[RETRACT_PUBLISHED] = {"DELETE FROM published WHERE generation = :generation", published_fields},
	[LOAD_PUBLISHED] = {
		PUBLISHED_COLUMNS "WHERE :wanted IS NULL OR topology = :wanted ORDER BY generation DESC LIMIT 1",
		published_fields},
	[LOAD_GENERATION] = {PUBLISHED_COLUMNS "WHERE generation = :generation", published_fields},
	[LIST_PUBLISHED] = {
		"SELECT generation, calibration, at, newest, source, topology FROM published ORDER BY generation DESC LIMIT :most",
		published_fields},
	[SAVE_VERIFICATION] = {
		"INSERT INTO verification (generation, topology, effort, at, passed, against, soft, newest) "
		"VALUES (:generation, :topology, :effort, :at, :passed, :against, :soft, " NEWEST ") RETURNING id",
		verification_fields},
	[SAVE_VERIFIED] = {
		"INSERT INTO verified (verification, intent, prior, sizes, mean, p95, worst, worst_bytes, floor, floor_p95, "
		"gain, best_gain, unhinted, against, passed) "
		"VALUES (:verification, :intent, :prior, :sizes, :mean, :p95, :worst, :worst_bytes, :floor, :floor_p95, "
		":gain, :best_gain, :unhinted, :against, :passed)",
		verified_fields},
	[LIST_VERIFICATIONS] = {
		"SELECT id, generation, topology, effort, at, newest, passed, against, soft FROM verification ORDER BY id DESC LIMIT :most",
		verification_fields},
	[LOAD_VERIFIED] = {
		"SELECT intent, prior, sizes, mean, p95, worst, worst_bytes, floor, floor_p95, gain, best_gain, unhinted, "
		"against, passed FROM verified WHERE verification = :verification ORDER BY intent, prior",
		verified_fields},
};
