"""A stream from a node that is kept open for as long as somebody listens."""

from collections.abc import AsyncIterator
from contextlib import aclosing

from sparkwright.app.supervise.site import Site
from sparkwright.domain.command import Command
from sparkwright.domain.errors import NodeError

# Each wait is a little longer than the one before: about a tenth of how long the node has been away by then.
_FIRST, _MORE, _LONGEST = 1.0, 1.1, 10.0


async def lines(site: Site, node: str, command: Command) -> AsyncIterator[str | NodeError]:
    """Lines, and between them what ended the stream; it is opened again, later each time until a line comes."""
    wait = _FIRST
    while True:
        try:
            stream = site.world.hosts[node].stream(command)
            async with aclosing(stream) as told:  # type: ignore[type-var]
                async for line in told:
                    wait = _FIRST
                    yield line
        except NodeError as error:
            yield error
        await site.world.clock.sleep(wait)
        wait = min(_MORE * wait, _LONGEST)
