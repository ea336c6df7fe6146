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
    """One run beside the base. results: of the gates, () without any."""

    summary: RunSummary
    comparison: Comparison
    results: tuple[GateResult, ...] = ()


async def compared(
    runs: RunStore, base: str, others: Sequence[str], gates: Sequence[Gate], allow_simulated: bool
) -> tuple[RunSummary, tuple[Against, ...]]:
    """The base, and each run beside it. Raises UsageError."""
    first, *rest = [summarize(await loaded(runs, word)) for word in (base, *others)]
    return first, tuple(_against(first, one, gates, allow_simulated) for one in rest)


def _against(base: RunSummary, new: RunSummary, gates: Sequence[Gate], allow_simulated: bool) -> Against:
    """Runs that cannot be compared are no baseline for each other either."""
    comparison = compare(base, new, allow_simulated)
    return Against(new, comparison, judge(gates, new, None if comparison.refused else base) if gates else ())


async def gated(
    runs: RunStore, word: str, gates: Sequence[Gate], baseline: str, allow_simulated: bool
) -> tuple[RunSummary, tuple[GateResult, ...], tuple[str, ...]]:
    """The run, its results, and why the baseline is none, if so. Raises UsageError."""
    summary = summarize(await loaded(runs, word))
    if not baseline:
        return summary, judge(gates, summary), ()
    base = summarize(await loaded(runs, baseline))
    against = _against(base, summary, gates, allow_simulated)
    return summary, against.results, against.comparison.refused
