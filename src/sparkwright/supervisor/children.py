"""Programs that a process of ours starts, starts again when they end, and takes with it."""

import asyncio
import os
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Sequence
from contextlib import suppress

from sparkwright.domain.service import Service

_AGAIN, _GRACE = 1.0, 3.0
# They end with their parent, also when that is killed.
_WITH_PARENT = ("setpriv", "--pdeathsig", "TERM", "--")


class Children:
    """notice: called with what went wrong."""

    def __init__(self, programs: Sequence[Service], notice: Callable[[str], None]) -> None:
        self._programs, self._notice = programs, notice
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def run(self) -> bool:
        return bool(self._tasks)

    def start(self) -> None:
        """Nothing if they run."""
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._keep(one)) for one in self._programs]

    async def stop(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, one: Service) -> None:
        while True:
            try:
                process = await asyncio.create_subprocess_exec(
                    *_WITH_PARENT,
                    *one.argv,
                    cwd=one.cwd,
                    env={**os.environ, **dict(one.env)},
                    stdin=DEVNULL,
                    umask=0o077 if one.private else 0o022,
                    start_new_session=True,
                )
            except OSError as error:
                self._notice(f"warning: {one.name} cannot be started: {error}")
            else:
                try:
                    code = await process.wait()
                finally:
                    await _end(process)
                self._notice(f"warning: {one.name} has ended ({code}) and is started again")
            await asyncio.sleep(_AGAIN)


async def _end(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(_GRACE):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
