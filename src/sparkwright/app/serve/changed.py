"""Differences since a deployment last served: kernel, driver, firmware, image, engine, recipe, clock cap."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from time import gmtime, strftime
from typing import Any

from sparkwright.app.services import ClusterState, Services
from sparkwright.domain.errors import NodeError
from sparkwright.domain.facts import EngineFound, NodeFacts
from sparkwright.domain.plan import Plan
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.unknown import known_or_none
from sparkwright.domain.values import dataclass
from sparkwright.facts.fact import Plain, parsed_json
from sparkwright.remote.host import script
from sparkwright.remote.repair import CLOCK_UNIT

_MOST = 64 * 1024
_SHOWN = 6
_LONGEST = 4096  # of a value; no kernel takes a longer command line
_MANY = 4  # words


@dataclass(frozen=True, slots=True)
class Changes:
    """The differences found. when: the day on which it last served. found: as from differences()."""

    deployment: str
    when: str
    found: tuple[str, ...]

    def __str__(self) -> str:
        more = f" and {len(self.found) - _SHOWN} more" if len(self.found) > _SHOWN else ""
        text = "; ".join(self.found[:_SHOWN]) + more or "nothing that sparkwright records"
        return f"changed since {self.deployment} last served ({self.when}): {text}"


def served(recipe: Recipe, nodes: Iterable[str], state: ClusterState) -> dict[str, str]:
    """`spark-1 kernel` -> `6.17.0-1014-nvidia`; what is not known is left out."""
    found = {"recipe": f"{recipe.label} ({recipe.hash})", "engine version": recipe.engine.version}
    for node in dict.fromkeys(nodes):
        facts = state.facts.get(node)
        values = dict(_of_node(facts)) if facts else {}
        if node in state.images:
            values["image"] = state.images[node][0]
            values["image digest"] = state.digests.get(node, "")
        if isinstance(engine := state.engines.get(node), EngineFound):
            values |= {package: version for package, version in engine.versions.items() if version != "?"}
        found |= {f"{node} {name}": value for name, value in values.items() if value}
    return found


def _of_node(facts: NodeFacts) -> Iterator[tuple[str, str]]:
    if kernel := known_or_none(facts.kernel):
        yield "kernel", kernel.release
        yield "kernel command line", kernel.cmdline
    if driver := known_or_none(facts.driver):
        yield "driver", known_or_none(driver.version) or ""
        yield "GPU firmware", known_or_none(driver.gsp_firmware) or ""
    if board := known_or_none(facts.board):
        yield "BIOS", board.bios
        yield "EC", board.ec
    if identity := known_or_none(facts.identity):
        yield "DGX OS", known_or_none(identity.ota_version) or ""
    if upkeep := known_or_none(facts.upkeep):
        yield "GPU clock cap", "on" if upkeep.active(CLOCK_UNIT) else "off"


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """`spark-1 kernel: 6.17 -> 7.0`, `kernel command line: + iommu.passthrough=1`; what one of both does not know is no

    difference.
    """
    cut = {name: value[:_LONGEST] for name, value in now.items()}
    changed = [(name, before[name], value) for name, value in cut.items() if before.get(name, value) != value]
    return tuple(f"{name}: {_change(old, new)}" for name, old, new in changed)


def _change(old: str, new: str) -> str:
    """The change as text; of many words only those that differ."""
    words, others = old.split(), new.split()
    lost, more = [one for one in words if one not in others], [one for one in others if one not in words]
    if min(len(words), len(others)) < _MANY or not (lost or more):
        return f"{old} -> {new}"
    return " ".join([*(f"- {one}" for one in lost), *(f"+ {one}" for one in more)])


async def remember(services: Services, plan: Plan, state: ClusterState) -> None:
    """Records on the head what serves now, for later starts and other clients. A full disk does not fail a start."""
    text = json.dumps({"at": services.clock.now(), "facts": served(plan.recipe, plan.placement.nodes, state)})
    try:
        await services.hosts[plan.head].put(text.encode(), _file(services, plan.head, plan.deployment), 0o600)
    except NodeError as error:
        services.notice(f"what serves now could not be noted: {error.message}", warning=True)


async def changes(
    services: Services, deployment: str, recipe: Recipe, nodes: Sequence[str], state: ClusterState
) -> Changes | None:
    """Differences since the last start that served; None without one, or if its record cannot be read."""
    found = await _recorded(services, nodes[0], deployment)
    if found is None:
        return None
    before = {str(name): str(value)[:_LONGEST] for name, value in found["facts"].items()}
    at = found.get("at")
    when = strftime("%Y-%m-%d", gmtime(at)) if isinstance(at, int | float) and 0 < at < 1e11 else "an unknown day"
    return Changes(deployment, when, differences(before, served(recipe, nodes, state)))


async def _recorded(services: Services, head: str, deployment: str) -> dict[str, Any] | None:
    """The record that `remember` wrote; None without a record that can be read."""
    try:
        done = await services.run(
            head, script('head -c "$2" "$(x "$1")"', _file(services, head, deployment), str(_MOST))
        )
    except NodeError:
        return None
    found = parsed_json(done.stdout) if done.ok else None
    return found if isinstance(found, dict) and isinstance(found.get("facts"), dict) else None


async def served_image(services: Services, deployment: str, nodes: Sequence[str]) -> str:
    """The id of the image with which it last served, the same on all nodes; '' if that is not known."""
    found = await _recorded(services, nodes[0], deployment)
    ids = {str(found["facts"].get(f"{node} image", "")) for node in nodes} if found else set()
    image = ids.pop() if len(ids) == 1 else ""
    return image if Plain.IMAGE_ID.fits(image) else ""


async def report_changes(services: Services, plan: Plan, state: ClusterState) -> None:
    """A notice about what differs from the last start that served, if there was one."""
    if found := await changes(services, plan.deployment, plan.recipe, plan.placement.nodes, state):
        services.notice(str(found), warning=bool(found.found))


def _file(services: Services, head: str, deployment: str) -> str:
    return f"{services.state_on(head)}/served/{deployment}.json"
