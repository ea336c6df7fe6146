"""What rules read from a node's kernel log."""

import re
from collections.abc import Iterator

from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.host_facts import KernelNote
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

_SHOWN = 160


def notes(context: Context, pattern: re.Pattern[str]) -> Iterator[tuple[NodeFacts, tuple[KernelNote, ...]]]:
    """GB10 nodes whose log of this boot has such lines, with them."""
    for facts in sparks(context):
        log = known(facts.kernel_log)
        found = log.matching(pattern) if log else ()
        if found:
            yield facts, found


def times(found: tuple[KernelNote, ...]) -> int:
    return sum(note.count for note in found)


def told(found: tuple[KernelNote, ...]) -> str:
    """The first line, when it came, and how many there are: `kernel log, 41 s after boot: ... (163 such lines)`."""
    first = found[0]
    when = "" if first.first is None else f", {first.first:.0f} s after boot"
    more = f" ({times(found)} such lines)" if times(found) > 1 else ""
    return f"kernel log{when}: {first.text[:_SHOWN]}{more}"
