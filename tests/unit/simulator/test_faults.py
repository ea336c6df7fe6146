"""Faults are read strictly, apply to the rank they name, and can change while the simulator runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparkwright.simulator.rank import Hoard
from sparkwright.simulator.settings import Faults, InjectedFault, parse
from unit.for_each import for_each


@for_each(
    "text, fault",
    [
        ("die@load", InjectedFault("die", "load")),
        ("die@graphs:exit=3", InjectedFault("die", "graphs", exit_code=3)),
        ("freeze@kv", InjectedFault("freeze", "kv")),
        ("oom@load", InjectedFault("oom", "load")),
        ("die_after=5", InjectedFault("die_after", value=5)),
        ("rank=1:die_after=5:exit=9", InjectedFault("die_after", value=5, exit_code=9, rank=1)),
        ("leak=14", InjectedFault("leak", value=14)),
        ("ignore_sigterm", InjectedFault("ignore_sigterm")),
    ],
)
def test_a_fault_is_what_it_states(text: str, fault: InjectedFault) -> None:
    """Phase, count, exit code and rank of each form."""
    assert parse(text) == (fault,)


@for_each("text", ["die", "die@nowhere", "explode", "leak", "die_after=x", "rank=x:garbage"])
def test_a_misspelt_fault_is_refused(text: str) -> None:
    """A fault that would silently not happen makes a test pass for nothing."""
    with pytest.raises(ValueError):
        parse(text)


def test_faults_apply_to_their_rank() -> None:
    """`rank=1:` leaves rank 0 alone."""
    text = "rank=1:die@load, garbage"
    assert Faults(text, "", 0).at("load") is None and Faults(text, "", 0).has("garbage")
    assert Faults(text, "", 1).at("load") == InjectedFault("die", "load", rank=1)


def test_the_control_file_takes_over_and_may_be_wrong(tmp_path: Path) -> None:
    """A changed file is read again; a word that is no fault restores what the environment gave."""
    path = tmp_path / "control"
    faults = Faults("leak=1", str(path), 0)
    seen = []
    for at, text in enumerate(["garbage", "", "nonsense"]):
        path.write_text(text, encoding="utf-8")
        os.utime(path, (at, at))
        faults.refresh()
        seen.append([f.name for f in faults.all])
    assert seen == [["garbage"], [], ["leak"]]


def test_counted_faults_wait_for_their_count() -> None:
    """die_after=2 is due at two answered requests, not before."""
    faults = Faults("die_after=2", "", 0)
    assert [bool(faults.due("die_after", n)) for n in (0, 1, 2, 3)] == [False, False, True, True]


@pytest.mark.full
def test_a_leak_is_real() -> None:
    """Leaked pages are written, so resident memory grows by what was asked."""
    # in a process of its own: one that has freed much before gets the pages back without growing
    grown = subprocess.run([sys.executable, "-c", LEAKING], capture_output=True, text=True, check=True, timeout=60)
    assert float(grown.stdout) > 15e6


LEAKING = """
from pathlib import Path
from sparkwright.simulator.settings import Faults
from sparkwright.simulator.rank import Hoard

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

before, hoard = resident(), Hoard(Faults("leak=10", "", 0))
hoard.grow(2)
print(resident() - before)
"""


def test_a_leak_counts_from_when_it_is_switched_on(tmp_path: Path) -> None:
    """Requests answered before the fault began leak nothing; what is to be taken at once is taken once."""
    control = tmp_path / "control"
    faults = Faults("", str(control), 0)
    hoard = Hoard(faults)
    hoard.grow(100)
    control.write_text("leak=0.1, grow=0.5", encoding="utf-8")
    faults.refresh()
    for answered in (100, 103, 103):
        hoard.grow(answered)
    assert sorted(map(len, hoard.held)) == [100_000] * 3 + [500_000]
