-- The first schema. One transaction; application_id and user_version are set beside it by the program.
-- Enumerations are words, so that the file can be read with sqlite3 alone. Times are seconds since 1970 UTC.

-- What a calibration is valid for: the hard facts as readable text, and the raw CPUID dump for replay.
CREATE TABLE topology (
	id    TEXT PRIMARY KEY NOT NULL CHECK (length(id) = 12 AND id NOT GLOB '*[^0-9a-f]*'),
	arch  TEXT NOT NULL,
	name  TEXT NOT NULL,
	key   TEXT NOT NULL,
	raw   TEXT
) STRICT;

CREATE TABLE kernel (
	id       INTEGER PRIMARY KEY,
	name     TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 15),
	revision INTEGER NOT NULL CHECK (revision >= 0),
	UNIQUE (name, revision)
) STRICT;

-- finished may lie before started: clocks are set while we measure.
CREATE TABLE calibration (
	id         INTEGER PRIMARY KEY,
	topology   TEXT NOT NULL REFERENCES topology (id),
	state      TEXT NOT NULL CHECK (state IN ('running', 'done', 'failed')),
	effort     TEXT NOT NULL CHECK (effort IN ('quick', 'standard', 'thorough')),
	quality    TEXT CHECK (quality IN ('good', 'noisy', 'emulated')),
	reasons    TEXT,
	soft       TEXT,
	version    TEXT NOT NULL,
	started    INTEGER NOT NULL CHECK (started > 0),
	finished   INTEGER CHECK (finished > 0),
	knee_bytes INTEGER NOT NULL DEFAULT 0 CHECK (knee_bytes >= 0),
	faulted    TEXT,
	-- What policy.yaml's probe says; 0: no probe.
	probe_from    INTEGER NOT NULL DEFAULT 0 CHECK (probe_from >= 0),
	probe_lines   INTEGER NOT NULL DEFAULT 0 CHECK (probe_lines >= 0),
	probe_slow_ns REAL NOT NULL DEFAULT 0 CHECK (probe_slow_ns >= 0),
	CHECK ((state = 'running') = (finished IS NULL)),
	CHECK (state <> 'done' OR quality IS NOT NULL)
) STRICT;

-- Kept for ever. node -1: whatever node the memory came from. number: counts the series of one calibration.
CREATE TABLE series (
	calibration INTEGER NOT NULL REFERENCES calibration (id),
	op          TEXT NOT NULL CHECK (op IN ('clear')),
	phase       TEXT NOT NULL CHECK (phase IN ('clear', 'read', 'single', 'victim-l1', 'victim-l2', 'victim-llc')),
	prior       TEXT NOT NULL CHECK (prior IN ('cached', 'flushed')),
	threads     INTEGER NOT NULL CHECK (threads BETWEEN 1 AND 65535),
	page        TEXT NOT NULL CHECK (page IN ('base', 'huge')),
	node        INTEGER NOT NULL CHECK (node >= -1),
	bytes       INTEGER NOT NULL CHECK (bytes > 0),
	chunk       INTEGER NOT NULL CHECK (chunk >= 0),
	kernel      INTEGER NOT NULL REFERENCES kernel (id),
	number      INTEGER NOT NULL CHECK (number >= 0),
	n           INTEGER NOT NULL CHECK (n BETWEEN 0 AND 16777216),
	tainted     INTEGER NOT NULL CHECK (tainted BETWEEN 0 AND 4294967295),
	median      REAL,
	mad         REAL CHECK (mad >= 0),
	least       REAL CHECK (least <= median),
	PRIMARY KEY (calibration, op, phase, prior, threads, page, node, bytes, chunk, kernel),
	CHECK ((n > 0) = (median IS NOT NULL AND mad IS NOT NULL AND least IS NOT NULL))
) STRICT, WITHOUT ROWID;

-- The samples themselves, kept for each topology's last three calibrations that are not noisy and last three that are:
-- a host that changes its shape now and then finds what it knew. calibrd/store_series.h has their format. A table of its
-- own, so that dropping them gives whole pages back.
CREATE TABLE rounds (
	calibration INTEGER NOT NULL REFERENCES calibration (id),
	number      INTEGER NOT NULL,
	rounds      BLOB NOT NULL,
	PRIMARY KEY (calibration, number)
) STRICT, WITHOUT ROWID;

-- Every policy ever written, word for word. An imported one needs neither a calibration nor a known topology.
CREATE TABLE published (
	generation  INTEGER PRIMARY KEY CHECK (generation > 0),
	calibration INTEGER REFERENCES calibration (id),
	topology    TEXT NOT NULL CHECK (length(topology) = 12 AND topology NOT GLOB '*[^0-9a-f]*'),
	source      TEXT NOT NULL CHECK (source IN ('calibration', 'rollback', 'import', 'restart')),
	at          INTEGER NOT NULL CHECK (at > 0),
	yaml        TEXT NOT NULL CHECK (length(yaml) > 0),
	hash        TEXT NOT NULL CHECK (length(hash) = 16)
) STRICT;
