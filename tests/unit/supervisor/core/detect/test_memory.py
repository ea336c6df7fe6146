"""The guard at the two floors of a node's memory."""

import pytest

from sparkwright.planner.floors import floors
from sparkwright.supervisor.core.detect.memory import Guard
from sparkwright.supervisor.core.detect.setting import Setting
from unit.supervisor.core.detect.figures import GIB, NODES, START, memory


def guard_reports(levels: list[float], **setting: int) -> list[str]:
    """The guard's reports on samples every 5 s, "" for nothing. Levels in GiB."""
    guard = Guard("spark-1", Setting(NODES, **setting), began=START)
    told = []
    for number, level in enumerate(levels):
        at, now = START + 5.0 * number, memory(level * GIB)
        guard.sample(now, at)
        found = guard.stop(now, at) or guard.refuse(now, at)
        told.append(found.kind if found else "")
    return told


def test_floors_are_parts_of_what_a_recipe_leaves_free() -> None:
    """A recipe that leaves 20 GiB keeps the field's levels, one that lives at 3.9 GiB is not refused for it (PUL)."""
    assert (floors(20 * GIB).refuse, floors(20 * GIB).stop) == (5 * GIB, int(2.4 * GIB))
    assert floors(int(3.9 * GIB)).refuse < 2 * GIB
    assert floors(8 * GIB).stop == 2 * GIB


def test_below_the_floor_no_new_work_until_it_is_back_for_good() -> None:
    """The guard has hysteresis: a level that swings about the floor does not open and close the gateway."""
    swing = [9.0, 7.9, 8.05, 7.95, 8.1, 8.0, 8.5, 8.6, 8.3, 8.5, 8.6, 8.7, 8.0]
    told = guard_reports(swing, floor=8 * GIB, stop_floor=4 * GIB)
    assert told == ["", *["memory-low"] * 10, "", ""]


def test_below_the_second_floor_the_engine_is_stopped() -> None:
    """The engine stops after two samples, or at once if half of it is gone."""
    assert guard_reports([7.0, 3.9, 5.0, 5.0], floor=8 * GIB, stop_floor=4 * GIB)[1:] == ["memory-low"] * 3
    assert guard_reports([9.0, 3.9, 3.9], floor=8 * GIB, stop_floor=4 * GIB) == ["", "memory-low", "memory-stop"]
    assert guard_reports([9.0, 1.9], floor=8 * GIB, stop_floor=4 * GIB) == ["", "memory-stop"]


def test_a_fall_that_will_pass_the_second_floor_is_not_waited_for() -> None:
    """7.4 GiB within seconds have been seen: below the first floor and falling on, it acts before."""
    assert guard_reports([10.0, 8.5, 7.0, 5.5], floor=8 * GIB, stop_floor=4 * GIB)[-1] == "memory-stop"
    assert guard_reports([7.9, 7.8, 7.7, 7.6], floor=8 * GIB, stop_floor=4 * GIB)[-1] == "memory-low"
    assert guard_reports([20.0, 17.0, 14.0, 11.0], floor=8 * GIB, stop_floor=4 * GIB)[-1] == ""


def test_without_given_floors_the_level_after_the_start_counts() -> None:
    """Nothing is judged for a minute, then half and a quarter of the usual."""
    told = guard_reports([6.0] * 14 + [2.9, 2.9, 1.4, 1.4])
    assert told == [""] * 14 + ["memory-low", "memory-low", "memory-low", "memory-stop"]
    assert guard_reports([0.2] * 6) == [""] * 6


@pytest.mark.parametrize("levels", [[20.0] * 50, [20.0, 12.0] * 25, [20.0] * 20 + [6.0] * 30])
def test_load_and_cache_do_not_reach_the_floor(levels: list[float]) -> None:
    """Swings and steps above the floors are no concern of the guard."""
    assert set(guard_reports(levels)) == {""}


def test_the_sentence_has_the_figures() -> None:
    """The sentence has the present memory, the floor, and the ledger as evidence."""
    guard = Guard("spark-2", Setting(NODES, floor=8 * GIB, stop_floor=4 * GIB), began=START)
    guard.sample(memory(5 * GIB), START)
    found = guard.refuse(memory(5 * GIB), START)
    assert found is not None
    assert "spark-2 has 5.0 GiB available, the floor is 8.0 GiB" in found.what
    assert found.evidence == (
        "MemAvailable 5.0 GiB, MemFree 3.0 GiB, of 121.0 GiB",
        "swap used 0.0 MiB, held by no counter 80.0 GiB",
    )
