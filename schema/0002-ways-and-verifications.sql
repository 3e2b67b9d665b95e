-- How an extent was walked, what else went on meanwhile, and verifications.

-- What else went on on the host while a calibration was made, name=value a line.
ALTER TABLE calibration ADD COLUMN surroundings TEXT;

-- The direction is part of the key, and a key cannot be added to: the table is built anew. Until now all went forward.
CREATE TABLE series_2 (
	calibration INTEGER NOT NULL REFERENCES calibration (id),
	op          TEXT NOT NULL CHECK (op IN ('clear')),
	phase       TEXT NOT NULL CHECK (phase IN ('clear', 'read', 'single', 'victim-l1', 'victim-l2', 'victim-llc')),
	prior       TEXT NOT NULL CHECK (prior IN ('cached', 'flushed')),
	threads     INTEGER NOT NULL CHECK (threads BETWEEN 1 AND 65535),
	page        TEXT NOT NULL CHECK (page IN ('base', 'huge')),
	node        INTEGER NOT NULL CHECK (node >= -1),
	bytes       INTEGER NOT NULL CHECK (bytes > 0),
	chunk       INTEGER NOT NULL CHECK (chunk >= 0),
	direction   TEXT NOT NULL CHECK (direction IN ('forward', 'backward')),
	kernel      INTEGER NOT NULL REFERENCES kernel (id),
	number      INTEGER NOT NULL CHECK (number >= 0),
	n           INTEGER NOT NULL CHECK (n BETWEEN 0 AND 16777216),
	tainted     INTEGER NOT NULL CHECK (tainted BETWEEN 0 AND 4294967295),
	median      REAL,
	mad         REAL CHECK (mad >= 0),
	least       REAL CHECK (least <= median),
	PRIMARY KEY (calibration, op, phase, prior, threads, page, node, bytes, chunk, direction, kernel),
	CHECK ((n > 0) = (median IS NOT NULL AND mad IS NOT NULL AND least IS NOT NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO series_2 (calibration, op, phase, prior, threads, page, node, bytes, chunk, direction, kernel, number, n, tainted,
	median, mad, least)
	SELECT calibration, op, phase, prior, threads, page, node, bytes, chunk, 'forward', kernel, number, n, tainted, median,
		mad, least FROM series;
DROP TABLE series;
ALTER TABLE series_2 RENAME TO series;

-- What a policy's choices cost at fresh sizes, next to the best kernel's. against: the library whose memset took part.
CREATE TABLE verification (
	id         INTEGER PRIMARY KEY,
	generation INTEGER NOT NULL CHECK (generation >= 0),
	topology   TEXT NOT NULL CHECK (length(topology) = 12 AND topology NOT GLOB '*[^0-9a-f]*'),
	effort     TEXT NOT NULL CHECK (effort IN ('quick', 'standard', 'thorough')),
	at         INTEGER NOT NULL CHECK (at > 0),
	passed     INTEGER NOT NULL CHECK (passed IN (0, 1)),
	against    TEXT
) STRICT;

-- Regret and floor are shares (0.02: 2 %), gains factors; all over the sizes of one intent and prior. NULL: not told.
CREATE TABLE verified (
	verification INTEGER NOT NULL REFERENCES verification (id),
	intent       TEXT NOT NULL CHECK (intent IN ('hot', 'cold', 'scrub')),
	prior        TEXT NOT NULL CHECK (prior IN ('unknown', 'cached', 'flushed')),
	sizes        INTEGER NOT NULL CHECK (sizes > 0),
	mean         REAL NOT NULL,
	p95          REAL NOT NULL,
	worst        REAL NOT NULL,
	worst_bytes  INTEGER NOT NULL CHECK (worst_bytes > 0),
	floor        REAL NOT NULL CHECK (floor >= 0),
	floor_p95    REAL NOT NULL CHECK (floor_p95 >= 0),
	gain         REAL NOT NULL CHECK (gain > 0),
	best_gain    REAL NOT NULL CHECK (best_gain > 0),
	unhinted     REAL CHECK (unhinted > 0),
	against      REAL CHECK (against > 0),
	passed       INTEGER NOT NULL CHECK (passed IN (0, 1)),
	PRIMARY KEY (verification, intent, prior)
) STRICT, WITHOUT ROWID;
