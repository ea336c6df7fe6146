"""Figures of a run as a whole, for gates: what an evaluation found."""

from collections.abc import Callable, Mapping

from sparkwright.domain.evaluation import Evaluation, State
from sparkwright.domain.run import Run
from sparkwright.loadgen.gate_lines import OUTCOME, QUALITY

Figure = tuple[float | None, str]  # None: there is none, and why
# Where no run has the figure: of levels, of an evaluation.
WANTED = ("no benchmark is judged, which alone", "no evaluation is judged, which alone")


def has(metric: str, run: Run) -> bool:
    """Whether it is a run of the kind that can have the figure."""
    if metric not in QUALITY:
        return bool(run.levels) or not run.evaluation
    return bool(run.evaluation and run.evaluation.outcomes) and (metric == "score") == _scored(run)


def _scored(run: Run) -> bool:
    return any(one.score for one in run.evaluation.outcomes) if run.evaluation else False


def figure(metric: str, run: Run, where: Mapping[str, str]) -> Figure:
    return _FIGURES[metric](run, run.evaluation or Evaluation(""), where)


def _failed_probes(run: Run, found: Evaluation, _: Mapping[str, str]) -> Figure:
    """Also those without an answer. Nothing judged, or not everything asked, is no figure."""
    odd = [one for one in found.outcomes if one.state in (State.FAILED, State.BROKEN)]
    why = "; ".join(f"{one.name}: {one.detail}" for one in odd[:3])
    if not odd and run.state == "stopped":
        return None, "it was stopped before its end"
    if not odd and not found.passed:
        return None, "no probe could be judged"
    return float(len(odd)), why


def _score(_: Run, found: Evaluation, where: Mapping[str, str]) -> Figure:
    """Of the outcome that is selected, else of the first: whole prompts, strict."""
    scored = {one.name.replace(", ", "-").replace(" ", "-"): one.score for one in found.outcomes if one.score}
    score = scored.get(where.get(OUTCOME, next(iter(scored), "")))
    if score is None or not score.of:
        return None, f"no such score; there are {', '.join(scored) or 'none'}"
    return score.share, f"{score.good} of {score.of}, 95 % interval {score.low:.1%} to {score.high:.1%}"


_FIGURES: Mapping[str, Callable[[Run, Evaluation, Mapping[str, str]], Figure]] = {
    "failed_probes": _failed_probes,
    "score": _score,
}
