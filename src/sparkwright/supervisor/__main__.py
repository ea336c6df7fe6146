"""The programs on the head node: `python3 -I -S RUNTIME PROGRAM --home DIR`."""

import argparse
import gc
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from sparkwright.domain.errors import SparkwrightError

# Each program loads its own part only: they stay for weeks in the memory that the model wants.
_PROGRAMS = {
    "run": "sparkwright.supervisor.run",
    "door": "sparkwright.supervisor.proxy.gateway",
    "console": "sparkwright.console.server",
    "notify": "sparkwright.supervisor.notify",
    "standby": "sparkwright.supervisor.standby",
}


def main(words: Sequence[str] | None = None) -> int:
    """The exit code: 0 asked to end, 4 another one is at work, 70 our own bug (with its traceback)."""
    parser = argparse.ArgumentParser(prog="sparkwright-supervisor", description=__doc__)
    parser.add_argument("verb", choices=(*_PROGRAMS, "ping"))
    parser.add_argument("--home", type=Path, required=True, help="the supervisor's folder on this node")
    given = parser.parse_args(words)
    if given.verb == "ping":
        # 0 when this Python can load all programs
        for name in _PROGRAMS.values():
            import_module(name)
        return 0
    try:
        return load_program(_PROGRAMS[given.verb])(given.home)
    except SparkwrightError as error:
        print(f"sparkwright supervisor: {error.message}; {error.hint}", file=sys.stderr)  # noqa: T201
        return error.exit_code


def load_program(name: str) -> Callable[[Path], int]:
    """A program's `main`. What a module makes when it is loaded stays for good: the collector looks through it neither
    then (a quarter of the start's CPU time) nor later."""
    gc.disable()
    try:
        found: Callable[[Path], int] = import_module(name).main
    finally:
        gc.freeze()
        gc.enable()
    return found


if __name__ == "__main__":
    sys.exit(main())
