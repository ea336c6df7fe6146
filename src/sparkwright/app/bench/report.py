"""Reports of stored runs: one, several compared, or one judged by thresholds."""

import json
from collections.abc import Sequence
from enum import StrEnum

from sparkwright.app.bench.runs import LAST, chosen, loaded
from sparkwright.domain.codec import encodable
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Run
from sparkwright.domain.summary import Comparison, GateResult, RunSummary
from sparkwright.domain.values import asdict, dataclass
from sparkwright.loadgen.compare import compare
from sparkwright.loadgen.endurance import as_outcomes, endurance, is_soak
from sparkwright.loadgen.gate_lines import Gate
from sparkwright.loadgen.gates import judge_gates, judge_runs
from sparkwright.loadgen.stats import summarize
from sparkwright.ports import RunStore
from sparkwright.report.evaluation import evaluation_markdown, evaluation_page
from sparkwright.report.html import report_page
from sparkwright.report.markdown import markdown
from sparkwright.report.tables import report_tree


class ReportForm(StrEnum):
    HTML = "html"
    MARKDOWN = "md"
    JSON = "json"


async def find_run_ids(runs: RunStore, wanted: Sequence[str]) -> tuple[str, ...]:
    """The ids of the runs that are asked for, each once; without any, the newest. Raises UsageError."""
    return tuple(dict.fromkeys([(await chosen(runs, word)).id for word in wanted or (LAST,)]))


async def report(runs: RunStore, names: Sequence[str], form: ReportForm, maker: str) -> str:
    """The whole text. The first run is what the others are compared with. Raises UsageError, StoreError."""
    found = [await runs.load(name) for name in names]
    if all(run.evaluation for run in found):
        return evaluated(found, form, maker)
    if odd := next((run for run in found if run.evaluation), None):
        raise UsageError(f"{odd.id} is an evaluation: it has a report of its own", f"sparkwright report {odd.id}")
    summaries = [summarize(run) for run in found]
    return written(summaries, compared_with_first(summaries), form, maker)


async def evaluations(runs: RunStore, words: Sequence[str]) -> tuple[Run, ...]:
    """The runs, if the first is an evaluation; () for benchmarks. Raises UsageError."""
    first = await loaded(runs, words[0])
    found = (first, *[await loaded(runs, word) for word in words[1:]]) if first.evaluation else ()
    return tuple(as_outcomes(run) if is_soak(run) else run for run in found)


def evaluated(runs: Sequence[Run], form: ReportForm, maker: str) -> str:
    soaks = {run.id: endurance(run) for run in runs if is_soak(run)}
    match form:
        case ReportForm.HTML:
            return evaluation_page(runs, soaks, maker)
        case ReportForm.MARKDOWN:
            return evaluation_markdown(runs, soaks)
        case ReportForm.JSON:
            return encodable(json.dumps({"runs": [asdict(run) for run in runs]}, indent=2, ensure_ascii=False)) + "\n"


def compared_with_first(summaries: Sequence[RunSummary]) -> list[Comparison]:
    """Each with the first. One that cannot be compared is there with the reason."""
    return [compare(summaries[0], other) for other in summaries[1:]]


def written(summaries: Sequence[RunSummary], comparisons: Sequence[Comparison], form: ReportForm, maker: str) -> str:
    match form:
        case ReportForm.HTML:
            return report_page(summaries, comparisons, maker)
        case ReportForm.MARKDOWN:
            return markdown(summaries, comparisons)
        case ReportForm.JSON:
            return encodable(json.dumps(report_tree(summaries, comparisons), indent=2, ensure_ascii=False)) + "\n"


@dataclass(frozen=True, slots=True)
class Against:
    """One run compared with the base. results: of the gates, () without any."""

    summary: RunSummary
    comparison: Comparison
    results: tuple[GateResult, ...] = ()


@dataclass(frozen=True, slots=True)
class GatedRun:
    """One run by gates. refused: why what was named as the baseline is none."""

    summary: RunSummary
    results: tuple[GateResult, ...]
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgedTogether:
    """Several runs by one set of gates. refused: as in Judged."""

    summaries: tuple[RunSummary, ...]
    results: tuple[GateResult, ...]
    refused: tuple[str, ...]


async def compared(
    runs: RunStore, base: str, others: Sequence[str], gates: Sequence[Gate], allow_simulated: bool
) -> tuple[RunSummary, tuple[Against, ...]]:
    """The base, and each run compared with it. Raises UsageError."""
    first, *rest = [summarize(await loaded(runs, word)) for word in (base, *others)]
    return first, tuple(_against(first, one, gates, allow_simulated) for one in rest)


def _against(base: RunSummary, new: RunSummary, gates: Sequence[Gate], allow_simulated: bool) -> Against:
    """Runs that cannot be compared are no baseline for each other either."""
    comparison = compare(base, new, allow_simulated)
    return Against(new, comparison, judge_gates(gates, new, None if comparison.refused else base) if gates else ())


async def judge_stored_runs(
    runs: RunStore, words: Sequence[str], gates: Sequence[Gate], baseline: str, allow_simulated: bool
) -> JudgedTogether:
    """Raises UsageError."""
    ids = await find_run_ids(runs, words)
    found = [summarize(await runs.load(name)) for name in ids]
    base = summarize(await loaded(runs, baseline)) if baseline else None
    refused = [compare(base, one, allow_simulated).refused if base and one.run.levels else () for one in found]
    pairs = [(one, None if why else base) for one, why in zip(found, refused, strict=True)]
    told = tuple(why for whys in refused for why in whys)
    return JudgedTogether(tuple(found), judge_runs(gates, pairs), told)


def judged(summary: RunSummary, gates: Sequence[Gate], base: RunSummary | None, allow_simulated: bool) -> GatedRun:
    if base is None:
        return GatedRun(summary, judge_gates(gates, summary))
    against = _against(base, summary, gates, allow_simulated)
    return GatedRun(summary, against.results, against.comparison.refused)
