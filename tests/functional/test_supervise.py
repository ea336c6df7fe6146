"""A supervisor, the simulator on two simulated nodes, and real kills: noticed, evidence kept, serving again."""

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
import pytest

from functional.supervised_simulator import READY, SupervisedSimulator, environ, make_supervised, processes
from patience import PATIENCE, wait_until
from sparkwright.domain.live import DeploymentState
from sparkwright.engines.engine import served_name

MORE_WORK = ("capture", "stop", "watch")


@pytest.fixture
async def simulator(tmp_path: Path) -> AsyncIterator[SupervisedSimulator]:
    made = make_supervised(tmp_path, SPARKWRIGHT_SIMULATOR_CONTROL=str(tmp_path / "faults"))
    await made.up()
    made.write_home()
    try:
        yield made
    finally:
        await made.down()


@asynccontextmanager
async def supervised(simulator: SupervisedSimulator) -> AsyncIterator[None]:
    task = asyncio.create_task(simulator.supervise())
    try:
        await simulator.until(lambda live: live.phase is READY and live.canary is not None)
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def relaunched(simulator: SupervisedSimulator, times: int = 1) -> float:
    took = await simulator.until(lambda live: live.phase is READY and live.relaunches == times)
    await reported(simulator, "closed")
    return took


async def reported(simulator: SupervisedSimulator, what: str) -> None:
    """A tick may show a phase before the news of it is out."""
    await simulator.until(lambda _: any(news.what == what for news in simulator.heard.news))


def end_samplers(root: Path) -> None:
    """Ends the streams of samples of that node, as its reboot does: each group of processes that waits in a `sleep`.

    A sleep whose shell has ended is a child of the test's own process, so its parent says nothing. A sampler that takes
    a sample just now may have none.
    """
    wait_until(lambda: [pid for pid in processes() if end_sleeping_group(pid, root)], "a sampler to wait", poll=0.01)


def end_sleeping_group(pid: int, root: Path) -> bool:
    """True if that process was a `sleep` of the node; its whole group has been killed."""
    with suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text()
        if "(sleep)" in stat and f"={root}\0".encode() in environ(pid):
            group = os.getpgid(pid)
            assert group != os.getpgrp(), "a sampler has a group of its own"
            os.killpg(group, signal.SIGKILL)
            return True
    return False


@pytest.mark.full
async def test_a_node_that_its_watchdog_reset_is_the_cause(simulator: SupervisedSimulator) -> None:
    """Guards a freeze end to end: the worker's next boot has the watchdog's record, and the incident names it."""
    root = Path(dict(simulator.cluster.nodes[1].env)["SPARKWRIGHT_SYSROOT"])
    record = root / "sys/class/watchdog/watchdog0/bootstatus"
    record.parent.mkdir(parents=True)
    async with supervised(simulator):
        record.write_text("32\n")
        (root / "proc/sys/kernel/random/boot_id").write_text("00000000-0000-4000-8000-0000000000ff\n")
        end_samplers(root)  # first: a rank's last processes sleep, too
        simulator.kill(1)
        await relaunched(simulator)
        folder = simulator.state / "incidents/twin" / str(simulator.live().last_incident)
        diagnosis = folder / "diagnosis.json"
        await simulator.until(lambda _: diagnosis.exists() and "LIVE016" in diagnosis.read_text())
    events = {one["kind"]: one["text"] for one in json.loads((folder / "incident.json").read_text())["events"]}
    assert events["rebooted"] == "spark-2 was reset by its hardware watchdog: it had frozen"
    assert events["last-seconds"].startswith("last record of spark-2")
    cause = json.loads(diagnosis.read_text())["causes"][0]
    assert (cause["code"], cause["proof"][0]["text"]) == ("LIVE016", "spark-2 was reset by its hardware watchdog")


