"""What `remote.store` says: supervisors, and incidents."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparkwright.domain.codec import Unreadable, from_json
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.deployment import is_deployment_name
from sparkwright.domain.facts import Unknown
from sparkwright.domain.incident import Incident
from sparkwright.domain.live import Live
from sparkwright.domain.supervised import Supervised
from sparkwright.facts.fact import Fact, not_understood
from sparkwright.remote import store


@dataclass(frozen=True, slots=True)
class Told:
    """why: why the store could not be read, '' if it was; the incidents' own folders have told then what they know.

    files: (name, bytes) and diagnosis: its text; both of the one incident that was asked for.
    """

    incidents: tuple[Incident, ...]
    why: str = ""
    files: tuple[tuple[str, int], ...] = ()
    diagnosis: str = ""


def supervised_fact(node: str, state: str) -> Fact[tuple[Supervised, ...]]:
    return Fact(store.supervised(state), lambda done: parse_supervised(done, node))


def incidents_command(state: str, number: int = 0) -> Command:
    return store.incidents(state, number)


def parse_supervised(done: Completed, node: str) -> tuple[Supervised, ...] | Unknown:
    try:
        return tuple(_supervised(row, node) for row in json.loads(done.stdout))
    except (ValueError, TypeError, KeyError):
        return not_understood(done, "python3")


def _supervised(row: Mapping[str, Any], node: str) -> Supervised:
    words = {name: str(row[name]) for name in ("deployment", "unit", "by", "endpoint")}
    if not is_deployment_name(words["deployment"]):
        raise ValueError("not ours")
    return Supervised(
        node=node,
        now=float(row["now"]),
        running=bool(row["running"]),
        live=_live(row["live"]),
        again=row.get("again") is True,
        **words,
    )


def _live(found: Any) -> Live | None:
    try:
        return from_json(Live, json.dumps(found))
    except Unreadable:
        return None


def parse_incidents(done: Completed) -> Told | Unknown:
    """Incidents newest first; one that cannot be read is passed over."""
    try:
        found = json.loads(done.stdout)
        rows = tuple(one for row in found["incidents"] if (one := _incident(row)))
        files = tuple((str(name), int(size)) for name, size in found.get("files", ()))
        return Told(rows, str(found["why"]), files, str(found.get("diagnosis", "")))
    except (ValueError, TypeError, KeyError):
        return not_understood(done, "python3")


def _incident(row: Any) -> Incident | None:
    try:
        return from_json(Incident, json.dumps(row))
    except Unreadable:
        return None
