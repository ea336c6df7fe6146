"""`sparkwright` with all its waits six times as long: an emulated machine takes them. python -m vm.patient WORDS"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace

from sparkwright.adapters.node_host import NodeHost
from sparkwright.domain.command import Command, Completed

TIMES = 6.0
_timeout, _run_all = asyncio.timeout, NodeHost.run_all


def timeout(delay: float | None) -> asyncio.Timeout:
    return _timeout(None if delay is None else delay * TIMES)


async def run_all(self: NodeHost, commands: Sequence[Command]) -> tuple[Completed, ...]:
    return await _run_all(self, [replace(one, timeout=one.timeout * TIMES) for one in commands])


if __name__ == "__main__":
    asyncio.timeout, NodeHost.run_all = timeout, run_all  # type: ignore[method-assign]
    from sparkwright.cli.main import run

    sys.exit(run(sys.argv[1:]))
