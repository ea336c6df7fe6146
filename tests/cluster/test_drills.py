"""The quick half of the drills: each fault is noticed, answered for at the gateway, and fixed, with nothing lost."""

from dataclasses import replace
from pathlib import Path

import pytest

from drills.all import DrillRun
from drills.figures import DrillTarget
from drills.plan import QUICK, DrillStage
from drills.table import results_text
from testbed import Testbed

SLOW = 20.0
"""Times as long as in a run of `make drills`, which measures: here a machine is busy with other tests."""


@pytest.fixture(scope="module")
def starts() -> dict[tuple[object, ...], float]:
    """The engine's own, measured once for all that start alike."""
    return {}


pytestmark = pytest.mark.full  # test_supervised.py kills ranks in each run
STAGES = [pytest.param(stage, id=stage.drills[0].name.replace(" ", "-")) for stage in QUICK]


@pytest.mark.parametrize("stage", STAGES)
def test_drills(testbed: Testbed, tmp_path: Path, stage: DrillStage, starts: dict[tuple[object, ...], float]) -> None:
    """The targets of docs/reference/drills.md by the same code; recovery is compared with the machine's own start."""
    (kept,) = DrillRun(testbed, tmp_path, starts=starts).of((patient(stage),))
    assert kept.row.passed, f"\n{results_text([kept])}\n{kept.row}\n{kept.log}"


def patient(stage: DrillStage) -> DrillStage:
    return replace(stage, drills=tuple(replace(drill, target=relax_target(drill.target)) for drill in stage.drills))


def relax_target(target: DrillTarget) -> DrillTarget:
    detected, refused = target.detected and SLOW * target.detected, target.refused and SLOW * target.refused
    return replace(target, detected=detected, refused=refused, starts=10.0)
