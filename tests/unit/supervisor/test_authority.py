"""The right of a supervisor to act: what it sends to nodes, and when it stands down."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.host import FakeHost
from fakes.hosts import FakeHosts
from sparkwright.adapters.machine import boot_id, seconds_since_boot
from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.codec import to_json
from sparkwright.domain.command import Completed, shell_command
from sparkwright.domain.errors import Unreachable
from sparkwright.domain.standby import FOLDER, TERM_FILE, Term
from sparkwright.remote.seal import REFUSED
from sparkwright.supervisor import run
from sparkwright.supervisor.authority import RightReader, SealedHosts, is_copy, records_folder
from sparkwright.supervisor.home import Home, Log
from unit.app.scene import make_scene

CLUSTER = Cluster("lab", tuple(Node(name, name) for name in ("spark-1", "spark-2", "spark-3")), "spark-3")
STOP = shell_command("stop", changes="stop it")


class AuthorityScene:
    """A supervisor on the head, whose rank is on another node."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "supervision/chat"
        self.path = self.home.parent / FOLDER / TERM_FILE
        self.path.parent.mkdir(parents=True)
        self.home.mkdir()
        self.node = FakeHost("spark-3", Completed(0, "done"))
        self.hosts = SealedHosts(FakeHosts(self.node), CLUSTER, RightReader(self.home))

    def term(self, seconds: float, seal: int = 3, why: str = "") -> None:
        found = Term(boot_id(), seconds_since_boot() + seconds, why, node="spark-1", seal=seal)
        self.path.write_text(to_json(found))

    async def stop(self) -> Completed:
        return await self.hosts["spark-3"].run(STOP)


async def test_a_head_without_a_standby_acts_as_it_did(tmp_path: Path) -> None:
    it = AuthorityScene(tmp_path)
    assert (await it.stop()).ok and it.node.commands == [STOP]


async def test_what_changes_a_node_goes_under_the_seal(tmp_path: Path) -> None:
    """Guards both belts: the node gets number and name with each command that changes it, and none without a term."""
    it = AuthorityScene(tmp_path)
    it.term(600.0)
    look = shell_command("look")
    await it.hosts["spark-3"].run_all([look])
    assert (await it.stop()).ok
    first, second = it.node.commands
    assert first == look and second.argv[-len(STOP.argv) - 2 :] == ("3", "spark-1", *STOP.argv)
    assert second.changes == STOP.changes
    it.term(-1.0, why="spark-2 serves in its place")
    with pytest.raises(Unreachable, match="spark-2 serves in its place"):
        await it.stop()
    with pytest.raises(Unreachable):
        await it.hosts["spark-3"].put(b"", "/x")
    it.term(600.0, seal=0)
    with pytest.raises(Unreachable, match="have not got its seal"):
        await it.hosts["spark-3"].run_all([look, STOP])
    it.path.write_text("{")
    with pytest.raises(Unreachable, match="cannot be read"):
        await it.stop()
    assert it.node.commands == [first, second, look] and not it.hosts.refused.is_set()


async def test_a_node_that_takes_commands_of_another_one_ends_it(tmp_path: Path) -> None:
    it = AuthorityScene(tmp_path)
    it.term(600.0)
    it.node.on("stop", Completed(REFUSED, "", "sparkwright seal: held 000000000000004 spark-2\n"))
    with pytest.raises(Unreachable, match="commands of spark-2 since seal 4"):
        await it.stop()
    assert it.hosts.refused.is_set()


async def test_a_node_that_was_away_gets_the_seal_first(tmp_path: Path) -> None:
    """Guards a node that was off when the term began: it is sealed, then the command runs."""
    it = AuthorityScene(tmp_path)
    it.term(600.0)
    behind = Completed(REFUSED, "", "sparkwright seal: behind\n")
    it.node.on(lambda command: command.changes == STOP.changes, behind, Completed(0, "stopped"))
    assert (await it.stop()).stdout == "stopped"
    assert it.node.changes == ["stop it", "seal 3", "stop it"]


async def test_a_command_with_that_exit_code_is_no_refusal(tmp_path: Path) -> None:
    it = AuthorityScene(tmp_path)
    it.term(600.0)
    it.node.on("stop", Completed(REFUSED, "", "no such file"))
    assert (await it.stop()).exit_code == REFUSED


def test_a_copy_on_the_standby_does_nothing_without_a_term(tmp_path: Path) -> None:
    """Guards a supervisor that somebody starts by hand there; its incidents are next to those of the node."""
    home = tmp_path / "supervision" / FOLDER / "state/supervision/chat-r2"
    assert is_copy(home) and RightReader(home).read().why
    assert records_folder(home) == tmp_path == records_folder(tmp_path / "supervision/chat-r2")


async def test_it_stands_down_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards the hand-over in one process: the loop ends with the right, says why, and begins anew with it."""
    it = AuthorityScene(tmp_path)
    (it.home / "desired.json").write_text("{}")
    begun: list[SealedHosts] = []
    ended = asyncio.Event()

    async def supervise(context: SealedHosts) -> None:
        begun.append(context)
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    monkeypatch.setattr(run, "supervise", supervise)
    monkeypatch.setattr(run, "_ASK_AGAIN", 0.01)
    log = Log(it.home / "log", lambda: 0.0)
    home, services = Home(it.home, log.write), replace(make_scene().services, hosts=FakeHosts(it.node), cluster=CLUSTER)
    it.term(600.0)
    work = asyncio.create_task(run._work_with_right(home, log, services, lambda made: made.hosts))  # type: ignore[arg-type,return-value]
    try:
        async with asyncio.timeout(60):
            while not begun:
                await asyncio.sleep(0.01)
            it.term(-1.0, why="spark-2 serves in its place")
            await ended.wait()
            while "spark-2 serves in its place" not in _text(it.home / "live.json"):
                await asyncio.sleep(0.01)
            it.term(600.0, seal=5)
            while len(begun) < 2:
                await asyncio.sleep(0.01)
            begun[1].refused.set()
            while len(begun) < 3:
                await asyncio.sleep(0.01)
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
    assert "stands down: spark-2 serves in its place" in _text(it.home / "log")


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
