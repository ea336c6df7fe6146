"""The two floors of a node's available memory below which requests are refused, or a rank is stopped."""

from sparkwright.domain.units import GIB
from sparkwright.domain.values import dataclass

# Owners' own guards act below 5 or 2.4 GiB; others warn at 8 to 12 GiB, which the largest models never leave. Healthy
# ones live for hours at 3.5 GiB, and buffers that are allocated with the first long request are gone for good: so no
# fixed level fits all, and never more than half of what a recipe leaves.
_FLOOR, _STOP = 5 * GIB, int(2.4 * GIB)


@dataclass(frozen=True, slots=True)
class MemoryFloors:
    """Bytes."""

    refuse: int
    stop: int


def floors(level: int) -> MemoryFloors:
    """level: MemAvailable after the start, when nothing happens."""
    return MemoryFloors(min(_FLOOR, level // 2), min(_STOP, level // 4))
