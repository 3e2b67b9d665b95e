-- What came before a verification and a publication, whatever the clocks said; and what a verification found the policy
-- good for: software that changed after it was measured.

ALTER TABLE verification ADD COLUMN soft TEXT;

-- The newest calibration then; 0: none.
ALTER TABLE verification ADD COLUMN newest INTEGER NOT NULL DEFAULT 0 CHECK (newest >= 0);
ALTER TABLE published ADD COLUMN newest INTEGER NOT NULL DEFAULT 0 CHECK (newest >= 0);
UPDATE verification SET newest = coalesce((SELECT max(c.id) FROM calibration c WHERE c.finished <= verification.at), 0);
UPDATE published SET newest = coalesce((SELECT max(c.id) FROM calibration c WHERE c.finished <= published.at), 0);
