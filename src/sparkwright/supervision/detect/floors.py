"""Below which MemAvailable a node takes no new work, and below which its engine is stopped while that still works."""

from dataclasses import dataclass

from sparkwright.domain.units import GIB

# Field guide F1: below 5 GiB RYD's guardian acts, at 2.4 GiB AID's; others warn at 8 to 12 GiB, which GAN's own
# deployment never has. Healthy flagships live for hours at 3.5 GiB (PUL), and buffers that are allocated with the first
# long request are gone for good (E71): so no fixed level fits all, and never more than half of what a recipe leaves.
_FLOOR, _STOP = 5 * GIB, int(2.4 * GIB)


@dataclass(frozen=True, slots=True)
class Floors:
    """Bytes."""

    refuse: int
    stop: int


def floors(level: int) -> Floors:
    """level: MemAvailable after the start, when nothing happens."""
    return Floors(min(_FLOOR, level // 2), min(_STOP, level // 4))
