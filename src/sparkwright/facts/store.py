"""The stored state of the head node: supervisors, and incidents.

Read with what every node has, python3 without any package: without a supervisor, next to one that is writing, and with
a store that nobody can open (the newest is then read from the folders of the incidents).
"""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from sparkwright.domain.codec import Unreadable, from_tree
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.deployment import is_deployment_name
from sparkwright.domain.facts import Unknown
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.incident import Incident, IncidentEvent
from sparkwright.domain.live import Live, Supervised, unwritable_cure, unwritable_text
from sparkwright.domain.values import dataclass
from sparkwright.facts.fact import Fact, not_understood
from sparkwright.remote.host import script, script_texts

T = TypeVar("T")
CLOSED = "the state folder cannot be entered"
_DIGEST = re.compile(r"[0-9a-f]{16}")
STORE_VERSION = 3  # a later one is not guessed at
_sh = script_texts(__name__)
_LOG = 'case "$2" in 0) exec cat -- "$1" ;; *) exec tail -n "$2" -- "$1" ;; esac'


def incidents(state: str, number: int = 0) -> Command:
    """The newest incidents, or one with its events, its diagnosis and the names and sizes of its files."""
    return script(_sh("incidents"), state, str(number), str(STORE_VERSION))


def incident_log(path: str, tail: int) -> Command:
    """The last lines of a file of an incident's folder, 0: all."""
    return script(_LOG, path, str(tail))


@dataclass(frozen=True, slots=True)
class StoredIncidents:
    """Stored incidents. why: the reason why the store could not be read, '' if it was; the incidents' own folders are
    read instead.

    files: (name, bytes) and diagnosis: its text; both of the one incident that was asked for. restarts: of the gateway,
    the key check and the supervisor, by deployment, newest first.
    """

    incidents: tuple[Incident, ...]
    why: str = ""
    files: tuple[tuple[str, int], ...] = ()
    diagnosis: str = ""
    restarts: tuple[tuple[str, IncidentEvent], ...] = ()


def supervised_fact(node: str, state: str) -> Fact[tuple[Supervised, ...]]:
    """The fact about each deployment with a supervisor's folder here: its watcher, and the last report."""
    return Fact(script(_sh("supervised"), state), lambda done: parse_supervised(done, node, state))


def parse_supervised(done: Completed, node: str, state: str = "") -> tuple[Supervised, ...] | Unknown:
    """Unknown with the reason CLOSED where our user cannot enter the state folder; raw: whose it is, and the cure."""
    try:
        found = read_json(done.stdout)
        if isinstance(found, dict):
            reason = unwritable_text("owned", str(found["owner"]))
            return Unknown(f"{reason}; {unwritable_cure(reason, node, state)}", CLOSED)
        return tuple(_supervised(row, node, state) for row in found)
    except (ValueError, TypeError, KeyError):
        return not_understood(done, "python3")


def _supervised(row: Mapping[str, Any], node: str, state: str) -> Supervised:
    words = {name: str(row[name]) for name in ("deployment", "unit", "by", "endpoint")}
    if not is_deployment_name(words["deployment"]):
        raise ValueError("not ours")
    return Supervised(
        node=node,
        now=float(row["now"]),
        running=bool(row["running"]),
        live=_decoded(Live, row["live"]),
        again=row.get("again") is True,
        users_unit=row.get("users_unit") is True,
        unwritable=unwritable_text(*str(row.get("unwritable", "")).split()[:2] or [""]),
        folder=str(row.get("folder", "")) if row.get("taken") is True else state,
        taken=row.get("taken") is True,
        replica_of=of if is_deployment_name(of := str(row.get("replica_of", ""))) else "",
        second=str(row.get("second", "")),
        fenced=str(row.get("fenced", "")),
        program=found if _DIGEST.fullmatch(found := str(row.get("program", ""))) else "",
        **words,
    )


def _decoded(kind: type[T], found: Any) -> T | None:
    """The value of the JSON tree; None if it is not of this type, as one of a later version may be."""
    try:
        return from_tree(kind, found)
    except Unreadable:
        return None


def parse_incidents(done: Completed) -> StoredIncidents | Unknown:
    """Incidents newest first; one that cannot be read is passed over."""
    try:
        found = read_json(done.stdout)
        rows = tuple(one for row in found["incidents"] if (one := _decoded(Incident, row)))
        files = tuple((str(name), int(size)) for name, size in found.get("files", ()))
        restarts = (
            (str(name), IncidentEvent(float(at), str(kind), str(text)))
            for name, at, kind, text in found.get("restarts", ())
        )
        return StoredIncidents(rows, str(found["why"]), files, str(found.get("diagnosis", "")), tuple(restarts))
    except (ValueError, TypeError, KeyError):
        return not_understood(done, "python3")
