"""Nodes of one deployment against each other: they hold the same, so one that holds far less has not loaded.

Field guide F4: after a reboot containers have been seen up but waiting for a rank that never came, with 9 GB in use
where 79 GB were loaded elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from sparkwright.domain.facts import Memory
from sparkwright.domain.units import GIB, gib
from sparkwright.supervision.events import Fault
from sparkwright.supervision.state import Recovery

# Split models differ by a few GiB between ranks, an embedding or a draft model: half is no split.
_PART, _LEAST = 0.5, 16 * GIB


@dataclass
class Uneven:
    """lasting: seconds that it must be so: ranks that end give their memory back one after the other."""

    lasting: float
    since: float = 0.0

    def look(self, memories: Mapping[str, Memory], at: float) -> Fault | None:
        found = uneven(memories, at)
        self.since = (self.since or at) if found else 0.0
        return found if found and at - self.since >= self.lasting else None


def uneven(memories: Mapping[str, Memory], at: float) -> Fault | None:
    """By what is in use on each node, MemTotal - MemAvailable."""
    used = {node: memory.total - memory.available for node, memory in memories.items()}
    if len(used) < 2:
        return None
    node, least = min(used.items(), key=lambda pair: pair[1])
    others = median(value for name, value in used.items() if name != node)
    if least >= _PART * others or others - least < _LEAST:
        return None
    what = f"{node} uses {gib(least)} where the others use {gib(others)}: its rank may not have loaded"
    told = tuple(f"{name}: {gib(value)} in use" for name, value in used.items())
    return Fault(at, "rank-uneven", what, Recovery.NONE, told)
