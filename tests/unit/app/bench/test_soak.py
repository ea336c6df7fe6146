"""A soak from begin to end, with a client, a server and a clock that behave as a test states."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace

import pytest

from sparkwright.app.bench.benchmark import prepare_run
from sparkwright.app.bench.soak import resumable, soak
from sparkwright.app.bench.target import Bench, BenchRequest, BenchTarget, ClientMachine
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import NotReady, UsageError
from sparkwright.domain.probed import Reply
from sparkwright.domain.run import Lag, LoadJob, Row, Run
from sparkwright.domain.units import GIB
from sparkwright.domain.workload import Soak
from sparkwright.loadgen.endurance import endurance
from unit.app.bench.test_measure import WORK, CountingTokenizer, MeasureScene, TableClient, failed, good_row

ROUNDS = replace(WORK, repeats=1, deadline=60.0, soak=Soak(probe_every=0.0, leave_every=0.0, floor=4 * GIB))
PLENTY = {"spark-1": 40 * GIB}


@dataclass
class Soaking(MeasureScene):
    """gone: so many questions find nobody. opened: incidents of the cluster."""

    gone: int = 0
    memory: Mapping[str, int] | None = None
    opened: Mapping[float, str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.client.seconds = 10.0
        known = self.asker.get

        async def get(url: str, key: Secret | None, seconds: float) -> Reply:
            if url.endswith("/v1/models") and self.client.sent and self.gone:
                self.gone -= 1
                raise NotReady("connection refused")
            return await known(url, key, seconds)

        self.asker.get = get  # type: ignore[method-assign]

    async def soak(self, resume: Run | None = None, nonce: str = "abcd") -> Run:
        async def counting(*_: object) -> CountingTokenizer:
            return CountingTokenizer()

        async def memory() -> Mapping[str, int]:
            return self.memory or PLENTY

        async def incidents() -> Mapping[float, str]:
            return self.opened or {}

        machine = ClientMachine("client", "host", "clock", nonce)
        bench = Bench(self.asker, self.client, self.runs, self.clock, machine, counting)
        request = BenchRequest(ROUNDS, resume, memory=memory, incidents=incidents)
        return await soak(await prepare_run(bench, BenchTarget("http://node:1"), None, request), self.listener)


def events(run: Run) -> list[str]:
    return [one.kind for one in run.evaluation.events] if run.evaluation else []


async def test_rounds_until_the_time_is_up() -> None:
    """All levels again and again; each is stored with its rows, of which only the ends of answers are kept."""
    scene = Soaking()
    run = await scene.soak()
    assert (run.state, events(run)) == ("done", [])
    assert scene.listener.begun == [("one", 0), ("two", 0), ("one", 1)]
    assert run.evaluation and 60.0 <= run.evaluation.seconds <= 90.0
    assert endurance(run).requests == 9
    with pytest.raises(UsageError, match="is complete"):
        resumable(run)


async def test_it_stops_at_the_floor() -> None:
    """The soak stops in the middle of a level that would not end, and keeps its findings; the rest can be resumed."""
    scene = Soaking(memory={"spark-1": 3 * GIB})

    class Hanging(TableClient):
        async def run(self, job: LoadJob, key: Secret | None) -> AsyncIterator[Row | Lag]:
            yield good_row(0)
            await asyncio.Event().wait()

    scene.client = Hanging(scene.clock)
    run = await scene.soak()
    assert (run.state, events(run)) == ("stopped", ["floor"])
    (found,) = endurance(run).findings
    assert found.text == "stopped: 3.0 GiB available on spark-1, below the floor of 4.0 GiB"
    assert resumable(run) is run


async def test_a_server_that_is_gone_is_waited_for() -> None:
    """A relaunch takes minutes: the loss and the return are in the run, which continues."""
    scene = Soaking(gone=4)
    scene.client.answer = lambda number, job: failed(number, "refused") if number < 4 else good_row(number)
    run = await scene.soak()
    assert (run.state, events(run)) == ("done", ["gone", "back"])
    assert {one.kind for one in endurance(run).findings} == {"errors", "gone"}


async def test_a_server_that_stays_gone_ends_it() -> None:
    """Nobody waits for ever; the time that is left can be done later, of the same server."""
    scene = Soaking(gone=100_000)
    scene.client.answer = lambda number, job: failed(number, "refused")
    run = await scene.soak()
    assert (run.state, events(run)) == ("stopped", ["gone", "gone"])
    scene.gone, scene.client.answer = 0, lambda number, job: good_row(number)
    again = await scene.soak(resume=run, nonce="ef01")
    assert (again.id, again.state, events(again)[2]) == (run.id, "done", "resumed")
    places = [(level.plan.name, level.repeat) for level in again.levels]
    assert len(places) == len(set(places))


async def test_incidents_of_its_time_are_noted_once() -> None:
    """Incidents before the soak are no matter of it."""
    scene = Soaking()
    at = scene.clock.now()
    scene.opened = {at - 100.0: "incident 1: old", at + 5.0: "incident 2: rank-exited"}
    run = await scene.soak()
    assert events(run) == ["incident"]
    assert [one.text for one in endurance(run).findings] == ["incident 2: rank-exited"]


async def test_a_benchmark_is_no_soak() -> None:
    """Its levels would be judged by what was never watched."""
    run = await MeasureScene().run(replace(WORK, repeats=1))
    with pytest.raises(UsageError, match="is no soak"):
        resumable(run)
