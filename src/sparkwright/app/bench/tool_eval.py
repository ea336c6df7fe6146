"""`eval tool-eval-bench`: another project's scenarios, asked of an endpoint, its result stored next to ours."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from sparkwright.app.bench.evaluate import EvaluationScreen, store_evaluation
from sparkwright.app.bench.target import PreparedBench
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import NotReady
from sparkwright.domain.run import Run
from sparkwright.domain.values import dataclass, replace

_STATES = {"pass": "passed", "partial": "in part", "fail": "failed"}


class EvalProcess(Protocol):
    events: AsyncIterator[dict[str, Any]]

    def result(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Tool:
    """start: argv and the key -> the program while it runs. read: its result -> a run without conditions."""

    start: Callable[[Sequence[str], Secret | None], AbstractAsyncContextManager[EvalProcess]]
    read: Callable[[bytes], Run]


@dataclass(frozen=True, slots=True)
class Scenarios:
    """The choice of scenarios. parallel: number at once. thinking: False turns it off."""

    short: bool = False
    only: tuple[str, ...] = ()
    parallel: int = 1
    thinking: bool = True

    def argv(self, ready: PreparedBench) -> tuple[str, ...]:
        where = ("--base-url", ready.target.root, "--model", ready.probed.model, "--format", "openai")
        which = (*(("--short",) if self.short else ()), *(("--scenarios", *self.only) if self.only else ()))
        how = ("--seed", str(ready.workload.seed), "--parallel", str(self.parallel), "--no-probe-engine")
        return (*where, *which, *how, *(() if self.thinking else ("--no-think",)))


async def run_scenarios(ready: PreparedBench, tool: Tool, which: Scenarios, watch: EvaluationScreen) -> Run:
    """The stored run. Raises NotReady without a result: also when the time was up, for it writes one at its end."""
    limit = ready.workload.deadline
    try:
        async with asyncio.timeout(limit), tool.start(which.argv(ready), ready.target.key) as running:
            async for event in running.events:
                _show(event, watch)
            found = tool.read(running.result())
    except TimeoutError:
        raise NotReady(f"not all scenarios were run in {limit:.0f} s", "give it more --time, or --short") from None
    assert found.evaluation
    workload = replace(found.workload, seed=ready.workload.seed)
    return await store_evaluation(ready.with_workload(workload), found.evaluation)


def _show(event: dict[str, Any], watch: EvaluationScreen) -> None:
    number, of, name = event.get("index"), event.get("total"), str(event.get("scenario_id", ""))[:16]
    if event.get("event") == "scenario_result" and isinstance(number, int) and isinstance(of, int):
        took, status = event.get("duration_seconds"), str(event.get("status"))
        seconds = f", {took:.1f} s" if isinstance(took, int | float) else ""
        watch.note(f"[{number + 1:>2}/{of}] {name:<8} {_STATES.get(status, 'not judged')}{seconds}")
