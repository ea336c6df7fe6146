"""All drills of a plan, one stage after the other; what cannot be run is a row that says so and fails."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from drills.drill import Drill, run
from drills.figures import Row
from drills.footprint import Footprint
from drills.ground import Ground
from drills.plan import Stage
from testbed import Testbed, TestbedError

Say = Callable[[str], None]
TROUBLE = (AssertionError, TimeoutError, TestbedError, OSError)


@dataclass
class Ran:
    rows: list[Row] = field(default_factory=list)
    footprint: dict[str, str] = field(default_factory=dict)
    start: float = 0.0


def run_all(testbed: Testbed, folder: Path, stages: Sequence[Stage], only: str, say: Say) -> Ran:
    ran, starts = Ran(), dict[tuple[str, bool], float]()
    for number, stage in enumerate(stages):
        wanted = [drill for drill in stage.drills if only in drill.name]
        if wanted:
            ground = Ground(testbed, folder / str(number), stage.scale, stage.lasting)
            _stage(ground, stage, wanted, ran, (starts, say))
    return ran


def _stage(
    ground: Ground, stage: Stage, drills: Sequence[Drill], ran: Ran, more: tuple[dict[tuple[str, bool], float], Say]
) -> None:
    starts, say = more
    how = (stage.runtime, stage.lasting)
    try:
        if how not in starts:
            say(f"a plain up ({stage.runtime})")
            ground.measure(stage.runtime)
            starts[how] = ran.start = ground.start
        ground.start = starts[how]
        say(f"up for {', '.join(drill.name for drill in drills)}")
        ground.fresh(stage.runtime, stage.env, before=stage.before, **stage.changes)
    except TROUBLE as error:
        ran.rows += [_not_run(drill, error) for drill in drills]
        say(f"no ground: {error}")
        ground.close()
        return
    for drill in drills:
        _one(ground, drill, ran, say)
    ground.close()


def _one(ground: Ground, drill: Drill, ran: Ran, say: Say) -> None:
    say(f"{drill.name} ...")
    measured = Footprint(ground) if drill.name == "soak" else contextlib.nullcontext()
    try:
        with measured:
            made = asyncio.run(run(ground, drill))
    except TROUBLE as error:
        made = _not_run(drill, error)
    if isinstance(measured, Footprint):
        ran.footprint = measured.told()
    ran.rows.append(made)
    say(f"{drill.name}: {'ok' if made.passed else '; '.join(made.missed)} [{made.action}] {' | '.join(made.notes)}")


def _not_run(drill: Drill, error: Exception) -> Row:
    words = f"could not be measured: {type(error).__name__}: {str(error)[:300]}"
    return Row(drill.name, drill.fault, None, None, None, None, "", missed=(words,))
