"""The last day in the head's store: a row a minute, written by the supervisor, read by the console."""

import sqlite3
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from sparkwright.domain.errors import CommandFailed
from sparkwright.domain.history import KEPT, Minute, NodeMinute

_MOST = KEPT // 60 * 16  # rows of a read: nodes of one deployment
_MINUTE = "INSERT OR REPLACE INTO minutes VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_NODE = "INSERT OR REPLACE INTO node_minutes VALUES (?, ?, ?, ?, ?, ?, ?)"
_READ = """SELECT at, state, serving, decode, prefill, running, kv FROM minutes
WHERE at >= ? AND deployment = ? ORDER BY at LIMIT ?"""
_READ_NODES = """SELECT at, node, available, total, temperature, power FROM node_minutes
WHERE at >= ? AND deployment = ? ORDER BY at, node LIMIT ?"""


def keep_minute(connection: sqlite3.Connection, minute: Minute) -> int:
    """Adds a minute and drops those that are older than a day."""
    m = minute
    connection.execute(_MINUTE, (m.at, m.deployment, m.state, m.serving, m.decode, m.prefill, m.running, m.kv))
    rows = ((m.at, m.deployment, n.node, n.available, n.total, n.temperature, n.power) for n in m.nodes)
    connection.executemany(_NODE, rows)
    for table in ("minutes", "node_minutes"):
        connection.execute(f"DELETE FROM {table} WHERE at < ?", (m.at - KEPT,))
    return 1


def minutes_since(store: Path, deployment: str, since: float) -> tuple[Minute, ...]:
    """Oldest first; () where nothing was written yet. Raises CommandFailed for what cannot be read."""
    if not store.exists():
        return ()
    asked = int(since), deployment, _MOST
    try:
        with closing(sqlite3.connect(f"{store.absolute().as_uri()}?mode=ro", uri=True, timeout=0.5)) as link:
            if int(link.execute("PRAGMA user_version").fetchone()[0]) < 2:
                return ()
            rows = link.execute(_READ, asked).fetchall()
            found = link.execute(_READ_NODES, asked).fetchall()
    except sqlite3.Error as error:
        raise CommandFailed("this head", f"the last day cannot be read: {error}", f"see {store}") from error
    nodes = {at: tuple(NodeMinute(*row[1:]) for row in group) for at, group in groupby(found, key=itemgetter(0))}
    return tuple(
        Minute(deployment, at, state, serving, decode, prefill, running, kv, nodes.get(at, ()))
        for at, state, serving, decode, prefill, running, kv in rows
    )
