"""Tasks beside the loop. One that fails is told and begun again: a supervisor that is half blind still acts."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from sparkwright.ports import Clock

Task = Callable[[], Coroutine[Any, Any, None]]
AGAIN = 30.0


class TaskSupervisor:
    """trouble: told of (name, error) when a task failed, of (name, None) when it runs again."""

    def __init__(self, clock: Clock, trouble: Callable[[str, Exception | None], None]) -> None:
        self._clock, self._trouble = clock, trouble
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, name: str, work: Task) -> None:
        task = asyncio.create_task(self._kept(name, work), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _kept(self, name: str, work: Task) -> None:
        mine = asyncio.current_task()
        while True:
            try:
                await work()
                return
            except Exception as error:
                if mine and mine.cancelling():
                    return  # what it says of being ended is nobody's trouble
                self._trouble(name, error)
            await self._clock.sleep(AGAIN)
            self._trouble(name, None)

    def release(self) -> None:
        """None of them tells anything any more; a connection to a node that hangs takes some seconds to end."""
        for task in self._tasks:
            task.cancel()

    async def gone(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)
