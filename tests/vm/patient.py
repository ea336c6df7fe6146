"""`sparkwright` with all its waits six times as long: an emulated machine takes them. python -m vm.patient WORDS"""

import asyncio
import sys

TIMES = 6.0
_timeout = asyncio.timeout


def timeout(delay: float | None) -> asyncio.Timeout:
    return _timeout(None if delay is None else delay * TIMES)


if __name__ == "__main__":
    asyncio.timeout = timeout
    from sparkwright.cli.main import run

    sys.exit(run(sys.argv[1:]))
