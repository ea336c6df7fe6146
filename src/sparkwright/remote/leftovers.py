"""Shared memory that ranks have left behind: a killed engine cannot remove its own files in /dev/shm."""

from collections.abc import Sequence

from sparkwright.domain.command import Command
from sparkwright.remote.host import script, script_texts

_sh = script_texts(__name__)


def remove_leftovers(pattern: str, runtime: str, handles: Sequence[str]) -> Command:
    """Removes what the logs of these ended ranks name, unless a process uses it. A line each: `HOW BYTES PATH`.

    HOW: removed, used, or left where this user may neither see nor remove it. pattern: of paths, for `grep -E`.
    """
    return script(_sh("leftovers"), pattern, runtime, *handles, timeout=60, changes="remove what dead ranks left")
