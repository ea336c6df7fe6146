"""Several things at once, with one error in the end instead of a group of them."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Results in order. The first error cancels the others and is raised as itself."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except BaseExceptionGroup as error:
        raise first_error(error) from None
    return [task.result() for task in tasks]


async def each(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """As `together`, but an error on one node does not end what goes on on the others; it is raised at the end."""
    done = await asyncio.gather(*work, return_exceptions=True)
    for result in done:
        if isinstance(result, BaseException):
            raise result
    return [result for result in done if not isinstance(result, BaseException)]


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """Goes to its end also when the caller is cancelled, who is cancelled then.

    For changes on nodes: whether one that was cut off half-way has happened could not be known.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def first_error(error: BaseException) -> BaseException:
    """The first real error of a group; a cancellation only when there is nothing else."""
    while isinstance(error, BaseExceptionGroup):
        ours = [e for e in error.exceptions if not isinstance(e, asyncio.CancelledError)]
        error = (ours or list(error.exceptions))[0]
    return error
