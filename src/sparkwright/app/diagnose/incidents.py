"""`incidents` and `logs --incident`: what the nodes remember, also when no supervisor is there any more."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

from sparkwright.app.services import Services, together
from sparkwright.domain.errors import NodeError, UsageError
from sparkwright.domain.facts import Unknown
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.incident import Incident, IncidentEvent
from sparkwright.domain.replica import is_part_of
from sparkwright.domain.values import dataclass
from sparkwright.facts import store
from sparkwright.facts.store import StoredIncidents, incidents, parse_incidents

_RANK_LOG = re.compile(r"rank(\d+)-(.+)\.log")


@dataclass(frozen=True, slots=True)
class Remembered:
    """incidents: (node, incident), newest first. restarts: (node, deployment, event), newest first.

    trouble: sentences about nodes and stores that could not be read. lost: whether a node could not be asked at all.
    """

    incidents: tuple[tuple[str, Incident], ...]
    trouble: tuple[str, ...] = ()
    lost: bool = False
    restarts: tuple[tuple[str, str, IncidentEvent], ...] = ()


@dataclass(frozen=True, slots=True)
class ShownIncident:
    """One incident with what its folder has. diagnosis: as of `diagnose --json`, None without one."""

    node: str
    incident: Incident
    files: tuple[tuple[str, int], ...]
    diagnosis: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    node: str
    told: StoredIncidents | None
    trouble: str = ""
    error: NodeError | None = None


async def remembered(services: Services, deployment: str = "") -> Remembered:
    """All nodes are asked: the head is where rank 0 was, and that may have been another node once."""
    asked = await _ask(services)
    found = [(one.node, incident) for one in asked if one.told for incident in one.told.incidents]
    mine = [
        (node, incident) for node, incident in found if not deployment or is_part_of(deployment, incident.deployment)
    ]
    ordered = sorted(mine, key=lambda pair: (pair[1].opened_at, pair[1].number), reverse=True)
    trouble = tuple(one.trouble for one in asked if one.trouble)
    restarts = [(one.node, *restart) for one in asked if one.told for restart in one.told.restarts]
    ours = sorted(
        (one for one in restarts if not deployment or is_part_of(deployment, one[1])),
        key=lambda one: one[2].at,
        reverse=True,
    )
    return Remembered(tuple(ordered), trouble, any(one.error for one in asked), tuple(ours))


async def incident(services: Services, number: int, deployment: str = "") -> ShownIncident:
    """Raises UsageError when no node has it, or the error of a node that may have it."""
    asked = await _ask(services, number)
    found = [
        (one, i)
        for one in asked
        if one.told
        for i in one.told.incidents
        if not deployment or is_part_of(deployment, i.deployment)
    ]
    if not found:
        raise next((one.error for one in asked if one.error), _no_incident(services, number, asked))
    one, incident = max(found, key=lambda pair: pair[1].opened_at)
    told = one.told or StoredIncidents(())
    return ShownIncident(one.node, incident, told.files, _diagnosis(told.diagnosis))


def _no_incident(services: Services, number: int, asked: Sequence[_Asked]) -> UsageError:
    trouble = "; ".join(one.trouble for one in asked if one.trouble)
    there = ", ".join(services.cluster.names)
    said = f"no incident {number} on {there}" + (f" ({trouble})" if trouble else "")
    return UsageError(said, "sparkwright incidents list shows what there is")


async def _ask(services: Services, number: int = 0) -> list[_Asked]:
    async def one(name: str) -> _Asked:
        try:
            told = parse_incidents(await services.run(name, incidents(services.state_on(name), number)))
        except NodeError as error:
            return _Asked(name, None, error.message, error)
        if isinstance(told, Unknown):
            return _Asked(name, None, f"{name}: {told.why}: {told.raw}")
        return _Asked(name, told, f"{name}: the store cannot be read: {told.why}" if told.why else "")

    return await together(one(name) for name in services.cluster.names)


def _diagnosis(text: str) -> dict[str, Any] | None:
    try:
        found = read_json(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


async def incident_logs(
    services: Services, shown: ShownIncident, rank: int | None, tail: int
) -> AsyncIterator[tuple[int, str, str]]:
    """(rank, node, line) of the ranks' logs as they were saved. Raises UsageError without any."""
    logs = [(int(m[1]), m[2], name) for name, _ in shown.files if (m := _RANK_LOG.fullmatch(name))]
    mine = [one for one in sorted(logs) if rank is None or one[0] == rank]
    if not mine:
        kept = ", ".join(name for _, _, name in logs) or "no logs of ranks are kept"
        of = "" if rank is None else f" of rank {rank}"
        raise UsageError(f"incident {shown.incident.number} has no log{of} on {shown.node}", kept)
    for number, node, name in mine:
        lines = services.hosts[shown.node].stream(store.incident_log(f"{shown.incident.folder}/{name}", tail))
        async with aclosing(lines) as stream:  # type: ignore[type-var]
            async for line in stream:
                yield number, node, line
