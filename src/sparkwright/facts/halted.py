"""What of a rank does not run although it has not ended."""

from sparkwright.domain.command import Completed
from sparkwright.domain.halted import Halt
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.unknown import Unknown
from sparkwright.facts.fact import Fact, not_understood, whole
from sparkwright.remote import halted


def halts(runtime: Runtime, handle: str) -> Fact[tuple[Halt, ...]]:
    """handle: the container's name, or the folder of the processes."""
    asked = halted.in_container if runtime is Runtime.DOCKER else halted.in_folder
    return Fact(asked(handle), parse)


def parse(done: Completed) -> tuple[Halt, ...] | Unknown:
    """The lowest PID first."""
    if not done.ok:
        return not_understood(done, "looking at a rank's processes")
    found = filter(None, map(_halt, done.stdout.splitlines()))
    return tuple(sorted(found, key=lambda one: one.pid))


def _halt(line: str) -> Halt | None:
    word, _, rest = line.partition(" ")
    number, _, name = rest.partition(" ")
    pid = whole(number)
    if pid is None or word not in ("stopped", "paused"):
        return None
    return Halt(pid, "".join(c if c.isprintable() else "?" for c in name), paused=word == "paused")
