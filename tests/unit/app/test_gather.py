"""Facts of all nodes at once, whatever one of them does."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

import pytest

from sparkwright.app.gather import gather, reached, unanswered_nodes
from sparkwright.domain.cluster import Node, NodePaths
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.errors import Unreachable
from sparkwright.domain.facts import NOT_ASKED, Disk, Memory, NodeFacts, RankStatus, Unknown
from sparkwright.facts.fact import Fact
from sparkwright.facts.memory import MEMORY

MEMINFO = "\n".join(
    f"{name}: {size} kB"
    for name, size in {
        "MemTotal": 1000,
        "MemFree": 100,
        "MemAvailable": 400,
        "Buffers": 50,
        "Cached": 250,
        "AnonPages": 200,
    }.items()
)


@dataclass
class Scripted:
    """A Host that answers meminfo, df and the ranks, and 127 to everything else; `lost` makes it unreachable."""

    name: str
    lost: bool = False
    gate: asyncio.Barrier | None = None
    rounds: list[Sequence[Command]] = field(default_factory=list)

    async def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        self.rounds.append(commands)
        if self.gate:
            await self.gate.wait()
        if self.lost:
            raise Unreachable(self.name, "connection refused")
        return tuple(self.answer(command) for command in commands)

    def answer(self, command: Command) -> Completed:
        if command == MEMORY.command:
            return Completed(0, MEMINFO)
        if command.argv == ("ranks",):
            return Completed(0, "rank of ours")
        if "df -P -B1" in command.argv[2]:
            rows = (f"@@ {n}\n/dev/x {n}000 1 {n}00 1% /\n" for n, _ in enumerate(command.argv[4:], 1))
            return Completed(0, "".join(rows))
        return Completed(127, "", "not found")

    async def run(self, command: Command) -> Completed:
        raise AssertionError("a second round trip")

    def stream(self, command: Command) -> AsyncIterator[str]:
        raise AssertionError("a stream")

    async def put(self, content: bytes, path: str, mode: int = 0o644) -> None:
        raise AssertionError("a change")

    async def address(self) -> str:
        raise AssertionError("an address")

    def tunnel(self, address: str, port: int) -> AbstractAsyncContextManager[str]:
        raise AssertionError("a tunnel")


class Fleet(dict[str, Scripted]):
    async def close(self) -> None:
        pass


class StandingClock:
    def now(self) -> float:
        return 1700.0

    def monotonic(self) -> float:
        return 1.0

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing to wait for")


def make_fleet(*hosts: Scripted) -> Fleet:
    return Fleet({host.name: host for host in hosts})


def make_nodes(*names: str) -> list[Node]:
    return [Node(name, name) for name in names]


async def test_each_node_is_asked_in_one_round_trip() -> None:
    """Guards the speed promise: one run_all for each node, with every command read-only."""
    hosts = make_fleet(Scripted("one"), Scripted("two"))
    found = await gather(hosts, make_nodes("one", "two"), StandingClock())
    assert [len(host.rounds) for host in hosts.values()] == [1, 1]
    assert all(command.changes == "" for host in hosts.values() for command in host.rounds[0])
    assert list(found) == ["one", "two"]


async def test_nodes_are_asked_side_by_side() -> None:
    """Guards that eight nodes take as long as one: no node's answer is waited for before the next is asked."""
    names = [f"n{number}" for number in range(8)]
    gate = asyncio.Barrier(len(names))
    hosts = make_fleet(*(Scripted(name, gate=gate) for name in names))
    async with asyncio.timeout(5):
        assert len(reached(await gather(hosts, make_nodes(*names), StandingClock()))) == 8


async def test_a_lost_node_does_not_hide_the_others() -> None:
    """Guards that one unreachable node is an answer of its own and the other nodes' facts come all the same."""
    found = await gather(
        make_fleet(Scripted("one", lost=True), Scripted("two")), make_nodes("one", "two"), StandingClock()
    )
    assert isinstance(found["one"], Unreachable)
    assert list(reached(found)) == ["two"]
    assert list(unanswered_nodes(found)) == ["one"]


async def test_facts_come_to_their_own_places() -> None:
    """Guards that each answer is read by the fact that asked for it; what was not reported is Unknown, not missing."""
    found = (await gather(make_fleet(Scripted("one")), make_nodes("one"), StandingClock()))["one"]
    assert isinstance(found, NodeFacts)
    assert (found.node, found.at, found.asked) == ("one", 1700.0, 1700.0)
    assert isinstance(found.memory, Memory)
    assert found.memory.unaccounted == 400 * 1024
    others = [found.identity, found.kernel, found.gpus, found.gpu_processes, found.driver, found.gsp_firmware]
    others += [found.rdma, found.interfaces, found.docker, found.listeners]
    others += [found.kernel_log, found.packages, found.activity, found.times, found.upkeep, found.board]
    assert all(isinstance(fact, Unknown) and fact != NOT_ASKED for fact in others)
    assert found.ranks == NOT_ASKED


async def test_ranks_and_further_paths_are_asked_in_the_same_round() -> None:
    """Guards that a caller's own fact is built for each node and read with that node's answer."""
    rank = RankStatus("d", 0, "one", "docker", "running", "h")

    def ranks(node: Node) -> Fact[tuple[RankStatus, ...]]:
        return Fact(Command(("ranks",)), lambda done: (rank,) if done.stdout == "rank of ours" and node.name else ())

    node = Node("one", "one", paths=NodePaths(models="/m", hub="/h", cache="/m", state="/s"))
    hosts = make_fleet(Scripted("one"))
    found = (await gather(hosts, [node], StandingClock(), ranks, ("/extra",)))["one"]
    assert isinstance(found, NodeFacts)
    assert found.ranks == (rank,)
    assert isinstance(found.disks, tuple)
    assert [disk.path for disk in found.disks] == ["/m", "/h", "/s", "/var/lib/docker", "/extra"]
    assert found.disks[4] == Disk("/extra", "/", 5000, 500)
    assert len(hosts["one"].rounds) == 1


async def test_our_own_bugs_are_not_hidden() -> None:
    """Guards that only lost contact is an answer: a node that the cluster does not have is a mistake of the caller."""
    with pytest.raises(KeyError):
        await gather(make_fleet(), make_nodes("nobody"), StandingClock())
