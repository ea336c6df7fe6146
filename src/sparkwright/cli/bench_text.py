"""The last screen of `bench`: figures, doubts, gates, comparison, next commands."""

import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from sparkwright.app.bench.report import judged
from sparkwright.cli.columns import aligned, fold_line, simulated_mark
from sparkwright.domain.run import Run
from sparkwright.domain.summary import Comparison, GateResult, RunSummary
from sparkwright.domain.units import duration
from sparkwright.loadgen.compare import compare
from sparkwright.loadgen.gate_lines import Gate
from sparkwright.loadgen.stats import summarize
from sparkwright.loadgen.validity import always_late
from sparkwright.report import tables
from sparkwright.report.agentic import gap_words, turns_table
from sparkwright.report.tables import Table
from sparkwright.report.texts import engine_text, with_percent

_MISSED_LEAST = ("accepted a step", "cached", "TPOT", "goodput, requests/s", "TTFT p99", "output, tokens/s")
_SHORT_OF_CPU = (
    "the client was short of CPU time: stop other programs on this machine, or run bench on another one that is idle"
)
_IN_THE_REPORT = ("ITL p99", "end to end", "requests/s")


def summary_text(summary: RunSummary) -> str:
    """One run: who and what, levels, turns, failures, doubts."""
    # Narrow: intervals in percent, without what is in the report only.
    says = "medians over requests; ±: half of the 95 % interval"
    levels = replace(_without(tables.levels_table(summary, with_percent), _IN_THE_REPORT), says=says)
    found = (
        fitting(levels, shutil.get_terminal_size().columns if sys.stdout.isatty() else 0),
        turns_table(summary, with_percent),
        tables.errors_table(summary),
        tables.server_table(summary),
    )
    notes = [f"doubt: {doubt}" for doubt in tables.doubts(summary)]
    notes += [f"note:  {note}" for note in tables.level_notes(summary)]
    notes += [f"hint:  {_SHORT_OF_CPU}"] if always_late(summary.run) else []
    parts = [_title(summary), *(table_text(table) for table in found if table and table.rows)]
    parts += [fold_line(gap_words([summary]), 0), "\n".join(fold_line(f"  {note}", 9) for note in notes)]
    return "\n\n".join(filter(None, parts))


def fitting(table: Table, width: int) -> Table:
    """The table without the least important columns that do not fit; 0: any width will do."""
    for name in _MISSED_LEAST:
        if not width or max(map(len, aligned((table.head, *table.rows)).splitlines())) <= width:
            break
        table = _without(table, (name,))
    return table


def _without(table: Table, names: Sequence[str]) -> Table:
    keep = [n for n, name in enumerate(table.head) if name not in names]
    rows = tuple(tuple(row[n] for n in keep) for row in table.rows)
    return replace(table, head=tuple(table.head[n] for n in keep), rows=rows)


def next_text(run: Run) -> str:
    """Commands that follow on it."""
    about = run.conditions
    rows = [
        (f"sparkwright report {run.id} -o report.html", "plots and conditions as one file"),
        (f"sparkwright report {run.id} --format md", "tables for a post"),
    ]
    if about.ours:
        rows.append((f"sparkwright report {run.id} --console", "plots for all who may see the console"))
    if about.ours and not about.front_door:
        rows.append((f"sparkwright bench {about.deployment} --gateway", "the same through its gateway: TLS and keys"))
    return f"next\n{aligned(rows)}"


def comparison_text(comparison: Comparison) -> str:
    table = tables.comparison_table(comparison)
    refused = [fold_line(f"not comparable: {why}", 2) for why in comparison.refused]
    said = [fold_line(f"note: {note}", 2) for note in comparison.notes]
    return "\n".join([*refused, *said, *([table_text(table)] if table.rows else [])])


def table_text(table: Table) -> str:
    """Its title, its columns; what must be known to read it, in brackets behind the title."""
    says = f" ({table.says.rstrip('.')})" if table.says else ""
    return f"{table.title}{says}\n{aligned((table.head, *table.rows))}"


def _title(summary: RunSummary) -> str:
    run, known = summary.run, summary.run.conditions
    engine = f" on {engine_text(known)}" if known.engine else ""
    took = f", {duration(run.ended - run.began)}" if run.ended > run.began else ""
    head = f"{simulated_mark(known.simulated)}{run.id}  {known.model}{engine}: {tables.verdict(summary)}"
    against = f" against {known.endpoint}" if known.endpoint else ""
    return f"{head}\n  {run.workload.name}@{run.workload.version}{against}{took}"


STOPPED = "stopped"


def bench_outcome(
    runs: Sequence[Run], gates: Sequence[Gate], baseline: Run | None = None, allow_simulated: bool = False
) -> tuple[dict[str, Any], str, int]:
    """JSON, last screen and exit code of `bench`. runs: as their endpoints were named. baseline: of the gates.

    The JSON has all but the requests: `sparkwright runs export` has those.
    """
    summaries = [summarize(run) for run in runs]
    base = summarize(baseline) if baseline and gates else None
    gated = [judged(one, gates, base, allow_simulated) for one in summaries if gates]
    comparisons = [compare(summaries[0], other, allow_simulated) for other in summaries[1:]]
    valid = not any(one.invalid for one in summaries)
    document = {
        "runs": [summary_json(one) for one in summaries],
        "comparisons": [asdict(one) for one in comparisons],
        "gates": [[asdict(result) for result in one.results] for one in gated],
        "no_baseline": [list(one.refused) for one in gated],
        "valid": valid,
    }
    parts = [summary_text(one) for one in summaries]
    parts += [gates_text(one.summary.run.id, one.results, one.refused) for one in gated]
    parts += [comparison_text(one) for one in comparisons]
    partial = (run.id for run in runs if run.state == STOPPED)
    parts += [f"{run} is not complete: sparkwright bench --resume {run} measures what is missing" for run in partial]
    failed = any(not result.passed for one in gated for result in one.results)
    return document, "\n\n".join([*parts, next_text(runs[-1])]), int(failed or not valid)


def gates_text(run: str, results: Sequence[GateResult], refused: Sequence[str] = ()) -> str:
    """One line a gate. refused: why the baseline is none."""
    lines = [f"gates of {run}", *(f"  no baseline: {why}" for why in refused)]
    for result in results:
        why = f" ({result.why})" if result.why else ""
        found = f"found {result.seen or 'no figure'}, expected {result.wanted}"
        lines.append(f"  {'pass' if result.passed else 'FAIL'}  {result.line}: {found}{why}")
    return "\n".join(lines)


def summary_json(summary: RunSummary) -> dict[str, Any]:
    run = summary.run
    bare = replace(summary, run=replace(run, levels=()))
    return {**asdict(bare), "simulated": run.conditions.simulated}
