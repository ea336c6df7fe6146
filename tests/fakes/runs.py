"""Runs as two GB10 machines might give them, made up from a few laws of speed, and marked as simulated."""

import random
from collections.abc import Sequence
from dataclasses import replace

from sparkwright.domain.run import Lag, Level, Reads, Row, Run, RunConditions, Scrape
from sparkwright.domain.units import GIB
from sparkwright.domain.workload import Agent, Arrival, Length, LevelPlan, Pace, Single, Slo, Workload

BEGAN = 1_795_300_000.0
CONDITIONS = RunConditions(
    endpoint="http://spark-1:8000/v1",
    model="deepseek-v4-flash",
    ours=True,
    deployment="deepseek-v4-flash",
    recipe="deepseek-v4-flash@1m",
    recipe_hash="5f1c09a4d2e7",
    image="registry.example/vllm-gb10@sha256:0d9c5b7e61",
    engine="vllm",
    engine_version="0.21.1",
    flags=("vllm", "serve", "/models/deepseek-v4-flash", "--tensor-parallel-size", "2", "--max-model-len", "1048576"),
    nodes=("spark-1: GB10, driver 580.95.05, 200 Gbit/s fabric", "spark-2: GB10, driver 580.95.05, 200 Gbit/s fabric"),
    max_context=1_048_576,
    tokenizer="/tokenize of the server",
    client="sparkwright 0.1.0, Python 3.11.9",
    client_host="laptop",
    seed=7,
    clock="monotonic, NTP in step",
    simulated=True,
)
SLO = Slo(ttft=4.0, tpot=0.05)
DEPTHS = (0, 4096, 32768, 131072, 524288)
USERS = (1, 2, 4, 8, 16)
TURNS = 10


def workload(levels: Sequence[LevelPlan]) -> Workload:
    title = "Depth, users and an agent's loop"
    return Workload("everything", title, tuple(levels), seed=7, repeats=3, slo=SLO)


def depth_plans(depths: Sequence[int] = DEPTHS) -> list[LevelPlan]:
    shape = Single(Length(2048, 2048), Length(128, 128))
    return [LevelPlan(f"d{depth}", replace(shape, depth=depth), requests=4) for depth in depths]


def user_plans(users: Sequence[int] = USERS) -> list[LevelPlan]:
    shape = Single(Length(1024, 1024), Length(128, 128))
    return [LevelPlan(f"{n} users", shape, Pace(concurrency=n), requests=3 * n) for n in users]


def rate_plans(rates: Sequence[float] = (0.25, 0.5, 1.0, 2.0)) -> list[LevelPlan]:
    shape = Single(Length(1024, 1024), Length(128, 128))
    return [LevelPlan(f"{r:g}/s", shape, Pace(Arrival.POISSON, 0, rate=r), requests=20) for r in rates]


def agent_plans(turns: int = TURNS) -> list[LevelPlan]:
    agent = Agent(turns, system=1000, tools=1500, first=500, each_turn=2400, output=200, cached=0.8)
    cold = LevelPlan("1 agent, cold", replace(agent, cold=True), requests=2)
    return [LevelPlan("1 agent", agent, requests=2), cold]


def everything() -> list[LevelPlan]:
    return [*agent_plans(), *depth_plans(), *user_plans(), *rate_plans()]


