"""Nodes of one deployment against each other."""

from sparkwright.supervisor.core.detect.stall import Uneven, uneven
from unit.for_each import for_each
from unit.supervisor.core.detect.figures import GIB, TOTAL, memory


def memory_used(*gib: float) -> dict[str, object]:
    return {f"spark-{n}": memory(TOTAL - one * GIB) for n, one in enumerate(gib, 1)}


def test_a_rank_that_has_not_loaded_is_seen() -> None:
    """9 GB where 79 GB are loaded."""
    found = uneven(memory_used(79, 9), 1.0)  # type: ignore[arg-type]
    assert found is not None
    assert found.what.startswith("spark-2 uses 9.0 GiB where the others use 79.0 GiB")


@for_each("gib", [(79, 76), (100, 60), (20, 6), (79,), (9, 9), (79, 78, 60)])
def test_what_differs_a_little_is_even(gib: tuple[float, ...]) -> None:
    """A draft model, an embedding, a desktop: less than half, or less than 16 GiB."""
    assert uneven(memory_used(*gib), 1.0) is None  # type: ignore[arg-type]


def test_it_has_to_last() -> None:
    """Ranks that end give their memory back one after the other."""
    watch = Uneven(60.0)
    looks = [(0.0, (79, 9)), (59.0, (79, 9)), (61.0, (79, 79)), (70.0, (79, 9)), (131.0, (79, 9))]
    assert [watch.look(memory_used(*gib), at) is not None for at, gib in looks] == [False] * 4 + [True]  # type: ignore[arg-type]
