"""A run from begin to end, with a client that answers as a test states."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace

import pytest

from fakes.clock import FakeClock
from fakes.endpoint import TableAsker, make_reply
from fakes.run_store import MemoryRuns
from fakes.tokenizer import CountingTokenizer
from sparkwright.app.bench.benchmark import prepare_run, run_benchmark
from sparkwright.app.bench.target import Bench, BenchRequest, BenchTarget, ClientMachine
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import NotReady, UsageError
from sparkwright.domain.run import Lag, LoadJob, Reads, Row, Run
from sparkwright.domain.workload import Arrival, Length, LevelPlan, Pace, RateSearch, Single, Slo, Workload

CHUNK = 'data: {"choices": [{"delta": {"content": "a"}}], "usage": {"completion_tokens": 8}}\n\n'
PLAN = LevelPlan("one", Single(Length(32, 32), Length(8, 8)), requests=3, warmup=1)
WORK = Workload("w", "t", (PLAN, replace(PLAN, name="two", warmup=0)), repeats=2, deadline=100.0)
METRICS = "vllm:generation_tokens_total 5\n"


def good_row(number: int, warmup: bool = False) -> Row:
    reads = Reads((0.1, 0.2), (4, 4))
    return Row(number, 0, 0.0, 0.0, 0.05, 0.1, 0.1, 0.3, 200, reads, output_tokens=8, prompt_tokens=32, warmup=warmup)


def failed(number: int, kind: str, status: int = 0, retry: float | None = None) -> Row:
    return Row(number, 0, 0.0, 0.0, status=status, kind=kind, error=f"it reply {kind}", retry_after=retry)


Answer = Callable[[int, LoadJob], Row]


@dataclass
class TableClient:
    """Implements ports.LoadClient: each job takes `seconds`; answer: by how many requests were sent before."""

    clock: FakeClock
    answer: Answer = lambda number, job: good_row(number)
    seconds: float = 1.0
    jobs: list[LoadJob] = field(default_factory=list)
    sent: int = 0
    cancel_at: int = -1

    async def run(self, job: LoadJob, key: Secret | None) -> AsyncIterator[Row | Lag]:
        self.jobs.append(job)
        for session in job.sessions:
            if self.sent == self.cancel_at:
                raise asyncio.CancelledError
            row = self.answer(self.sent, job)
            self.sent += 1
            yield replace(row, session=session.number, warmup=session.turns[0].warmup)
        self.clock.advance(self.seconds)
        yield Lag(p99=0.001)


@dataclass
class RunListener:
    reply: list[str] = field(default_factory=list)
    begun: list[tuple[str, int]] = field(default_factory=list)

    def level(self, plan: LevelPlan, repeat: int, of: int) -> None:
        self.begun.append((plan.name, repeat))

    def row(self, row: Row) -> None:
        pass

    def lag(self, lag: Lag) -> None:
        pass

    def note(self, text: str) -> None:
        self.reply.append(text)

    def done(self) -> None:
        pass


@dataclass
class MeasureScene:
    clock: FakeClock = field(default_factory=FakeClock)
    runs: MemoryRuns = field(default_factory=MemoryRuns)
    listener: RunListener = field(default_factory=RunListener)

    def __post_init__(self) -> None:
        self.client = TableClient(self.clock)
        models = {"data": [{"id": "m", "owned_by": "vllm"}]}
        answers = {
            "/v1/models": make_reply(models),
            "/v1/chat/completions": make_reply(CHUNK),
            "/metrics": make_reply(METRICS),
        }
        self.asker = TableAsker({**answers, "/version": make_reply({"version": "1.0"})})

    async def run(self, workload: Workload = WORK, resume: Run | None = None, nonce: str = "abcd") -> Run:
        async def counting(*_: object) -> CountingTokenizer:
            return CountingTokenizer()

        machine = ClientMachine("client", "host", "clock", nonce)
        bench = Bench(self.asker, self.client, self.runs, self.clock, machine, counting)
        found = await prepare_run(bench, BenchTarget("http://node:1"), None, BenchRequest(workload, resume))
        return await run_benchmark(found, self.listener)


async def test_all_levels_are_measured_and_kept() -> None:
    """Every repeat of every level, warm-up before it, the server's counters next to it."""
    scene = MeasureScene()
    run = await scene.run()
    assert run.state == "done"
    assert scene.listener.begun == [("one", 0), ("two", 0), ("one", 1), ("two", 1)]
    assert [len(level.rows) for level in run.levels] == [4, 3, 4, 3]
    assert all(level.complete and level.scrapes[0].figures == {"generation_tokens_total": 5} for level in run.levels)
    assert (run.conditions.engine, run.conditions.engine_version, run.conditions.tokenizer) == ("vllm", "1.0", "fake")


