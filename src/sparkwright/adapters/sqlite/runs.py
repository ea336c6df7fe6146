"""The run store: every request of every benchmark, kept as it comes."""

import asyncio
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from sparkwright.adapters.sqlite.run_file import RunFile
from sparkwright.domain.run import Level, Listed, Row, Run
from sparkwright.domain.workload import Workload

T = TypeVar("T")
RUNS = "runs.sqlite"


class SqliteRuns:
    """Implements ports.RunStore in one file. One thread of its own does all: a slow disk holds up no request.

    What was added is there when the call returns, whatever happens to this process afterwards. Methods raise
    StoreError, and Busy for a run that another process measures.
    """

    def __init__(self, path: Path) -> None:
        self._file = RunFile(path)
        self._thread = ThreadPoolExecutor(1, "runs")

    async def begin(self, run: Run) -> None:
        await self._run(lambda: self._file.begin(run))

    async def take_up(self, run_id: str) -> Run:
        return await self._run(lambda: self._file.take_up(run_id))

    async def add_level(self, run_id: str, level: Level) -> int:
        return await self._run(lambda: self._file.add_level(run_id, level))

    async def add_rows(self, key: int, rows: Sequence[Row]) -> None:
        await self._run(lambda: self._file.add_rows(key, rows))

    async def end_level(self, key: int, level: Level) -> None:
        await self._run(lambda: self._file.end_level(key, level))

    async def end(self, run_id: str, state: str, at: float) -> None:
        await self._run(lambda: self._file.end(run_id, state, at))

    async def add(self, run: Run) -> None:
        await self._run(lambda: self._file.add(run))

    async def load(self, run_id: str) -> Run:
        return await self._run(lambda: self._file.load(run_id))

    async def list(self) -> tuple[Listed, ...]:
        return await self._run(self._file.list)

    async def tag(self, run_id: str, tags: Sequence[str]) -> None:
        await self._run(lambda: self._file.tag(run_id, json.dumps(tags)))

    async def delete(self, run_id: str) -> None:
        await self._run(lambda: self._file.delete(run_id))

    async def unfinished(self, workload: Workload, endpoint: str) -> str | None:
        return await self._run(lambda: self._file.unfinished(workload, endpoint))

    async def aclose(self) -> None:
        await self._run(self._file.close)
        self._thread.shutdown()

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
