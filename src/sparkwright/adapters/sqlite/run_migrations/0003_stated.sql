-- Of an imported level whose tool prints figures and not requests: JSON of domain/run.py Stated and Totals, '' without.
ALTER TABLE levels ADD COLUMN stated TEXT NOT NULL DEFAULT '';
ALTER TABLE levels ADD COLUMN totals TEXT NOT NULL DEFAULT '';