async def test_a_key_of_a_run_is_not_taken_twice() -> None:
    """One call may measure several endpoints within a second."""
    scene = MeasureScene()
    first, second = await scene.run(), await scene.run()
    assert first.id != second.id


async def test_texts_differ_from_run_to_run() -> None:
    """The same workload and seed, and yet nothing that the server may still have in its cache."""
    scene = MeasureScene()
    await scene.run(nonce="one")
    await scene.run(nonce="two")
    texts = [session.turns[0].new for job in scene.client.jobs for session in job.sessions]
    assert len(set(texts)) == len(texts)


async def test_gone_on_with() -> None:
    """Complete levels are not measured again; a run that was cancelled reports how to go on."""
    scene = MeasureScene()
    scene.client.cancel_at = 9
    with pytest.raises(asyncio.CancelledError):
        await scene.run()
    (stopped,) = [await scene.runs.load(name) for name in scene.runs.runs]
    assert (stopped.state, [level.complete for level in stopped.levels]) == ("stopped", [True, True, False])
    assert f"--resume {stopped.id}" in scene.listener.reply[-1]
    scene.client.cancel_at = -1
    scene.listener.begun.clear()
    run = await scene.run(resume=stopped)
    assert (run.id, run.state, len(run.levels)) == (stopped.id, "done", 4)
    assert scene.listener.begun == [("one", 1), ("two", 1)]
    with pytest.raises(UsageError, match="is complete"):
        await scene.run(resume=run)


async def test_another_server_is_another_run() -> None:
    """A run mixes no two engines."""
    scene = MeasureScene()
    run = replace(await scene.run(), state="stopped")
    assert scene.asker.answers
    scene.asker.answers["/version"] = make_reply({"version": "1.1"})
    with pytest.raises(UsageError, match=r"engine_version '1\.0' -> '1\.1'"):
        await scene.run(resume=run)


async def test_the_time_of_the_whole_run_is_bounded() -> None:
    """Levels that would begin too late are left out, and the run can be continued."""
    scene = MeasureScene()
    scene.client.seconds = 30.0
    run = await scene.run()
    assert (run.state, len(run.levels) < 4) == ("stopped", True)
    assert any("time is up after 100 s" in line for line in scene.listener.reply)
    assert all(job.whole <= 100 for job in scene.client.jobs)


async def test_a_level_that_its_own_clock_ends_is_complete() -> None:
    """It is reported as doubtful: some of its requests were cut off."""
    scene = MeasureScene()
    scene.client.answer = lambda number, job: failed(number, "time-up") if number % 3 == 2 else good_row(number)
    plan = replace(PLAN, seconds=10.0, warmup=0)
    run = await scene.run(replace(WORK, levels=(plan,), repeats=1))
    assert (run.state, run.levels[0].doubts) == ("done", ("time was up: 2 of 3 requests had ended",))


async def test_a_server_that_is_gone_ends_the_run() -> None:
    """Not one request more than needed is sent to nobody; what was measured is kept."""
    scene = MeasureScene()
    scene.client.answer = lambda number, job: failed(number, "refused") if number >= 7 else good_row(number)
    original, seen = scene.asker.get, 0

    async def get(url: str, key: Secret | None, seconds: float) -> object:
        nonlocal seen
        if scene.client.sent >= 8:
            raise NotReady("connection refused")
        return await original(url, key, seconds)

    scene.asker.get = get  # type: ignore[method-assign, assignment]
    with pytest.raises(NotReady, match=r"no longer answers \(level one\)"):
        await scene.run()
    (run,) = [await scene.runs.load(name) for name in scene.runs.runs]
    assert (run.state, [level.complete for level in run.levels]) == ("stopped", [True, True, False])


