-- Times are seconds since the epoch. workload, conditions, plan, lag, tags, doubts, data: JSON, as domain/codec.py
-- writes it. Columns beside them are for lists only.
CREATE TABLE runs (
  id TEXT PRIMARY KEY,
  began REAL NOT NULL,
  ended REAL NOT NULL,
  state TEXT NOT NULL,
  workload TEXT NOT NULL,
  conditions TEXT NOT NULL,
  tags TEXT NOT NULL,
  note TEXT NOT NULL,
  imported TEXT NOT NULL
) STRICT;
-- place: its order in the run. requests, errors: counted when it ended.
CREATE TABLE levels (
  key INTEGER PRIMARY KEY,
  run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  repeat INTEGER NOT NULL,
  plan TEXT NOT NULL,
  began REAL NOT NULL,
  seconds REAL NOT NULL,
  lag TEXT NOT NULL,
  scrapes BLOB NOT NULL,
  doubts TEXT NOT NULL,
  complete INTEGER NOT NULL,
  UNIQUE (run, name, repeat)
) STRICT;
-- data: what differs from an empty row; reads: packed, see packed_reads.py; failed: for counting.
CREATE TABLE requests (
  id INTEGER PRIMARY KEY,
  level INTEGER NOT NULL REFERENCES levels (key) ON DELETE CASCADE,
  failed INTEGER NOT NULL,
  data TEXT NOT NULL,
  reads BLOB
) STRICT;
CREATE INDEX requests_of_level ON requests (level, failed);
