"""The head node's history: what was deployed, what happened, and the incidents."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


class Threaded(Protocol):
    """A store with one thread of its own: a slow disk holds up nothing else."""

    _thread: ThreadPoolExecutor


S = TypeVar("S", bound=Threaded)


def threaded(work: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """The method, run in the store's thread."""

    async def run(self: S, /, *args: P.args, **given: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(work, self, *args, **given))

    return run
