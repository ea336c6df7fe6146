"""Runs kept in memory, by the same rules as the real store."""

from collections.abc import Sequence
from dataclasses import replace

from sparkwright.domain.errors import UsageError
from sparkwright.domain.evaluation import Evaluation
from sparkwright.domain.run import Level, Row, Run, RunListing
from sparkwright.domain.workload import Workload


class MemoryRuns:
    """Implements ports.RunStore, as far as measuring needs it."""

    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}
        self.levels: list[tuple[str, Level]] = []

    async def begin(self, run: Run) -> None:
        assert run.id not in self.runs
        self.runs[run.id] = run

    async def take_up(self, run_id: str) -> Run:
        return await self.load(run_id)

    async def add_level(self, run_id: str, level: Level) -> int:
        place = (run_id, level.plan.name, level.repeat)
        assert not any((name, one.plan.name, one.repeat) == place and one.complete for name, one in self.levels)
        self.levels.append((run_id, replace(level, complete=False)))
        return len(self.levels) - 1

    async def add_rows(self, key: int, rows: Sequence[Row]) -> None:
        name, level = self.levels[key]
        self.levels[key] = (name, replace(level, rows=(*level.rows, *rows)))

    async def end_level(self, key: int, level: Level) -> None:
        name, known = self.levels[key]
        self.levels[key] = (name, replace(level, rows=known.rows))

    async def end(self, run_id: str, state: str, at: float) -> None:
        self.runs[run_id] = replace(self.runs[run_id], state=state, ended=at)

    async def set_evaluation(self, run_id: str, evaluation: Evaluation) -> None:
        self.runs[run_id] = replace(self.runs[run_id], evaluation=evaluation)

    async def load(self, run_id: str) -> Run:
        if run_id not in self.runs:
            raise UsageError(f"no run {run_id}")
        latest = {(one.plan.name, one.repeat): one for name, one in self.levels if name == run_id}
        return replace(self.runs[run_id], levels=tuple(latest.values()))

    async def list(self) -> tuple[RunListing, ...]:
        return tuple(
            RunListing(run.id, run.began, run.ended, run.state, run.workload.name, run.conditions.model, "")
            for run in self.runs.values()
        )

    async def add(self, run: Run) -> None:
        self.runs[run.id] = run

    async def tag(self, run_id: str, tags: Sequence[str]) -> None:
        self.runs[run_id] = replace(self.runs[run_id], tags=tuple(tags))

    async def delete(self, run_id: str) -> None:
        del self.runs[run_id]

    async def unfinished(self, workload: Workload, endpoint: str) -> str | None:
        found = [one for one in self.runs.values() if one.state != "done" and one.workload == workload]
        return found[-1].id if found else None
