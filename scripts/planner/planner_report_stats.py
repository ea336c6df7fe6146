"""Answers -> counts, medians and 90th percentiles; the targets that they are compared with."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planner_report_answers import PlannerAnswer


@dataclass(frozen=True, slots=True)
class ErrorTarget:
    """The targets for absolute relative errors, None if nothing is asked. inside: share of rows within the planner's
    interval.

    title: of the quantity. limit: beyond it a row is named and explained; 0: when it leaves its interval.
    """

    title: str
    median: float | None = None
    ninety: float | None = None
    inside: float | None = None
    limit: float = 0.0


# The targets of the planner's own specification; quantities without one are shown and not judged.
TARGETS = {
    "kv_tokens_given_gib": ErrorTarget("KV tokens given the engine's own KV GiB", ninety=0.03, inside=0.85, limit=0.03),
    "kv_tokens_unknown_draft": ErrorTarget("KV tokens with a draft model that the source does not describe"),
    "weights_gib": ErrorTarget("Weights, GiB a rank", ninety=0.03, inside=0.85, limit=0.03),
    "weights_unsized": ErrorTarget("Weights of a 4-bit checkpoint whose size the source does not give"),
    "kv_gib": ErrorTarget("KV GiB from recipe and node alone", ninety=0.15, inside=0.85, limit=0.15),
    "fits": ErrorTarget("Fits or does not fit", limit=0.5),
    "decode_tps": ErrorTarget("Decode, one stream, no speculation", median=0.10, inside=0.9),
    "prefill_tps": ErrorTarget("Prefill, one stream", inside=0.85),
    "decode_tps_calibrated": ErrorTarget("Decode at other depths, from one calibration point"),
    "decode_tps_concurrent": ErrorTarget("Decode, several streams", inside=0.85),
    "decode_tps_speculative": ErrorTarget("Decode with speculation", median=0.20, inside=0.85),
    "prefill_tps_concurrent": ErrorTarget("Prefill, several streams", inside=0.85),
    "ttft_s": ErrorTarget("Time to first token, one stream"),
    "load_s": ErrorTarget("Loading, from the start to an answer", inside=0.85),
}
NO_TO_WHAT_RAN = 0.03  # of `fits`: at most this share may be refused although it ran; the other way none


@dataclass(frozen=True, slots=True)
class ErrorFigures:
    """count: figures published; of them `answered` were predicted, from so many rows.

    inside: share of published figures within the planner's interval; width: how many times its low end the high end
    is, in the median. yes_no: whether it is a question of fitting. unsafe: predicted to fit, and failed. refused: not
    to fit, and ran. may: with a doubt; silent: the source leaves out what decides; passed_failed: both that failed.
    """

    count: int
    answered: int
    rows: int
    median: float | None
    ninety: float | None
    inside: float | None
    width: float | None = None
    yes_no: bool = False
    unsafe: int = 0
    refused: int = 0
    may: int = 0
    silent: int = 0
    passed_failed: int = 0
    ran: int = 0


def figures(answers: Sequence[PlannerAnswer], peer: bool = False) -> ErrorFigures:
    """A row counts once, however many points its curve has: with their median error and its share of hits."""
    errors, hits = defaultdict[str, list[float]](list), defaultdict[str, list[bool]](list)
    for a in answers:
        error = a.peer_error if peer else a.error
        if error is not None:
            errors[a.id].append(error)
        if a.inside is not None and not peer:
            hits[a.id].append(a.inside)
    sizes = sorted(statistics.median(map(abs, mine)) for mine in errors.values())
    yes_no = any(isinstance(a.published, bool) for a in answers)
    every = [error for mine in errors.values() for error in mine]
    return ErrorFigures(
        len(answers),
        len(every),
        len(errors),
        statistics.median(sizes) if sizes else None,
        percentile(sizes, 0.9),
        statistics.mean(sum(mine) / len(mine) for mine in hits.values()) if hits else None,
        _width(answers) if hits else None,
        yes_no,
        sum(1 for e in every if e > 0) if yes_no else 0,
        sum(1 for e in every if e < 0) if yes_no else 0,
        *_passed(answers),
    )


def _passed(answers: Sequence[PlannerAnswer]) -> tuple[int, int, int, int]:
    passed = [a for a in answers if a.passed]
    silent = sum(1 for a in passed if "does not state" in a.reason)
    ran = sum(1 for a in answers if a.published and (a.passed or a.predicted is not None))
    return len(passed) - silent, silent, sum(1 for a in passed if not a.published), ran


def _width(answers: Sequence[PlannerAnswer]) -> float:
    """The median width of the intervals; infinite if a low end is 0."""
    edges = [(a.low, a.high) for a in answers if a.low is not None and a.high is not None]
    return statistics.median(high / low if low > 0 else math.inf for low, high in edges)


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """The smallest value that this share of all does not exceed."""
    return ordered[math.ceil(share * len(ordered)) - 1] if ordered else None


def targets_met(target: ErrorTarget, found: ErrorFigures) -> bool | None:
    """True if every target holds; None if there is none or nothing was answered."""
    if not found.answered:
        return None
    if found.yes_no:
        return not found.unsafe and found.refused < NO_TO_WHAT_RAN * found.ran
    asked = [
        value is not None and value < wanted
        for value, wanted in ((found.median, target.median), (found.ninety, target.ninety))
        if wanted is not None
    ]
    if target.inside is not None:
        asked.append(found.inside is not None and found.inside >= target.inside)
    return all(asked) if asked else None


def beyond_limit(answers: Iterable[PlannerAnswer]) -> list[PlannerAnswer]:
    """The misses beyond their quantity's limit, where there is a target for it."""
    return [a for a in answers if a.error is not None and _over(a, TARGETS[a.quantity])]


def _over(answer: PlannerAnswer, target: ErrorTarget) -> bool:
    if target.limit:
        return abs(answer.error or 0.0) > target.limit
    return target.median is not None and answer.inside is False
