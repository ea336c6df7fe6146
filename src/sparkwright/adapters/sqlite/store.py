"""The head node's memory: rows in SQLite, and a folder for each incident that is complete in itself."""

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from sparkwright.adapters.sqlite import samples, threaded
from sparkwright.adapters.sqlite.database import History, Seldom
from sparkwright.adapters.sqlite.folders import Folders, shortened
from sparkwright.adapters.sqlite.run_records import drop_surrogates
from sparkwright.domain.history import Minute
from sparkwright.domain.incident import DeploymentRecord, Incident, IncidentEvent, Uptime
from sparkwright.domain.known_keys import mask_keys

T = TypeVar("T")
STORE = "store.sqlite"
FOLDERS = "incidents"
_FIRST, _LAST = 50, 150  # events in an incident's record
_AGAIN = 30.0
# Of evidence that has no room on the disk: bytes of a file, of an incident, and how many incidents.
_HELD_EACH, _HELD_BYTES, _HELD_INCIDENTS = 32 * 1024, 512 * 1024, 2
LEFT_OPEN = "left open by a supervisor that ended"
_INSERT = """
INSERT INTO incidents (number, deployment, kind, what, opened_at, evidence, cause, code, fix, closed_at, outcome,
  serving_at, folder, simulated, boot_node, boot, began_up, away_seconds, away_word)
VALUES (:number, :deployment, :kind, :what, :opened_at, :evidence, :cause, :code, :fix, :closed_at, :outcome,
  :serving_at, :folder, :simulated, :boot_node, :boot, :began_up, :away_seconds, :away_word)
ON CONFLICT DO NOTHING
"""
_UPDATE = """
UPDATE incidents SET what = :what, cause = :cause, code = :code, fix = :fix, closed_at = :closed_at, outcome = :outcome,
  serving_at = :serving_at, away_seconds = :away_seconds, away_word = :away_word WHERE number = :number
"""
_CATCH_UP = f"{_UPDATE} AND closed_at = 0"  # its folder is written first
# An incident of which the store knows nothing (it could not be written then) leaves an event of the deployment.
_EVENT = """
INSERT INTO events (deployment, incident, at, kind, text)
VALUES (?, (SELECT number FROM incidents WHERE number = ?), ?, ?, ?)
"""
_DEPLOYED = """
INSERT INTO deployments (deployment, at, recipe, recipe_hash, engine, nodes, by, simulated)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_LEAVE = "UPDATE incidents SET closed_at = ?, outcome = ? WHERE deployment = ? AND closed_at = 0"
_ENDED = "UPDATE deployments SET ended_at = ?, ended = ? WHERE deployment = ? AND ended_at = 0"


def _shown(text: str) -> str:
    """Text of an incident, which people send to each other: no keys, no odd bytes."""
    return mask_keys(drop_surrogates(text))


class SqliteStore:
    """Incidents and history in `state`. One thread of its own does all of it: a slow disk never holds up the loop.

    What cannot be written is dropped, and `notice` is called once; incidents stay in memory until there is room. The
    folders hold what the newest rows hold, so that a store that is damaged, full or of a newer version costs older
    history only.
    """

    def __init__(self, state: Path, notice: Callable[[str], None], now: Callable[[], float] = time.time) -> None:
        self._folders = Folders(state / FOLDERS)
        self._trouble = Seldom(notice, now)
        self._now, self._tried = now, 0.0
        self._history = History(state / STORE, notice, now, self._catch_up)
        self._thread = ThreadPoolExecutor(1, "store")
        self._last = 0
        self._unsaved: dict[int, Incident] = {}
        self._evidence: dict[int, dict[str, bytes]] = {}
        self._rowed: Incident | None = None

    async def note(self, deployment: str, event: IncidentEvent, incident: int = 0) -> None:
        """Does not wait until it is written."""
        self._thread.submit(self._note, deployment, replace(event, text=_shown(event.text)), incident)

    def sample(self, minute: Minute) -> None:
        """A row of the last day. Does not wait until it is written."""
        self._thread.submit(self._history.write, partial(samples.keep_minute, minute=minute))

    @threaded
    def explain(self, number: int, cause: str, code: str, fix: tuple[str, ...], what: str = "") -> None:
        told, steps, better = _shown(cause), tuple(map(_shown, fix)), _shown(what)
        self._change(number, lambda i: replace(i, cause=told, code=code, fix=steps, what=better or i.what))

    @threaded
    def close(
        self, number: int, at: float, outcome: str, serving_at: float = 0.0, up: Uptime | None = None
    ) -> Incident | None:
        """The incident as it is closed; None where its folder is not known any more. up: of the same moment."""
        self._change(number, lambda i: i.closed(at, outcome, serving_at, up) if i.is_open else i)
        return self._known(number)

    @threaded
    def served(self, number: int, at: float, up: Uptime | None = None) -> None:
        """Clients are served again after an incident that a person took over; others are left as they are."""
        self._change(number, lambda i: i.served(at, up))

    @threaded
    def is_handed(self, number: int) -> bool:
        known = self._known(number)
        return known is not None and known.is_handed

    def wrong(self) -> str:
        """The present trouble; while there is one, the write is tried again now and then."""
        if self._unsaved or self._evidence:
            self._thread.submit(self._save)
        if (found := self._history.wrong) and self._now() - self._tried >= _AGAIN:
            self._tried = self._now()
            self._thread.submit(self._history.again)
        return found

    async def aclose(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._history.close)
        self._thread.shutdown()

    def _catch_up(self, connection: sqlite3.Connection) -> None:
        """Adds incidents of folders that rows lack: a writer was killed in between, or the file is a new one."""
        for incident in self._folders.all():
            connection.execute(_INSERT, _row(incident))
            connection.execute(_CATCH_UP, _row(incident))

    def _on_disk(self, work: Callable[[], T]) -> T | None:
        try:
            return work()
        except OSError as error:
            self._trouble.report(f"an incident's folder cannot be written, supervision goes on: {error}")
            return None

    @threaded
    def began(self, deployed: DeploymentRecord) -> None:
        """A desired state is armed again; incidents that were left open are closed."""
        self._leave(deployed.deployment, deployed.at, LEFT_OPEN)
        nodes = json.dumps(deployed.nodes)
        row = (deployed.recipe, deployed.recipe_hash, deployed.engine, nodes, deployed.by, int(deployed.simulated))

        def change(connection: sqlite3.Connection) -> int:
            connection.execute(_ENDED, (deployed.at, "another start", deployed.deployment))
            return connection.execute(_DEPLOYED, (deployed.deployment, deployed.at, *row)).rowcount

        self._history.write(change)

    @threaded
    def ended(self, deployment: str, at: float, why: str) -> None:
        """Closes the deployment's open incidents: nobody continues them."""
        self._leave(deployment, at, why)
        self._history.write(lambda c: c.execute(_ENDED, (at, why, deployment)).rowcount)

    def _leave(self, deployment: str, at: float, outcome: str) -> None:
        """Closes what an earlier supervisor left open: it is nobody's any more."""
        for left in (*self._folders.all(), *self._unsaved.values()):
            if left.deployment == deployment and left.is_open:
                self._change(left.number, lambda i: replace(i, closed_at=at, outcome=outcome))
        self._history.write(lambda c: c.execute(_LEAVE, (at, outcome, deployment)).rowcount)

    def _note(self, deployment: str, event: IncidentEvent, incident: int) -> None:
        row = (deployment, incident, event.at, event.kind, event.text)
        self._history.write(lambda c: c.execute(_EVENT, row).rowcount)
        if incident and (known := self._known(incident)):
            # How it began and how it ended: a wait that is tried for a day leaves out its middle.
            events = (*known.events, event)
            self._keep(replace(known, events=(*events[:_FIRST], *events[_FIRST:][-_LAST:])))

    @threaded
    def open(self, incident: Incident) -> Incident:
        """The incident with its number and folder ('' if none could be made).

        The one of that number, or the one that the deployment still has open, where there is one.
        """
        incident = replace(incident, what=_shown(incident.what), evidence=tuple(map(_shown, incident.evidence)))
        known = {i.number: i for i in self._folders.all()} | self._unsaved
        mine = [i for i in known.values() if i.deployment == incident.deployment]
        if left := next((i for i in mine if i.number == incident.number or (i.is_open and not incident.number)), None):
            return self._keep(left)
        number, folder = self._place(incident)
        return self._keep(replace(incident, number=number, folder=str(folder) if folder else ""))

    def _known(self, number: int) -> Incident | None:
        return self._unsaved.get(number) or self._folders.read(number)

    def _keep(self, incident: Incident) -> Incident:
        """Keeps the incident, in memory, too, while the disk has no room; its folder is added once it exists."""
        self._unsaved[incident.number] = incident
        self._save()
        return self._known(incident.number) or incident

    def _save(self) -> None:
        for incident in tuple(self._unsaved.values()):
            self._on_disk(partial(self._write, incident))
        for number, files in tuple(self._evidence.items()):
            with suppress(OSError):
                self._folders.fill(number, files)
                del self._evidence[number]

    def _write(self, incident: Incident) -> None:
        folder = incident.folder or self._folders.of(incident.number)
        folder = folder or self._folders.make(incident.deployment, incident.number)[1]
        there = replace(incident, folder=str(folder))
        self._folders.write(there)
        del self._unsaved[incident.number]
        if (row := replace(there, events=())) != self._rowed:  # which knows nothing of events
            done = self._history.write(lambda c: (c.execute(_INSERT, _row(row)), c.execute(_UPDATE, _row(row))))
            self._rowed = row if done else None

    def _place(self, incident: Incident) -> tuple[int, Path | None]:
        """The number and folder of an incident, also of one that got its number while its folder could not be made, or
        its record not be written."""
        if incident.number and (folder := self._folders.of(incident.number)):
            return incident.number, folder
        highest = "SELECT coalesce(max(number), 0) FROM incidents"
        stored = self._history.write(lambda connection: int(connection.execute(highest).fetchone()[0]))
        free = 1 + max(self._last, self._folders.last(), stored or 0)
        made = self._on_disk(lambda: self._folders.make(incident.deployment, incident.number or free))
        number, folder = made or (incident.number or free, None)
        self._last = max(self._last, number)
        return number, folder

    def _change(self, number: int, changed: Callable[[Incident], Incident]) -> None:
        if known := self._known(number):
            self._keep(changed(known))
            return

        def change(connection: sqlite3.Connection) -> int:
            found = connection.execute("SELECT * FROM incidents WHERE number = ?", (number,))
            names = [column[0] for column in found.description]
            rows = [dict(zip(names, row, strict=True)) for row in found]
            return sum(connection.execute(_UPDATE, _row(changed(_incident(row)))).rowcount for row in rows)

        self._history.write(change)

    @threaded
    def save(self, number: int, files: Mapping[str, str]) -> str:
        """Writes the evidence; '' or a sentence about what has no room and stays in memory, cut, until there is."""
        self._evidence.pop(number, None)
        try:
            self._folders.fill(number, {name: text.encode("utf-8", "replace") for name, text in files.items()})
        except OSError as error:
            while len(self._evidence) >= _HELD_INCIDENTS:
                self._evidence.pop(next(iter(self._evidence)))
            self._evidence[number] = held = shortened(files, _HELD_EACH, _HELD_BYTES)
            why = error.strerror or error
            return f"they cannot be written ({why}): {len(held)}, cut, are in memory until there is room"
        return ""

    @threaded
    def counts(self, deployment: str) -> tuple[int, int]:
        """(incidents, number of the last one)."""
        text = "SELECT count(*), coalesce(max(number), 0) FROM incidents WHERE deployment = ?"
        told: tuple[int, int] | None = self._history.write(lambda c: c.execute(text, (deployment,)).fetchone())
        mine = [number for number, folder in self._folders.numbered() if folder.parent.name == deployment]
        return told if told else (len(mine), max(mine, default=0))


def _row(incident: Incident) -> dict[str, str | int | float]:
    names = ("number", "deployment", "kind", "what", "opened_at", "cause", "code", "closed_at", "outcome")
    times = ("serving_at", "boot_node", "boot", "began_up", "away_seconds", "away_word")
    row = {name: getattr(incident, name) for name in (*names, *times, "folder")}
    lists = {"evidence": json.dumps(incident.evidence), "fix": json.dumps(incident.fix)}
    return {**row, **lists, "simulated": int(incident.simulated)}


def _incident(row: dict[str, str | int | float]) -> Incident:
    lists = {name: tuple(json.loads(str(row[name]))) for name in ("evidence", "fix")}
    return Incident(**{**row, **lists, "simulated": bool(row["simulated"])})  # type: ignore[arg-type]
