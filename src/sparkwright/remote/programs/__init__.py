"""Programs that run on nodes, each self-contained (Python >= 3.10, its library only): sent as text, never installed."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files

from sparkwright.domain.command import Command
from sparkwright.remote.host import assigned, script

# DGX OS has python3 in /usr/bin; other machines in places that a session without a login does not search.
_OWN = re.compile(r"^from (__future__|sparkwright\.\S+) import (\([^)]*\)|.*)\n", re.MULTILINE)
_RUN = 'PATH="$PATH:/usr/local/bin"; exec python3 -I -S - "$@"'


def program(names: Sequence[str], args: Sequence[str], timeout: float) -> Command:
    """Exit 127: the node has no python3."""
    return script(_RUN, *args, timeout=timeout, stdin=text_of(*names).encode())


@cache
def text_of(*names: str) -> str:
    """Programs joined into one text; what they import of each other is in it."""
    parts = ((files(__name__) / f"{name}.py").read_text("utf-8") for name in names)
    return "from __future__ import annotations\n" + "\n".join(_OWN.sub("", part) for part in parts)


def evict_pages(paths: Sequence[str], goal: int = 0, last: str = "") -> Command:
    """Takes files below the paths out of the page cache until MemFree is `goal` bytes, 0: all of them. Needs no root.

    last: a path whose files are evicted at the end. Prints what facts.memory.parse_cache reads.
    """
    return program(("pages",), ("evict", str(goal), last, *paths), 900.0)


def measure(paths: Sequence[str]) -> Command:
    """Counts cached pages as `evict_pages` does, and evicts nothing."""
    return program(("pages",), ("measure", "0", "", *paths), 300.0)


GUARD_PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Floors:
    """Bytes. soft: of MemFree, page cache is evicted below it. hard: of MemAvailable, 0: the rank is never stopped."""

    soft: int
    hard: int


def guard_node(
    floors: Floors, files: Sequence[str], stop: Command, every: float = 1.0, patience: float = GUARD_PATIENCE
) -> Command:
    """Samples a node while a rank of it starts, as lines for facts.sample.parse_load; stop: how it ends its rank.

    patience: seconds without a sign of life after which it is killed and begun again.
    """
    asked = {
        **asdict(floors),
        "every": every,
        "patience": patience,
        "files": list(files),
        "stop": stop.argv,
        "until": (),
        "log": "",
    }
    return script(_given(asked) + _RUN, timeout=24 * 3600.0, stdin=text_of("guard").encode())


def _given(asked: dict[str, object]) -> str:
    """Lines that hand a program its task in a variable: the task has whole scripts in it."""
    return assigned(SPARKWRIGHT_ASKED=json.dumps(asked)) + "export SPARKWRIGHT_ASKED\n"


# A program that outlives the connection has to be whole on the node before that ends.
_LEAVE = 'PATH="$PATH:/usr/local/bin"; t=$(cat); command -v python3 >/dev/null || exit 127\n'
_LEAVE += 'export SPARKWRIGHT_PROGRAM="$t"\n'
_LEAVE += """setsid python3 -I -S -c 'import os; exec(os.environ.pop("SPARKWRIGHT_PROGRAM"))' sparkwright-guard """
_LEAVE += "</dev/null >/dev/null 2>&1 &"


def leave_guard(floors: Floors, files: Sequence[str], stop: Command, until: Command, log: str) -> Command:
    """The same without anybody who follows: it ends with `until`. log: a file that has the curve after a stop."""
    asked = {**asdict(floors), "every": 1.0, "files": list(files), "stop": stop.argv, "until": until.argv, "log": log}
    return script(_given(asked) + _LEAVE, changes="guard the node's memory", stdin=text_of("guard").encode())


@cache
def sender() -> str:
    """The text of push.py, with that of take.py for the other side in it."""
    return text_of("wire", "push_files", "push_work", "push").replace('TAKE = ""', f"TAKE = {take_text()!r}", 1)


def take_text() -> str:
    return text_of("wire", "take_files", "take")
