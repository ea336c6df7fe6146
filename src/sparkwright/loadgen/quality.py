"""Figures of a run as a whole, for gates: what an evaluation or a soak found."""

from collections.abc import Callable, Mapping

from sparkwright.domain.evaluation import Evaluation, ProbeState
from sparkwright.domain.run import Run
from sparkwright.loadgen.endurance import endurance, is_soak, memory_text, shift_text
from sparkwright.loadgen.gate_lines import ENDURANCE, OUTCOME, QUALITY

Figure = tuple[float | None, str]  # None: there is none, and why


def wanted(metric: str) -> str:
    """The reason text if no run has the figure."""
    kind = "evaluation" if metric in QUALITY else "soak" if metric in ENDURANCE else "benchmark"
    return f"no {kind} is judged, which alone"


def can_have(metric: str, run: Run) -> bool:
    """True for a run of a kind that can have the figure."""
    if metric in ENDURANCE:
        return is_soak(run)
    if metric not in QUALITY:
        return bool(run.levels) or not run.evaluation
    outcomes = run.evaluation.outcomes if run.evaluation else ()
    return bool(outcomes) and (metric == "score") == any(one.score for one in outcomes)


def figure(metric: str, run: Run, where: Mapping[str, str]) -> Figure:
    return _FIGURES[metric](run, run.evaluation or Evaluation(""), where)


def _failed_probes(run: Run, found: Evaluation, _: Mapping[str, str]) -> Figure:
    """The number of failed probes, with those without an answer. Nothing judged, or not everything asked, is no
    figure."""
    odd = [one for one in found.outcomes if one.state in (ProbeState.FAILED, ProbeState.BROKEN)]
    why = "; ".join(f"{one.name}: {one.detail}" for one in odd[:3])
    if not odd and run.state == "stopped":
        return None, "it was stopped before its end"
    if not odd and not found.passed:
        return None, "no probe could be judged"
    return float(len(odd)), why


def _score(_: Run, found: Evaluation, where: Mapping[str, str]) -> Figure:
    """The score of the selected outcome, else of the first: whole prompts, strict."""
    scored = {one.name.replace(", ", "-").replace(" ", "-"): one.score for one in found.outcomes if one.score}
    score = scored.get(where.get(OUTCOME, next(iter(scored), "")))
    if score is None or not score.of:
        return None, f"no such score; there are {', '.join(scored) or 'none'}"
    return score.share, f"{score.good} of {score.of}, 95 % interval {score.low:.1%} to {score.high:.1%}"


def _memory(run: Run, each: bool) -> Figure:
    """The most that any node, or the server's process, lost; 0 of what is not above noise."""
    found = endurance(run).memory
    if not found:
        return None, "memory is unknown"
    sizes = [one.per_request if each else one.per_hour for one in found]
    lost = [size.value if size and one.leak else 0.0 for one, size in zip(found, sizes, strict=True)]
    return max(lost), memory_text(found[lost.index(max(lost))])


def _drift(run: Run, _: Evaluation, __: Mapping[str, str]) -> Figure:
    soak = endurance(run)
    if not soak.latency:
        return None, "too few requests for a drift to be seen"
    worst = max(soak.shifts, key=lambda one: one.change, default=None)
    return (max(0.0, worst.change), shift_text(worst)) if worst else (0.0, "")


def _faults(run: Run, _: Evaluation, __: Mapping[str, str]) -> Figure:
    """Failed requests, restarts, incidents and losses of the server."""
    soak = endurance(run)
    told = [one.text for one in soak.findings if one.kind in ("errors", "restart", "incident", "gone", "floor")]
    count = sum(soak.errors.values()) + soak.restarts
    count += sum(one.kind in ("incident", "gone", "floor") for one in soak.findings)
    return float(count), "; ".join(told[:3])


_FIGURES: Mapping[str, Callable[[Run, Evaluation, Mapping[str, str]], Figure]] = {
    "memory_per_hour": lambda run, *_: _memory(run, each=False),
    "memory_per_request": lambda run, *_: _memory(run, each=True),
    "latency_drift": _drift,
    "faults": _faults,
    "failed_probes": _failed_probes,
    "score": _score,
}
