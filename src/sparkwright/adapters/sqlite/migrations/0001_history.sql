-- Times are seconds since the epoch; lists are JSON arrays. closed_at, serving_at: 0 while it is not so.
CREATE TABLE deployments (
  id INTEGER PRIMARY KEY,
  deployment TEXT NOT NULL,
  at REAL NOT NULL,
  recipe TEXT NOT NULL,
  recipe_hash TEXT NOT NULL,
  engine TEXT NOT NULL,
  nodes TEXT NOT NULL,
  by TEXT NOT NULL,
  simulated INTEGER NOT NULL,
  ended_at REAL NOT NULL DEFAULT 0,
  ended TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE incidents (
  number INTEGER PRIMARY KEY,
  deployment TEXT NOT NULL,
  kind TEXT NOT NULL,
  what TEXT NOT NULL,
  opened_at REAL NOT NULL,
  evidence TEXT NOT NULL,
  cause TEXT NOT NULL,
  code TEXT NOT NULL,
  fix TEXT NOT NULL,
  closed_at REAL NOT NULL,
  outcome TEXT NOT NULL,
  serving_at REAL NOT NULL,
  folder TEXT NOT NULL,
  simulated INTEGER NOT NULL
) STRICT;
-- A supervisor that was killed between opening one and remembering its number opens no second one.
CREATE UNIQUE INDEX one_open_incident ON incidents (deployment) WHERE closed_at = 0;
CREATE TABLE events (
  id INTEGER PRIMARY KEY,
  deployment TEXT NOT NULL,
  incident INTEGER REFERENCES incidents (number) ON DELETE CASCADE,
  at REAL NOT NULL,
  kind TEXT NOT NULL,
  text TEXT NOT NULL
) STRICT;
CREATE INDEX events_of_incident ON events (incident) WHERE incident IS NOT NULL;
