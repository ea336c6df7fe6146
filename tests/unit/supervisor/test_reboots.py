"""Boots of nodes: noticed by their markers, and told with how the boot before ended."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from patience import PATIENCE
from sparkwright.domain.command import Command
from sparkwright.domain.errors import Unreachable
from sparkwright.domain.incident import Incident
from sparkwright.domain.sample import Sample
from sparkwright.facts.settings import TIMES
from sparkwright.supervisor.reboots import copy_to_peer, note_boot
from unit.supervisor.watchtower import Tower, make_tower

LAST = "@@ now\n1.0\n@@ uptime\n9.0 1.0\n@@ boots\n{}"
UNCLEAN = LAST.format("reboot   system boot  6.17  today\nreboot   system boot  6.17  before\n")
CLEAN = LAST.format("reboot   system boot  6.17  today\nshutdown system down  6.17  before\n")


async def history_after(it: Tower, before: str, sample: Sample, times: Any = CLEAN, incident: int = 7) -> list[str]:
    """The lines of the history after that sample."""
    it.context.seen.boots, it.context.seen.incident = ({"spark-2": before} if before else {}), incident
    it.scene.nodes[1].on(lambda command: command == TIMES.command, times)
    note_boot(it.bus, "spark-2", sample)
    note_boot(it.bus, "spark-2", sample)  # each second sample has the same marker
    await asyncio.wait_for(it.bus.saved(), PATIENCE)
    return [event.text for event, _ in it.keep.store.events if event.kind == "rebooted"]


@pytest.mark.parametrize(
    ("was_reset", "times", "sentence"),
    [
        (True, CLEAN, "spark-2 was reset by its hardware watchdog: it had frozen"),
        (False, UNCLEAN, "spark-2 ended without a shutdown: it froze, lost its power, or switched itself off"),
        (False, CLEAN, "spark-2 was rebooted in order"),
        (False, "", "spark-2 was rebooted"),
        (False, Unreachable("spark-2", "no route to host"), "spark-2 was rebooted"),
    ],
)
async def test_a_boot_is_told_with_how_the_last_one_ended(was_reset: bool, times: Any, sentence: str) -> None:
    """Guards the line that an owner looks for after a freeze; what the node does not tell is not claimed."""
    assert await history_after(make_tower(), "a:1", Sample(1.0, "b:1", was_reset=was_reset), times) == [sentence]


OWN = """clock 1000 100.0 9.0
at 160.0
/proc/meminfo:MemTotal:  131072000 kB
/proc/meminfo:MemAvailable:   1024 kB
/proc/pressure/memory:full avg10=71.20 avg60=0.87 avg300=0.22 total=58761459
gpu 54 %, 31 %, 118.20 W, 2405 MHz, 63
"""


async def test_the_last_seconds_come_from_whoever_has_the_latest() -> None:
    """Guards a node's own disk against the head's view, which ends with the connection."""
    it = make_tower()
    await it.keep.store.open(Incident("twin", "rank-exited", "rank 1 on spark-2 ended", 1.0))
    it.context.seen.sample("spark-2", Sample(1050.0, "a:1"))
    it.scene.nodes[1].on(lambda command: command.argv[-2:] == ("twin", "a:1"), OWN)
    await history_after(it, "a:1", Sample(1100.0, "b:1"), UNCLEAN)
    told = [event.text for event, _ in it.keep.store.events if event.kind == "last-seconds"]
    assert told == [
        "last record of spark-2: 118 W, 2405 MHz, GPU 63 °C, busy 54 %, all waited for memory 71 %, 1.0 MiB available. "
        "It suggests: memory had run out: 1.0 MiB available, all tasks waited 71 % of the time"
    ]
    assert "118 W" in it.keep.store.files["last-seconds-spark-2.txt"]


async def test_a_clock_set_while_the_node_was_off_is_named() -> None:
    """Guards the time before the next boot: the supervisor saw the node a moment ago, whatever its clock says now."""
    it = make_tower()
    await it.keep.store.open(Incident("twin", "rank-exited", "rank 1 on spark-2 ended", 1.0))
    it.context.seen.boots = {"spark-2": "a:1"}
    note_boot(it.bus, "spark-2", Sample(1060.0, "a:1"))
    it.scene.nodes[1].on(lambda command: command.argv[-2:] == ("twin", "a:1"), OWN)
    await history_after(it, "a:1", Sample(87500.0, "b:1"), UNCLEAN.replace("1.0", "87500.0", 1))
    (told,) = [event.text for event, _ in it.keep.store.events if event.kind == "last-seconds"]
    assert told.startswith("last record of spark-2 (its clock was set meanwhile"), told


async def test_a_reboot_in_order_has_no_last_seconds() -> None:
    """Guards the page: who reboots a node by hand knows why."""
    it = make_tower()
    await history_after(it, "a:1", Sample(1.0, "b:1"), CLEAN)
    assert "last-seconds" not in {event.kind for event, _ in it.keep.store.events}


async def test_a_reset_is_the_cause_of_its_incident() -> None:
    """Guards a node that was away when its evidence was collected: the diagnosis is corrected once it is back."""
    it = make_tower()
    await it.keep.store.open(Incident("twin", "rank-exited", "rank 1 on spark-2 ended", 1.0))
    await history_after(it, "a:1", Sample(1.0, "b:1", was_reset=True))
    (incident,) = it.keep.store.incidents
    assert (incident.cause, incident.code) == ("node froze and its watchdog reset it", "LIVE016")
    assert json.loads(it.keep.store.files["diagnosis.json"])["causes"][0]["code"] == "LIVE016"


async def test_what_is_no_reboot_is_not_told() -> None:
    """Guards a supervisor's first sample, and one whose marker could not be read."""
    assert await history_after(make_tower(), "", Sample(1.0, "b:1", was_reset=True)) == []
    assert await history_after(make_tower(), "a:1", Sample(1.0, "a:1", was_reset=True)) == []
    assert await history_after(make_tower(), "a:1", Sample(1.0, "", was_reset=True)) == []


