"""Two evaluations of one kind, outcome by outcome."""

from math import sqrt

from sparkwright.domain.evaluation import ProbeOutcome, ProbeState, Score
from sparkwright.domain.run import Run
from sparkwright.domain.values import dataclass

_RANK = {
    ProbeState.PASSED: 0,
    ProbeState.SCORED: 0,
    ProbeState.UNSUPPORTED: 1,
    ProbeState.SKIPPED: 1,
    ProbeState.BROKEN: 2,
    ProbeState.FAILED: 2,
}


@dataclass(frozen=True, slots=True)
class OutcomeChange:
    """verdict: better, worse, same; unclear where a side judged nothing."""

    name: str
    base: str
    new: str
    verdict: str


def refused(base: Run, new: Run, allow_simulated: bool) -> tuple[str, ...]:
    """Reasons not to compare them, one sentence each."""
    if not (base.evaluation and new.evaluation):
        odd = base if new.evaluation else new
        return (f"{odd.id} is a benchmark, and the other an evaluation",)
    found = []
    if (ours := _asked(base)) != (theirs := _asked(new)):
        found.append(f"they ask for different things: {ours} and {theirs}")
    if base.workload.seed != new.workload.seed:
        found.append(f"the seeds differ: {base.workload.seed} and {new.workload.seed}")
    if base.conditions.simulated != new.conditions.simulated and not allow_simulated:
        found.append("one is simulated: --allow-simulated compares them")
    return tuple(found)


def _asked(run: Run) -> str:
    return f"{run.workload.name}@{run.workload.version}"


def changes(base: Run, new: Run) -> tuple[OutcomeChange, ...]:
    """Changes of the outcomes that both have, in the order of the base."""
    known = {one.name: one for one in (new.evaluation.outcomes if new.evaluation else ())}
    ours = base.evaluation.outcomes if base.evaluation else ()
    return tuple(_change(one, known[one.name]) for one in ours if one.name in known)


def _change(base: ProbeOutcome, new: ProbeOutcome) -> OutcomeChange:
    if base.score and new.score:
        return OutcomeChange(base.name, _share(base.score), _share(new.score), _beyond(base.score, new.score))
    ranks = _RANK[base.state], _RANK[new.state]
    verdict = "same" if base.state is new.state else "unclear"
    if ranks[0] != ranks[1] and 1 not in ranks:
        verdict = "better" if ranks[1] < ranks[0] else "worse"
    return OutcomeChange(base.name, base.state, new.state, verdict)


def _share(score: Score) -> str:
    return f"{score.good} of {score.of}"


def _beyond(base: Score, new: Score) -> str:
    """The direction of the change, by the 95 % interval of the difference of two Wilson scores:
    https://doi.org/10.1002/(SICI)1097-0258(19980430)17:8"""
    if not (base.of and new.of):
        return "unclear"
    difference = new.share - base.share
    if difference - sqrt((new.share - new.low) ** 2 + (base.high - base.share) ** 2) > 0:
        return "better"
    return "worse" if difference + sqrt((new.high - new.share) ** 2 + (base.share - base.low) ** 2) < 0 else "same"
