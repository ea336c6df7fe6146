"""The quick half of the drills: each fault is noticed, answered for at the door, and mended, with nothing lost."""

from dataclasses import replace
from pathlib import Path

import pytest

from drills.all import run_all
from drills.plan import QUICK, Stage
from drills.table import text
from testbed import Testbed


@pytest.mark.parametrize("stage", QUICK, ids=lambda stage: stage.drills[0].name.replace(" ", "-"))
def test_drills(testbed: Testbed, tmp_path: Path, stage: Stage) -> None:
    """Every target of docs/drills.md by the same code; the way back may take twice as long on a busy machine."""
    ran = run_all(testbed, tmp_path, (patient(stage),), "", lambda _: None)
    assert all(row.passed for row in ran.rows), "\n" + text(ran.rows) + "\n" + "\n".join(map(str, ran.rows))


def patient(stage: Stage) -> Stage:
    drills = [
        replace(d, target=replace(d.target, beyond=d.target.beyond and 2 * d.target.beyond)) for d in stage.drills
    ]
    return replace(stage, drills=tuple(drills))