async def test_without_an_incident_the_reset_is_told_all_the_same() -> None:
    """Guards a reboot while nothing served: a line of the history, no cause of anything."""
    it = make_tower()
    assert len(await history_after(it, "a:1", Sample(1.0, "b:1", was_reset=True), incident=0)) == 1
    assert not it.keep.store.files


def is_copy(command: Command) -> bool:
    return command.argv[-2:] == ("twin", "spark-1") and command.stdin is not None


async def test_the_head_s_last_minutes_go_to_the_second_node_and_come_back() -> None:
    """Guards a head whose own disk has nothing: its peer's copy is what the incident shows."""
    it = make_tower()
    it.bus.serving, it.context.seen.boots = True, {"spark-1": "a:1"}
    it.scene.nodes[0].on(lambda command: command.argv[-2:] == ("twin", "a:1"), OWN)
    copying = asyncio.create_task(copy_to_peer(it.bus))
    async with asyncio.timeout(PATIENCE):
        while not (kept := it.scene.nodes[1].ran(is_copy)):
            await asyncio.sleep(0.01)
    copying.cancel()
    assert kept[0].stdin == OWN.encode()
    it.scene.nodes[0].on(lambda command: command.argv[-2:] == ("twin", "a:1"), "")
    it.scene.nodes[1].on(lambda command: command.argv[-2:] == ("twin", "spark-1"), OWN)
    it.scene.nodes[0].on(lambda command: command == TIMES.command, UNCLEAN)
    await it.keep.store.open(Incident("twin", "rank-exited", "rank 0 on spark-1 ended", 1.0))
    it.context.seen.incident = 7
    note_boot(it.bus, "spark-1", Sample(1100.0, "b:1"))
    await asyncio.wait_for(it.bus.saved(), PATIENCE)
    assert "118 W" in it.keep.store.files["last-seconds-spark-1.txt"]


async def test_a_peer_that_is_away_costs_only_the_copy() -> None:
    """Guards the supervisor: it goes on, and tries again."""
    it = make_tower()
    it.bus.serving, it.context.seen.boots = True, {"spark-1": "a:1"}
    it.scene.nodes[0].on(lambda command: command.argv[-2:] == ("twin", "a:1"), Unreachable("spark-1", "gone"), OWN)
    copying = asyncio.create_task(copy_to_peer(it.bus))
    async with asyncio.timeout(PATIENCE):
        while not it.scene.nodes[1].ran(is_copy):
            await asyncio.sleep(0.01)
    assert not copying.done(), "it goes on"
    copying.cancel()


async def test_a_node_that_is_alone_has_nobody_to_copy_to() -> None:
    """Guards a single node: the task ends, nothing is read again and again."""
    it = make_tower()
    recipe = replace(it.context.desired.recipe, nodes=1)
    it.context.desired = replace(it.context.desired, recipe=recipe)
    assert len(it.context.nodes) == 1
    it.bus.serving, it.context.seen.boots = True, {"spark-1": "a:1"}
    await asyncio.wait_for(copy_to_peer(it.bus), PATIENCE)
    assert not it.scene.nodes[0].ran(lambda command: command.argv[-2:] == ("twin", "a:1"))