@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.full), 1])
async def test_a_killed_rank_is_evidence_and_then_history(simulator: SupervisedSimulator, rank: int) -> None:
    """Guards the whole way: noticed, refused, evidence of both nodes, a diagnosis, one launch, serving."""
    async with supervised(simulator):
        simulator.kill(rank)
        noticed = await simulator.until(lambda live: live.refusing and bool(live.why))
        again = noticed + await relaunched(simulator)
        live = simulator.live()
        print(f"rank {rank} killed: refused after {noticed:.2f} s, serving again after {again:.2f} s")
    assert live and live.incidents == 1 and not live.refusing and not live.incident
    assert (simulator.starts(0), simulator.starts(1)) == (2, 2)
    assert [news.what for news in simulator.heard.news if news.incident] == ["opened", "closed"]
    folder = simulator.state / "incidents/twin" / str(live.last_incident)
    there = {path.name for path in folder.iterdir()}
    wanted = {name for node in simulator.cluster.names for name in (f"facts-{node}.json", f"memory-{node}.txt")}
    assert wanted | {"rank0-spark-1.log", "rank1-spark-2.log", "fault.txt", "metrics.txt", "diagnosis.json"} <= there
    assert json.loads((folder / "diagnosis.json").read_text())["causes"]
    incident = json.loads((folder / "incident.json").read_text())
    assert (incident["kind"], incident["outcome"]) == ("rank-exited", "serving again")
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())


@pytest.mark.full
async def test_an_api_that_hangs_is_not_taken_for_a_busy_engine(tmp_path: Path) -> None:
    """Guards the frozen head: TCP connects, nothing answers, no process has ended; all ranks are launched again."""
    simulator = make_supervised(tmp_path)
    await simulator.up()
    simulator.write_home()
    try:
        async with supervised(simulator):
            simulator.kill(0, signal.SIGSTOP)
            noticed = await simulator.until(lambda live: live.refusing)
            again = noticed + await relaunched(simulator)
            print(f"head frozen: refused after {noticed:.2f} s, serving again after {again:.2f} s")
        assert simulator.starts(0) == 2
        # Without an incident: on a busy machine a probe or a sample may be late before it is frozen, too.
        assert [news.what for news in simulator.heard.news if news.incident] == ["opened", "closed"]
    finally:
        await simulator.down()


@pytest.mark.full
async def test_it_gives_up_on_a_deployment_that_dies_in_every_load(simulator: SupervisedSimulator) -> None:
    """Guards the loop guard: three launches, each with its evidence in the one incident, then a person is asked for."""
    async with supervised(simulator):
        (simulator.folder / "faults").write_text("die@load")
        simulator.kill(1)
        await simulator.until(lambda live: live.phase is DeploymentState.FAILED)
        await reported(simulator, "given-up")
        live = simulator.live()
    assert live and live.refusing and "sparkwright up" in live.why
    assert live.incidents == 1
    assert simulator.starts(0) == 4
    assert [news.what for news in simulator.heard.news if news.incident] == ["opened", "given-up"]
    assert not simulator.pids(0) and not simulator.pids(1)


async def test_ended_it_stops_nothing_and_the_next_one_launches_nothing(simulator: SupervisedSimulator) -> None:
    """Guards an update of the supervisor: the ranks do not notice."""
    async with supervised(simulator):
        pass
    before = simulator.pids(0), simulator.pids(1)
    assert "nothing was stopped" in simulator.heard.lines[-1]
    async with supervised(simulator):
        pass
    assert (simulator.pids(0), simulator.pids(1)) == before and all(before)
    assert (simulator.starts(0), simulator.starts(1)) == (1, 1)


async def test_a_person_who_takes_over_disarms_it(simulator: SupervisedSimulator) -> None:
    """Guards `down`: without its desired state it ends automatically and starts nothing any more."""
    task = asyncio.create_task(simulator.supervise())
    await simulator.until(lambda live: live.phase is READY)
    (simulator.home / "desired.json").unlink()
    await asyncio.wait_for(task, PATIENCE)
    assert simulator.pids(0) and simulator.pids(1)
    assert simulator.starts(0) == 1


