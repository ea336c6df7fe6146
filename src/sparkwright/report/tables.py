"""Runs as tables of text: the same rows for the page, for Markdown and for the terminal."""

from collections.abc import Callable, Sequence
from typing import Any

from sparkwright.domain.summary import Comparison, Interval, LevelSummary, MetricComparison, RunSummary
from sparkwright.domain.units import gib, percent, three_digits
from sparkwright.domain.values import asdict, dataclass
from sparkwright.report.texts import TITLES, column_head, engine_text, figure, with_interval

Write = Callable[[str, Interval], str]  # a metric's name and its figure, as a cell


@dataclass(frozen=True, slots=True)
class Table:
    """Columns: the first is a name, all others are figures."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    says: str = ""


# Of the main table: metric, statistic.
COLUMNS = (
    ("decode", "median"),
    ("prefill", "median"),
    ("ttft", "median"),
    ("ttft", "p99"),
    ("tpot", "median"),
    ("itl", "p99"),
    ("end_to_end", "median"),
    ("output_rate", "median"),
    ("request_rate", "median"),
    ("goodput", "median"),
    ("acceptance", "median"),
    ("cached_share", "median"),
)
# What readers call the names of engines/data/engines.
SERVER = {
    "requests_running": "most running",
    "requests_waiting": "most waiting",
    "kv_cache_usage": "most KV in use",
    "preemptions_total": "preemptions",
    "prompt_tokens_total": "prompt tokens",
    "generation_tokens_total": "output tokens",
    "prefix_cache_hits_total": "prefix tokens found",
    "prefix_hit_share": "prefix hits",
    "acceptance": "accepted a step",
    "memory_available_least": "least memory free",
}
_SHARES = ("kv_cache_usage", "prefix_hit_share")
_INTERVALS = "With 95 % bootstrap intervals."
_COMPARED = ("decode", "prefill", "ttft", "tpot", "output_rate", "goodput")
_STATISTICS = {"median": "", "p90": " p90", "p99": " p99", "mean": " mean"}


def levels_table(summary: RunSummary, write: Write = with_interval) -> Table:
    """One row a level, its medians with intervals; columns that no level has are left out.

    write: a metric's median as a cell.
    """
    levels = whole_levels(summary)
    wanted = [column for column in COLUMNS if any(column[0] in level.metrics for level in levels)]
    heads = ("level", *(column_head(name) + _STATISTICS[which] for name, which in wanted), "requests")
    rows = [(level.name, *(table_cell(level, *one, write) for one in wanted), requests_text(level)) for level in levels]
    return Table("Levels", heads, tuple(rows), f"Medians over requests. {_INTERVALS}")


def whole_levels(summary: RunSummary) -> list[LevelSummary]:
    """Levels as a whole, without their parts."""
    return [level for level in summary.levels if not level.part]


def table_cell(level: LevelSummary, metric: str, statistic: str, write: Write) -> str:
    """The cell; '' if the level has no such figure: nothing is ever made up, zero least of all."""
    found = level.metrics.get(metric)
    if found is None:
        return ""
    interval: Interval | None = getattr(found, statistic)
    if interval is None and statistic == "median" and found.mean:
        return f"{figure(metric, found.mean.value)} mean"
    if interval is None:
        return ""
    text = write(metric, interval) if statistic == "median" else figure(metric, interval.value)
    return f"not valid: {text}" if metric in level.spoiled else text


def requests_text(level: LevelSummary) -> str:
    """`30`, or `28 of 30` where some failed; with the share that met the limits."""
    count = str(level.sent) if level.good == level.sent else f"{level.good} of {level.sent}"
    return count if level.met is None else f"{count}, {percent(level.met)} in SLO"


def errors_table(summary: RunSummary) -> Table | None:
    rows = [(level.name, kind, str(count)) for level in whole_levels(summary) for kind, count in level.errors.items()]
    return Table("Failed requests", ("level", "kind", "requests"), tuple(rows)) if rows else None


def server_table(summary: RunSummary) -> Table | None:
    """The server's own figures, as it gave them."""
    levels = [level for level in whole_levels(summary) if level.server]
    names = list(dict.fromkeys(name for level in levels for name in level.server))
    if not names:
        return None
    rows = [(level.name, *(_server(level, name) for name in names)) for level in levels]
    heads = ("level", *(SERVER.get(name, name.replace("_", " ")) for name in names))
    return Table("The server's own figures", heads, tuple(rows), "From /metrics, over each level.")


