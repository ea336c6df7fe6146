-- The outage by the clock since boot, which nobody sets; '' and 0 for incidents of before.
ALTER TABLE incidents ADD COLUMN boot_node TEXT NOT NULL DEFAULT '';
ALTER TABLE incidents ADD COLUMN boot TEXT NOT NULL DEFAULT '';
ALTER TABLE incidents ADD COLUMN began_up REAL NOT NULL DEFAULT 0;
ALTER TABLE incidents ADD COLUMN away_seconds REAL NOT NULL DEFAULT 0;
ALTER TABLE incidents ADD COLUMN away_word TEXT NOT NULL DEFAULT '';