@pytest.mark.full
async def test_a_lost_connection_is_not_a_lost_worker(simulator: SupervisedSimulator) -> None:
    """Guards promise 4: the worker that cannot be reached is reported as unseen, nothing is stopped, and seen again."""
    simulator.gone["spark-2"] = asyncio.Event()
    async with supervised(simulator):
        simulator.gone["spark-2"].set()
        await simulator.until(lambda live: any("spark-2" in sentence for _, sentence in live.troubles))
        live = simulator.live()
        await asyncio.sleep(3.0)
        still = simulator.live()
        simulator.gone["spark-2"].clear()
        await simulator.until(lambda live: live.phase is READY and not live.troubles)
        await simulator.until(lambda _: bool(told := simulator.heard.news) and told[-1].what == "recovered")
    assert live and live.phase is DeploymentState.DEGRADED and not live.refusing
    assert still and still.phase is DeploymentState.DEGRADED
    assert (simulator.starts(0), simulator.starts(1)) == (1, 1)
    news = [one.what for one in simulator.heard.news]  # a second pair: a sample of spark-1 was late, on a busy machine
    assert news == ["degraded", "recovered"] * (len(news) // 2)


@pytest.mark.full
async def test_a_worker_that_dies_out_of_sight_is_launched_when_it_can_be_reached_again(
    simulator: SupervisedSimulator,
) -> None:
    """Guards a rebooted worker: the head cannot go on without it, nothing is launched while it is away, then all is."""
    simulator.gone["spark-2"] = asyncio.Event()
    async with supervised(simulator):
        simulator.gone["spark-2"].set()
        simulator.kill(1)
        simulator.kill(0)
        await simulator.until(lambda live: live.phase is DeploymentState.BACKING_OFF)
        assert (simulator.starts(0), simulator.starts(1)) == (1, 1)
        simulator.gone["spark-2"].clear()
        await relaunched(simulator)
    assert (simulator.starts(0), simulator.starts(1)) == (2, 2)


@pytest.mark.full
@pytest.mark.parametrize("work", ["launch", *(pytest.param(work, marks=pytest.mark.full) for work in MORE_WORK)])
async def test_killed_in_the_middle_it_goes_on(simulator: SupervisedSimulator, work: str) -> None:
    """Guards SIGKILL in each work: the next supervisor restores it, with one set of ranks and one counted launch."""
    with simulator.process() as first:
        await simulator.until(lambda live: live.phase is READY)
        simulator.kill(1)
        await until_work(simulator, work)
        first.kill()
    with simulator.process():
        await simulator.until(
            lambda live: live.phase is READY and live.at > time.time() - 1.0 and live.pid != first.pid
        )
        journal = simulator.journal()
    assert len(journal.launches) == 1
    assert len(leaders(simulator)) == 2
    assert simulator.starts(0) <= 3


@pytest.mark.full
async def test_it_needs_little_memory(simulator: SupervisedSimulator) -> None:
    """Guards the footprint on a node with a flagship in its memory: 80 MB (its CPU share: `make drills`)."""
    simulator.write_desired()
    with simulator.process() as running:
        await simulator.until(lambda live: live.phase is READY and live.canary is not None)
        status = Path(f"/proc/{running.pid}/status").read_text()
    assert next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024 < 80.0


async def until_work(simulator: SupervisedSimulator, work: str) -> None:
    for _ in range(int(PATIENCE / 0.005)):
        with suppress(OSError):
            if simulator.journal().work == work:
                return
        await asyncio.sleep(0.005)
    raise AssertionError(f"no {work}")


def leaders(simulator: SupervisedSimulator) -> list[int]:
    """The ranks' session leaders: one for each start that still lives."""
    found: list[int] = []
    for pid in (*simulator.pids(0), *simulator.pids(1)):
        with suppress(ProcessLookupError):
            if os.getsid(pid) == pid:
                found.append(pid)
    return found


@pytest.mark.full
async def test_a_client_does_not_name_the_cause_of_a_kill(simulator: SupervisedSimulator) -> None:
    """Guards the cause: a wrong model name that a client asked for, answers after it, then SIGKILL: it was the kill."""
    wrong = {"model": "wrong", "messages": [{"role": "user", "content": "x"}]}
    async with supervised(simulator), httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
        url = f"http://127.0.0.1:{simulator.recipe.serving.port}/v1/chat/completions"
        assert (await client.post(url, json=wrong)).status_code == 404
        good = {**wrong, "model": served_name(simulator.recipe), "max_tokens": 2}
        assert (await client.post(url, json=good)).status_code == 200
        asked = simulator.live()
        await simulator.until(lambda live: bool(asked and live.at > asked.at + 1))
        simulator.kill(1)
        await relaunched(simulator)
    told = json.loads((simulator.state / "incidents/twin/1/diagnosis.json").read_text())
    codes = [cause["code"] for cause in told["causes"]]
    assert codes[0] == "LIVE009" and "signal 9" in told["causes"][0]["proof"][0]["text"]
    assert not {"LAPI006", "LIMG009"} & set(codes)
