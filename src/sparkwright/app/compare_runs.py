"""`compare` and `gate`: runs against a base, and against thresholds."""

from collections.abc import Sequence
from dataclasses import dataclass

from sparkwright.app.runs import loaded
from sparkwright.domain.summary import Comparison, GateResult, RunSummary
from sparkwright.loadgen.compare import compare
from sparkwright.loadgen.gate_lines import Gate
from sparkwright.loadgen.gates import judge
from sparkwright.loadgen.stats import summarize
from sparkwright.ports import RunStore


@dataclass(frozen=True, slots=True)
class Against:
    """One run compared with the base. results: of the gates, () without any."""

    summary: RunSummary
    comparison: Comparison
    results: tuple[GateResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """One run by gates. refused: why what was named as the baseline is none."""

    summary: RunSummary
    results: tuple[GateResult, ...]
    refused: tuple[str, ...] = ()


async def compared(
    runs: RunStore, base: str, others: Sequence[str], gates: Sequence[Gate], allow_simulated: bool
) -> tuple[RunSummary, tuple[Against, ...]]:
    """The base, and each run compared with it. Raises UsageError."""
    first, *rest = [summarize(await loaded(runs, word)) for word in (base, *others)]
    return first, tuple(_against(first, one, gates, allow_simulated) for one in rest)


def _against(base: RunSummary, new: RunSummary, gates: Sequence[Gate], allow_simulated: bool) -> Against:
    """Runs that cannot be compared are no baseline for each other either."""
    comparison = compare(base, new, allow_simulated)
    return Against(new, comparison, judge(gates, new, None if comparison.refused else base) if gates else ())


async def gated(runs: RunStore, word: str, gates: Sequence[Gate], baseline: str, allow_simulated: bool) -> Judged:
    """Raises UsageError."""
    summary = summarize(await loaded(runs, word))
    base = summarize(await loaded(runs, baseline)) if baseline else None
    return judged(summary, gates, base, allow_simulated)


def judged(summary: RunSummary, gates: Sequence[Gate], base: RunSummary | None, allow_simulated: bool) -> Judged:
    if base is None:
        return Judged(summary, judge(gates, summary))
    against = _against(base, summary, gates, allow_simulated)
    return Judged(summary, against.results, against.comparison.refused)
