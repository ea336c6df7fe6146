"""A bench next to what the plan of the start promised: how fast one user's answer is written."""

from collections.abc import Iterator
from statistics import median

from sparkwright.domain.plan_history import PredictionError, benched
from sparkwright.domain.run import Run
from sparkwright.domain.workload import Arrival
from sparkwright.loadgen.figures import decode
from sparkwright.ports import PlanHistory

_SHALLOW = 16_384  # tokens: plans promise the speed behind a prompt of 8K, and deeper is slower
_FEWEST = 3


def compare_with_plan(history: PlanHistory, run: Run) -> PredictionError | None:
    """Keep the run's median next to the latest promise of that deployment; None where either is missing."""
    speeds = list(_alone(run))
    if not run.conditions.ours or run.conditions.simulated or len(speeds) < _FEWEST:
        return None
    found = benched(history.all(), run.conditions.deployment, median(speeds), run.ended or run.began)
    return found if found and not history.add((found,)) else None


def _alone(run: Run) -> Iterator[float]:
    """Tokens/s of each request that had the server for itself, behind a context like the plan's."""
    for level in run.levels:
        pace = level.plan.pace
        if level.complete and not level.doubts and (pace.arrival, pace.concurrency) == (Arrival.CLOSED, 1):
            short = (row for row in level.rows if not row.error and (row.prompt_tokens or 0) <= _SHALLOW)
            yield from (speed for row in short if (speed := decode(row)))
