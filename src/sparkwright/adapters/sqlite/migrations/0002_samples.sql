-- A row a minute of the last day: what a deployment did and how its nodes were. at: the minute's beginning.
CREATE TABLE minutes (
  at INTEGER NOT NULL,
  deployment TEXT NOT NULL,
  state TEXT NOT NULL,
  serving REAL NOT NULL,
  decode REAL,
  prefill REAL,
  running REAL,
  kv REAL,
  PRIMARY KEY (at, deployment)
) STRICT, WITHOUT ROWID;
CREATE TABLE node_minutes (
  at INTEGER NOT NULL,
  deployment TEXT NOT NULL,
  node TEXT NOT NULL,
  available REAL,
  total REAL,
  temperature REAL,
  power REAL,
  PRIMARY KEY (at, deployment, node)
) STRICT, WITHOUT ROWID;
