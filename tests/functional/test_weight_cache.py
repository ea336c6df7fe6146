"""`loading.weight_cache` with the simulator: the process outlives a relaunch of the ranks, and `down` ends it."""

import asyncio
import os
import signal
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from functional.supervised_simulator import READY, SupervisedSimulator, environ, make_supervised, processes
from sparkwright.app.ranks import Way
from sparkwright.app.serve.keepers import keep_weights
from sparkwright.app.serve.prepare import prepare
from sparkwright.app.services import LaunchRequest
from sparkwright.domain.errors import NotReady
from sparkwright.domain.recipe import Loading


def make_keeping(folder: Path, **env: str) -> SupervisedSimulator:
    made = make_supervised(folder, **env)
    made.recipe = replace(made.recipe, loading=Loading(weight_cache=True))
    return made


def kept_pids(simulator: SupervisedSimulator) -> list[list[int]]:
    """Processes by node, the leader first."""
    marks = [f"SPARKWRIGHT_RANK_DIR={folder(simulator, rank)}".encode() for rank in range(2)]
    return [[pid for pid in processes() if mark in environ(pid).split(b"\0")] for mark in marks]


def folder(simulator: SupervisedSimulator, rank: int) -> Path:
    node = simulator.cluster.names[rank]
    return simulator.folder / node / "home/.local/state/sparkwright/keepers/twin" / f"rank{rank}"


def sockets(simulator: SupervisedSimulator) -> list[Path]:
    return [Path((folder(simulator, rank) / "temporary").read_text().strip()) for rank in range(2)]


@pytest.mark.full
async def test_the_weights_are_kept_over_a_relaunch_and_go_with_down(tmp_path: Path) -> None:
    """Guards its whole life: before the ranks, the same process after a killed rank, nothing left by `down`."""
    simulator = make_keeping(tmp_path)
    await simulator.up()
    try:
        before, places = kept_pids(simulator), sockets(simulator)
        assert all(before) and all(place.is_dir() for place in places) and len(set(places)) == 2
        lines = [Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") for pid in simulator.pids(0)]
        assert any(b"ipc_cache" in words for words in lines)
        simulator.write_home()
        task = asyncio.create_task(simulator.supervise())
        await simulator.until(lambda live: live.phase is READY and live.canary is not None)
        simulator.kill(1)
        await simulator.until(lambda live: live.phase is READY and live.relaunches == 1)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert simulator.starts(1) == 1 + 2  # what keeps the weights once, the rank twice
        assert kept_pids(simulator) == before
        assert not any("less memory available" in line for line in simulator.heard.lines)
    finally:
        await simulator.down()
    assert kept_pids(simulator) == [[], []] and not any(place.exists() for place in places)
    assert not folder(simulator, 0).exists() and not folder(simulator, 0).parent.exists()


@pytest.mark.full
async def test_one_that_died_is_started_again_with_the_ranks(tmp_path: Path) -> None:
    """All or none: over several nodes they meet each other while they load."""
    simulator = make_keeping(tmp_path)
    await simulator.up()
    try:
        before = kept_pids(simulator)
        for pid in before[0]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        simulator.kill(0)
        await simulator.up()
        after = kept_pids(simulator)
        assert all(after) and not {*before[0], *before[1]} & {*after[0], *after[1]}
    finally:
        await simulator.down()


@pytest.mark.full
async def test_where_it_cannot_be_its_log_says_why_and_nothing_is_left(tmp_path: Path) -> None:
    """A platform without CUDA IPC. A person is told how to start without it; a relaunch serves from files."""
    simulator = make_keeping(tmp_path, SPARKWRIGHT_SIMULATOR_PRELOAD_FAILS="1")
    async with simulator.services() as services:
        outcome = await prepare(services, LaunchRequest(simulator.recipe, "twin"))
        with pytest.raises(NotReady, match=r"keeps the weights of rank \d on spark-\d ended \(exited 1") as failed:
            await keep_weights(services, outcome.plan, lambda node: Way(services.state_on(node)))
    assert "does not support CUDA IPC" in "\n".join(failed.value.tail) and "weight_cache: false" in failed.value.hint
    assert Path(failed.value.logs).read_text()
    assert kept_pids(simulator) == [[], []]
    await simulator.up()
    try:
        assert any("the ranks read their files" in line for line in simulator.heard.lines)
        assert kept_pids(simulator) == [[], []] and simulator.pids(0)
    finally:
        await simulator.down()