def _server(level: LevelSummary, name: str) -> str:
    if name not in level.server:
        return ""
    value = level.server[name]
    if name.startswith("memory_"):
        return gib(value)
    if name in _SHARES:
        return f"{percent(value)}"
    return f"{value:,.0f}" if name.startswith("requests_") or name.endswith("_total") else three_digits(value)


def comparison_table(comparison: Comparison) -> Table:
    """Base and new side by side, with the verdict on each figure."""
    rows = [
        (
            f"{row.level}, {row.part}" if row.part else row.level,
            TITLES.get(row.metric, row.metric) + _STATISTICS.get(row.statistic, f" {row.statistic}"),
            with_interval(row.metric, row.base),
            with_interval(row.metric, row.new),
            ratio_text(row.ratio),
            row.verdict,
        )
        for row in comparison.rows
    ]
    heads = ("level", "figure", comparison.base, comparison.new, "ratio", "verdict")
    return Table(f"{comparison.new} against {comparison.base}", heads, tuple(rows), _INTERVALS)


def matrix_table(comparison: Comparison) -> Table:
    """The verdicts that most want first: medians of whole levels, one row a level."""
    found = {(row.level, row.metric): row for row in comparison.rows if not row.part and row.statistic == "median"}
    metrics = [metric for metric in _COMPARED if any(metric == other for _, other in found)]
    levels = list(dict.fromkeys(level for level, _ in found))
    rows = [(level, *(_verdict(found.get((level, metric))) for metric in metrics)) for level in levels]
    says = f"{comparison.new} as a multiple of {comparison.base}. Better or worse: the 95 % interval excludes 1."
    head = ("level", *(TITLES[metric] for metric in metrics))
    return Table(f"{comparison.new} against {comparison.base}", head, tuple(rows), says)


def _verdict(row: MetricComparison | None) -> str:
    if row is None:
        return ""
    return f"{row.ratio.value:.2f} {row.verdict}" if row.ratio else row.verdict


def ratio_text(ratio: Interval | None) -> str:
    if ratio is None:
        return ""
    between = f" ({ratio.low:.2f} to {ratio.high:.2f})" if ratio.high > ratio.low else ""
    return f"{ratio.value:.2f}{between}"


def doubts(summary: RunSummary) -> list[str]:
    """Reasons why figures may not count: of the run as a whole, then level by level; each once."""
    whole_run = list(dict.fromkeys(summary.invalid))

    def own(level: LevelSummary) -> list[str]:
        return [doubt for doubt in level.doubts if not any(text.endswith(doubt) for text in whole_run)]

    return whole_run + _by_level(summary, own)


def level_notes(summary: RunSummary) -> list[str]:
    """Notes on figures that count, level by level; those of all levels appear once."""
    return _by_level(summary, lambda level: level.notes)


def _by_level(summary: RunSummary, said: Callable[[LevelSummary], Sequence[str]]) -> list[str]:
    levels = whole_levels(summary)
    where: dict[str, list[str]] = {}
    for level in levels:
        for text in said(level):
            where.setdefault(text, []).append(level.plan.name)
    return [text if len(at) == len(levels) else f"{', '.join(at)}: {text}" for text, at in where.items()]


def verdict(summary: RunSummary) -> str:
    """One word for the badge."""
    if summary.invalid:
        return "not valid"
    if summary.run.state != "done":
        return "unfinished"
    return "valid, with doubts" if any(level.doubts for level in summary.levels) else "valid"


def run_labels(summaries: Sequence[RunSummary]) -> list[str]:
    """The label of each run among others: model and engine where these differ, else its id."""
    runs = [summary.run for summary in summaries]
    names = [", ".join(filter(None, (run.conditions.model or run.id, engine_text(run.conditions)))) for run in runs]
    if len(set(names)) == len(names):
        return names
    return [f"{name} ({run.id})" for name, run in zip(names, runs, strict=True)]


SCHEMA = 1


def report_tree(summaries: Sequence[RunSummary], comparisons: Sequence[Comparison]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "runs": [_run(summary) for summary in summaries],
        "comparisons": [asdict(one) for one in comparisons],
    }


def _run(summary: RunSummary) -> dict[str, Any]:
    run = summary.run
    return {
        "id": run.id,
        "verdict": verdict(summary),
        "simulated": run.conditions.simulated,
        "began": run.began,
        "ended": run.ended,
        "state": run.state,
        "workload": f"{run.workload.name}@{run.workload.version}",
        "conditions": asdict(run.conditions),
        "doubts": doubts(summary),
        "notes": level_notes(summary),
        "best_rate": summary.best_rate,
        "levels": [{"name": level.plan.name, **asdict(level)} for level in summary.levels],
    }
