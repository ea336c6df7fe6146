"""Deployments on demand next to each other: one that is idle makes room for one that is asked for."""

import asyncio
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.app.serve.prepare import Outcome, prepare
from sparkwright.domain.codec import from_json, to_json
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.live import Ask, DeploymentState, Desired, GatewayUse, Live, Request
from sparkwright.supervisor import demand, ranks
from sparkwright.supervisor.core.events import Event, Idle, Launched, LaunchFailed
from sparkwright.supervisor.home import Home
from unit.app.scene import recipe
from unit.supervisor.watchtower import Tower, make_tower

SHORT = Finding("MEM001", Severity.BLOCK, "spark-1", "does not fit")


def write_live(home: Home, name: str, phase: DeploymentState) -> None:
    live = Live(time.time(), name, phase, time.time())
    (home.path.parent / name / "live.json").write_text(to_json(live))


@pytest.fixture
def supervisor_home(tmp_path: Path) -> Home:
    """Next to three that serve: one on demand, one not, one on demand on other nodes."""
    it = make_tower()
    for name in ("twin", "resting", "always", "elsewhere"):
        (tmp_path / name).mkdir()
        cluster = it.scene.services.cluster
        if name == "elsewhere":
            cluster = replace(cluster, nodes=tuple(replace(node, name="spark-9") for node in cluster.nodes))
        desired = Desired(name, cluster, recipe(on_demand=name != "always"))
        (tmp_path / name / "desired.json").write_text(to_json(desired))
        write_live(Home(tmp_path / name, print), name, DeploymentState.READY)
    return Home(tmp_path / "twin", print)


def read_request(home: Home, name: str) -> Request | None:
    path = home.path.parent / name / "request.json"
    return from_json(Request, path.read_bytes()) if path.exists() else None


def tower_with_home(home: Home) -> Tower:
    it = make_tower()
    it.context.journal = home
    return it


async def test_only_one_that_is_on_demand_on_its_nodes_is_asked(supervisor_home: Home) -> None:
    """Guards what serves all the time, and what would free no memory here."""
    it = tower_with_home(supervisor_home)
    asking = asyncio.create_task(demand.made_room(it.context))
    while not (request := read_request(supervisor_home, "resting")):
        await asyncio.sleep(0)
    write_live(supervisor_home, "resting", DeploymentState.ON_DEMAND)
    assert await asking
    assert request.ask is Ask.YIELD and "make room for twin" in request.why
    assert read_request(supervisor_home, "always") is None and read_request(supervisor_home, "elsewhere") is None


async def test_one_that_is_in_use_is_waited_for_some_seconds(supervisor_home: Home) -> None:
    """Guards clients of the other one: it stays, and the request that waits gets the plan's findings."""
    it = tower_with_home(supervisor_home)
    assert not await demand.made_room(it.context)
    assert 20 < it.scene.clock.elapsed < 25


async def test_a_persons_request_to_the_other_one_comes_first(supervisor_home: Home) -> None:
    """A switch or a restart of it that is under way is not written over."""
    theirs = Request(Ask.RESTART, "ann@laptop", "a planned restart", "1")
    (supervisor_home.path.parent / "resting" / "request.json").write_text(to_json(theirs))
    assert not await demand.made_room(tower_with_home(supervisor_home).context)
    assert read_request(supervisor_home, "resting") == theirs


@pytest.mark.parametrize(
    ("use", "stops"),
    [
        (GatewayUse(quiet=100.0), True),
        (GatewayUse(quiet=2.0), False),
        (GatewayUse(under_way=1, quiet=100.0), False),
        (None, False),
    ],
)
async def test_it_stops_for_another_only_when_it_is_idle(use: GatewayUse | None, stops: bool) -> None:
    """Guards an agent between two requests, a request that runs, and a gateway that cannot be asked."""
    it = make_tower()
    it.context.desired = replace(it.context.desired, recipe=recipe(on_demand=True))
    it.bus.serving = True
    watching = asyncio.create_task(demand.watch_demand(it.bus))
    found: list[Event] = []
    while it.scene.clock.elapsed < 15:
        it.scene.endpoint.uses = [use] * 3 if use else []
        it.context.seen.room = "stopped, idle, to make room for other"
        await asyncio.sleep(0)
        found += it.events
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    idle = [event for event in found if isinstance(event, Idle)]
    assert bool(idle) is stops and all("make room" in event.why for event in idle)


@pytest.mark.parametrize("makes_room", [True, False])
async def test_what_does_not_fit_starts_once_there_is_room(monkeypatch: pytest.MonkeyPatch, makes_room: bool) -> None:
    """Guards the start that a request waits for, and the refusal with the plan's findings where nobody makes room."""
    it, room = make_tower(), []

    async def planned(*given: object) -> Outcome:
        outcome = await prepare(it.context.services, it.context.launch_request)
        if not room:
            outcome.plan = replace(outcome.plan, findings=(*outcome.plan.findings, SHORT))
        return outcome

    async def made(context: object) -> bool:
        room.extend([1] if makes_room else [])
        return makes_room

    monkeypatch.setattr(ranks, "prepare", planned)
    monkeypatch.setattr(ranks, "made_room", made)
    it.keep.journal.serving_next_to = frozenset  # type: ignore[attr-defined]
    for node in it.scene.nodes:
        node.ranks.clear()
    found = await ranks.launch(it.context, asked_for=True)
    if makes_room:
        assert isinstance(found, Launched)
    else:
        assert isinstance(found, LaunchFailed) and found.refused and "MEM001" in found.why