class RequestMachine:
    """A machine that requests meet. speed: of this machine against the usual one."""

    def __init__(self, seed: int = 1, speed: float = 1.0, accepted: float = 1.6) -> None:
        self._dice = random.Random(seed)
        self._speed, self._accepted = speed, accepted

    def row(self, prompt: int, cached: int, output: int, beside: int = 1, **given: object) -> Row:
        """Prefill 1,900 tokens/s, falling with depth; 40 tokens/s for one user, several tokens a read at times."""
        fresh = (prompt - cached) / (1900 / (1 + prompt / 1_500_000) * self._speed)
        first = (0.09 + fresh * (1 + 0.35 * (beside - 1))) * self._dice.uniform(0.97, 1.06)
        step = self._accepted / (43 * self._speed) * (1 + prompt / 1_300_000) * (1 + 0.11 * (beside - 1))
        at, tokens = [first], [1]
        while (left := output - sum(tokens)) > 0:
            pause = 0.4 if self._dice.random() < 0.004 else 0.0
            at.append(at[-1] + step * self._dice.uniform(0.85, 1.15) + pause)
            tokens.append(min(left, self._dice.choice((1, 1, 2, 2, 2)) if self._accepted > 1 else 1))
        row = Row(0, 0, 0.0, 0.0, headers=0.002, first=first, first_content=first, end=at[-1] + 0.001, status=200)
        row = replace(row, reads=Reads(tuple(at), tuple(tokens)), chunks=len(at), prompt_tokens=prompt)
        row = replace(row, output_tokens=output, cached_tokens=cached, finish="length", simulated=True)
        row = replace(row, planned_prompt=prompt, planned_cached=cached, planned_output=output)
        return replace(row, **given)  # type: ignore[arg-type]

    def level(self, plan: LevelPlan, repeat: int, began: float) -> Level:
        rows = self._agent(plan, plan.shape) if isinstance(plan.shape, Agent) else self._singles(plan)
        seconds = max(row.sent + (row.end or 0.0) for row in rows)
        return Level(plan, repeat, began, seconds, tuple(rows), _lag(plan), self._scrapes(plan, seconds))

    def _agent(self, plan: LevelPlan, shape: Agent) -> list[Row]:
        rows = []
        for session in range(plan.requests):
            at = 0.0
            for turn in range(shape.turns):
                known = shape.system + shape.tools + shape.first + turn * shape.each_turn
                cached = int(known * (shape.cached or 0)) if turn and not shape.cold else 0
                row = self.row(known, cached, shape.output, session=session, turn=turn, sent=at, intended=at)
                at += (row.end or 0.0) + 0.5
                rows.append(row)
        return rows

    def _singles(self, plan: LevelPlan) -> list[Row]:
        shape, pace = plan.shape, plan.pace
        assert isinstance(shape, Single)
        beside = pace.concurrency or max(1, round(pace.rate * 6))
        ends = [0.0] * (pace.concurrency or 1)
        rows: list[Row] = []
        for number in range(plan.requests):
            place = number % len(ends)
            at = ends[place] if pace.concurrency else number / pace.rate
            row = self.row(shape.depth + shape.prompt.high, 0, shape.output.high, beside)
            row = replace(row, session=number, sent=at, intended=at)
            ends[place] = at + (row.end or 0.0)
            rows.append(self._failed(row) if beside > 10 and number % 9 == 5 else row)
        return rows

    def _failed(self, row: Row) -> Row:
        half = len(row.reads.at) // 2
        reads = Reads(row.reads.at[:half], row.reads.tokens[:half])
        return replace(row, reads=reads, kind="cut", error="the stream ended in the middle", output_tokens=None)

    def _scrapes(self, plan: LevelPlan, seconds: float) -> tuple[Scrape, ...]:
        shape = plan.shape
        depth = shape.depth if isinstance(shape, Single) else 24_000
        count = min(max(int(seconds / 2), 2), 60)
        return tuple(self._scrape(depth, plan, seconds * n / (count - 1), n / (count - 1)) for n in range(count))

    def _scrape(self, depth: int, plan: LevelPlan, at: float, share: float) -> Scrape:
        users = plan.pace.concurrency or 4
        kv = min(0.02 + (depth + 2000) * users / 900_000, 0.97) * (1 - (2 * share - 1) ** 4)
        drafts = 1000.0 * share
        figures = {"kv_cache_usage": kv, "requests_running": float(min(users, 12)), "preemptions_total": 0.0}
        figures |= {"requests_waiting": float(max(users - 12, 0)), "drafts_total": drafts}
        figures |= {"accepted_tokens_total": drafts * (self._accepted - 1)}
        memory = {"spark-1": int((9.4 - kv) * GIB), "spark-2": int((11.2 - 0.7 * kv) * GIB)}
        return Scrape(at, figures, memory)


def _lag(plan: LevelPlan) -> Lag:
    return Lag(0.0001, 0.0004, 0.0011, 0.2, 0.03 + 0.01 * plan.pace.concurrency, 1)


def run(
    plans: Sequence[LevelPlan], name: str = "r-20261122-7f3a", machine: RequestMachine | None = None, **given: object
) -> Run:
    """A run that is done. given: conditions that differ."""
    machine, levels, at = machine or RequestMachine(), [], BEGAN
    for plan in plans:
        for repeat in range(3):
            level = machine.level(plan, repeat, at)
            levels.append(level)
            at += level.seconds + 2.0
    conditions = replace(CONDITIONS, **given)  # type: ignore[arg-type]
    return Run(name, BEGAN, workload(plans), conditions, "done", at, tuple(levels))
