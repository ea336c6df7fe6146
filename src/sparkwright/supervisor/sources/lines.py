"""A stream from a node that is kept open for as long as somebody listens."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import TypeVar

from sparkwright.domain.errors import NodeError
from sparkwright.supervisor.context import DeploymentContext

T = TypeVar("T")

# Each wait is a little longer than the one before: about a tenth of how long the node has been away by then.
_FIRST, _MORE, _LONGEST = 1.0, 1.1, 10.0


async def lines(context: DeploymentContext, opened: Callable[[], AsyncIterator[T]]) -> AsyncIterator[T | NodeError]:
    """What a stream brings, and between that what ended it; opened again, later each time until a line comes."""
    wait = _FIRST
    while True:
        try:
            async with aclosing(opened()) as told:  # type: ignore[type-var]
                async for line in told:
                    wait = _FIRST
                    yield line
        except NodeError as error:
            yield error
        await context.services.clock.sleep(wait)
        wait = min(_MORE * wait, _LONGEST)
