"""Nodes that may be woken: a packet after a minute away, from a node that answers, and not for ever."""

import asyncio
from dataclasses import replace

import pytest

from fakes.rank_node import RankNode
from sparkwright.app.setup import wake as use
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.errors import CommandFailed, NotReady, Unreachable, UsageError
from sparkwright.supervisor import wake
from unit.supervisor.watchtower import Tower, make_tower

MAC = "48:b0:2d:00:00:01"


def wakeable_tower(away: bool = True) -> Tower:
    """spark-2 has an address to wake it by."""
    it = make_tower()
    services = it.scene.services
    nodes = tuple(replace(one, wake=MAC if one.name == "spark-2" else "") for one in services.cluster.nodes)
    it.context.services = replace(services, cluster=replace(services.cluster, nodes=nodes))
    if away:
        it.bus.detectors.lost("spark-2", it.context.now(), "no route to host")
        it.bus.detectors.lost("spark-2", it.context.now(), "no route to host")
    return it


def packets_of(node: RankNode, answer: Completed | Exception) -> list[Command]:
    """The magic packets that the node was asked to send."""
    sent: list[Command] = []

    def fits(command: Command) -> bool:
        found = command.changes.startswith("send a magic packet")
        sent.extend([command] if found else [])
        return found

    node.on(fits, answer)
    return sent


async def test_a_node_that_is_away_is_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five times at most; the history says who did it. Back again, it counts anew."""
    it = wakeable_tower()
    assert it.bus.detectors.missed("spark-2")
    sent = packets_of(it.scene.nodes[0], Completed(0, "10.0.0.255\n"))
    task = asyncio.create_task(wake.wake_nodes(it.bus))
    async with asyncio.timeout(10):
        while len(sent) < 5:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    task.cancel()
    assert len(sent) == 5 and sent[0].argv[-1] == MAC
    texts = [event.text for event, _ in it.keep.store.events if event.kind == wake.WOKEN]
    assert texts[0] == f"spark-2 has been away for a minute or more: spark-1 sent it a magic packet ({MAC})"


async def test_a_node_that_answers_is_left_alone() -> None:
    """Nothing is sent while it is there, and nothing to a node without an address."""
    it = wakeable_tower(away=False)
    sent = packets_of(it.scene.nodes[0], Completed(0, "10.0.0.255\n"))
    task = asyncio.create_task(wake.wake_nodes(it.bus))
    await asyncio.sleep(0.1)
    task.cancel()
    assert not sent
    await wake.wake_nodes(make_tower().bus)  # no node may be woken: it ends


async def test_a_node_that_cannot_send_stops_nothing() -> None:
    """It is tried again later."""
    it = wakeable_tower()
    packets_of(it.scene.nodes[0], Unreachable("spark-1", "away, too"))
    await wake.wake_node(it.context, it.context.services.cluster.node("spark-2"))
    assert not it.keep.store.events


async def test_the_command_waits_for_the_node() -> None:
    """Sent by another node; 0 does not wait, and a node that stays away is named with what to look at."""
    it = wakeable_tower(away=False)
    services = it.context.services
    sent = packets_of(it.scene.nodes[0], Completed(0, "10.0.0.255 10.1.0.255\n"))
    found = await use.wake_peer(services, "spark-2", 0.0)
    assert (found.sender, found.networks, found.seconds) == ("spark-1", ("10.0.0.255", "10.1.0.255"), None)
    it.scene.nodes[1].on(lambda command: command == use._ALIVE, Completed(0, ""))
    assert (await use.wake_peer(services, "spark-2", 60.0)).seconds is not None
    it.scene.nodes[1].on(lambda command: command == use._ALIVE, Unreachable("spark-2", "no route to host"))
    with pytest.raises(NotReady, match=r"spark-2 did not answer within 60 s: .*no route to host"):
        await use.wake_peer(services, "spark-2", 60.0)
    assert len(sent) == 3


async def test_what_cannot_be_woken_is_named() -> None:
    """An unknown node, one without an address, and no node that could send."""
    it = wakeable_tower(away=False)
    services = it.context.services
    with pytest.raises(UsageError, match="no node spark-9"):
        await use.wake_peer(services, "spark-9", 0.0)
    with pytest.raises(UsageError, match="spark-1: the cluster file has no `wake` for it"):
        await use.wake_peer(services, "spark-1", 0.0)
    packets_of(it.scene.nodes[0], Completed(1, "\n", ""))
    with pytest.raises(CommandFailed, match="spark-1: it is in no network with a broadcast address"):
        await use.wake_peer(services, "spark-2", 0.0)