async def test_a_server_that_never_answers_is_not_asked_for_ever() -> None:
    """The rest of a long level is not sent after eight requests in a row without a byte."""
    scene = MeasureScene()
    scene.client.answer = lambda number, job: failed(number, "silence")
    many = replace(PLAN, requests=500, warmup=0)
    run = await scene.run(replace(WORK, levels=(many,), repeats=1))
    assert scene.client.sent == 8
    assert run.state == "stopped"


async def test_sent_away_altogether() -> None:
    """A level of which every request got 429 is tried once more, after the time that the server asked for."""
    scene = MeasureScene()
    scene.client.answer = lambda number, job: failed(number, "http-429", 429, 7.0) if number < 3 else good_row(number)
    run = await scene.run(replace(WORK, levels=(replace(PLAN, warmup=0),), repeats=1))
    assert run.state == "done"
    assert 7.0 in scene.clock.slept
    assert all(row.status == 200 for row in run.levels[0].rows)


async def test_what_was_only_refused_is_measured_when_it_is_gone_on_with() -> None:
    """A gateway whose engine is away refuses a level in no time; with the engine back, --resume measures it."""
    scene = MeasureScene()
    scene.client.answer = lambda number, job: failed(number, "http-503", 503)
    work = replace(WORK, levels=(replace(PLAN, warmup=0),), repeats=1)
    stopped = await scene.run(work)
    assert (stopped.state, stopped.levels[0].complete, scene.clock.slept) == ("stopped", False, [])
    scene.client.answer = lambda number, job: good_row(number)
    run = await scene.run(work, resume=stopped)
    assert (run.id, run.state, [row.status for row in run.levels[0].rows]) == (stopped.id, "done", [200] * 3)


async def test_failures_are_reported_with_the_servers_message() -> None:
    """The most frequent one, once."""
    scene = MeasureScene()
    scene.client.answer = lambda number, job: failed(number, "http-400", 400) if number else good_row(number)
    run = await scene.run(replace(WORK, levels=(replace(PLAN, warmup=0),), repeats=1))
    assert run.levels[0].doubts == ("2 of 3 requests: http-400: it reply http-400",)


async def test_the_highest_rate_is_searched_for() -> None:
    """Rates double until one misses the SLO; the search ends between the last good and the first bad."""
    scene = MeasureScene()

    def answer(number: int, job: LoadJob) -> Row:
        return replace(good_row(number), first=9.0) if job.pace.rate > 5 else good_row(number)

    scene.client.answer = answer
    plan = LevelPlan("open", PLAN.shape, Pace(Arrival.POISSON, 0, rate=1.0), requests=4, warmup=0)
    search = RateSearch(1.0, 16.0, 0.25)
    run = await scene.run(replace(WORK, levels=(plan,), repeats=1, search=search, slo=Slo(ttft=1.0), deadline=900.0))
    rates = [level.plan.pace.rate for level in run.levels]
    assert rates[:4] == [1.0, 2.0, 4.0, 8.0]
    assert max(rate for rate in rates if rate <= 5) >= 4.0
    assert run.state == "done"


async def test_what_nobody_can_judge_is_not_searched_for() -> None:
    """No answer without `usage` reports a time per token: each rate would seem to miss the limit."""
    scene = MeasureScene()
    scene.asker.answers |= {"/v1/chat/completions": make_reply('data: {"choices": [{"delta": {"content": "a"}}]}\n\n')}
    plan = replace(PLAN, pace=Pace(Arrival.POISSON, rate=1.0))
    search = replace(WORK, levels=(plan,), search=RateSearch(1.0, 8.0), slo=Slo(ttft=1.0, tpot=0.1))
    with pytest.raises(UsageError, match="a limit on TPOT cannot be searched for"):
        await scene.run(search)
    assert scene.client.jobs == []
    await scene.run(replace(search, slo=Slo(ttft=1.0)))
