"""The drills of a plan, one stage after the other; what cannot be run is a row that reports it and fails."""

import asyncio
import contextlib
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from drills.figures import FigureRow
from drills.footprint import Footprint
from drills.ground import DrillGround
from drills.outage import View
from drills.outage_drill import OutageDrill
from drills.results import DrillResult, read_circumstances
from drills.stage import AnyDrill, DrillStage
from testbed import Testbed, TestbedError
from testbed.settings import REPOSITORY

TROUBLE = (AssertionError, TimeoutError, TestbedError, OSError, subprocess.TimeoutExpired)
_TRIES = 3


@dataclass
class DrillRun:
    """chosen: by a drill's name. starts: the engine's own, by what it depends on; each is measured once in a run."""

    testbed: Testbed
    folder: Path
    log: Callable[[str], None] = lambda _: None
    chosen: Callable[[str], bool] = lambda _: True
    starts: dict[tuple[object, ...], float] = field(default_factory=dict)

    def of(self, stages: Sequence[DrillStage]) -> Iterator[DrillResult]:
        """Each as soon as it has been measured."""
        for number, stage in enumerate(stages):
            drills = [drill for drill in stage.drills if self.chosen(drill.name)]
            if drills:
                ground = DrillGround(self.testbed, self.folder / str(number), stage.scale, stage.lasting)
                try:
                    yield from self._stage(ground, stage, drills)
                finally:
                    self._cleared(ground)

    def _cleared(self, ground: DrillGround) -> None:
        """Takes away what a stage left; on a busy machine the first try may take too long."""
        for _ in range(_TRIES - 1):
            with contextlib.suppress(*TROUBLE):
                return ground.close()
        return ground.close()

    def _stage(self, ground: DrillGround, stage: DrillStage, drills: Sequence[AnyDrill]) -> Iterator[DrillResult]:
        try:
            ground.start = self._start(ground, stage)
            self.log(f"up for {', '.join(drill.name for drill in drills)}")
            idle = all(drill.idle for drill in drills)
            ground.fresh(stage.runtime, stage.env, before=stage.before, idle=idle, **stage.changes)
        except TROUBLE as error:
            yield from (
                DrillResult(_not_run(drill, error), read_circumstances(REPOSITORY), view=_unseen(drill))
                for drill in drills
            )
            return
        for drill in drills:
            yield self._one(ground, drill)

    def _start(self, ground: DrillGround, stage: DrillStage) -> float:
        """0 where nothing is to come back."""
        if not any(drill.timed for drill in stage.drills):
            return 0.0
        how = (stage.runtime, stage.lasting, *sorted(stage.env.items()), repr(stage.changes))
        if how not in self.starts:
            self.log(f"a plain up ({stage.runtime})")
            self.starts[how] = ground.measure(stage.runtime, stage.env, before=stage.before, **stage.changes)
        return self.starts[how]

    def _one(self, ground: DrillGround, drill: AnyDrill) -> DrillResult:
        self.log(f"{drill.name} ...")
        when = replace(read_circumstances(REPOSITORY), start=round(ground.start, 2))
        measured = Footprint(ground) if drill.weighed else None
        seen: View | None = None
        try:
            with measured or contextlib.nullcontext():
                made, seen = asyncio.run(drill.measure(ground))
        except TROUBLE as error:
            made, seen = _not_run(drill, error), _unseen(drill)
        self.log(f"{drill.name}: {'; '.join(made.missed) or 'ok'} [{made.action}] {' | '.join(made.notes)}")
        told = ground.head.sh(f"cat {ground.home}/log", check=False)
        log = "\n".join([told, *ground.lines])
        return DrillResult(made, when, measured.summary() if measured else {}, log, seen)


def _unseen(drill: AnyDrill) -> View | None:
    return View() if isinstance(drill, OutageDrill) else None


def _not_run(drill: AnyDrill, error: Exception) -> FigureRow:
    words = f"could not be measured: {type(error).__name__}: {str(error)[:300]}"
    return FigureRow(drill.name, drill.fault, None, None, None, None, "", missed=(words,))
