"""What a benchmark showed, as text for the terminal: figures, doubts, what to do next."""

import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace

from sparkwright.cli.columns import aligned, fold
from sparkwright.cli.text import mark
from sparkwright.domain.summary import Comparison, RunSummary
from sparkwright.domain.units import duration
from sparkwright.loadgen.validity import always_late
from sparkwright.report.agentic import gap_words, turns_table
from sparkwright.report.tables import (
    Table,
    comparison_table,
    doubts,
    errors_table,
    levels_table,
    notes,
    server_table,
    verdict,
)
from sparkwright.report.texts import engine_text, with_percent

_MISSED_LEAST = ("accepted a step", "cached", "TPOT", "goodput, requests/s", "TTFT p99", "output, tokens/s")
_SHORT_OF_CPU = (
    "the client was short of CPU time: stop other programs on this machine, or run bench on another one that is idle"
)
_IN_THE_REPORT = ("ITL p99", "end to end", "requests/s")


def summary_text(summary: RunSummary) -> str:
    """One run: who and what, levels, turns, failures, doubts."""
    found = [_levels(summary), turns_table(summary, with_percent), errors_table(summary), server_table(summary)]
    parts = [_title(summary), *(table_text(table) for table in found if table and table.rows)]
    if words := gap_words([summary]):
        parts.append(fold(words, 0))
    told = [fold(f"  doubt: {doubt}", 9) for doubt in doubts(summary)]
    told += [fold(f"  note:  {note}", 9) for note in notes(summary)]
    if always_late(summary.run):
        told.append(fold(f"  hint:  {_SHORT_OF_CPU}", 9))
    parts.append("\n".join(told))
    return "\n\n".join(part for part in parts if part)


def _levels(summary: RunSummary) -> Table:
    """Narrow: intervals in percent, without what is in the report only."""
    says = "medians over requests; ±: half of the 95 % interval"
    table = replace(_without(levels_table(summary, with_percent), _IN_THE_REPORT), says=says)
    return fitting(table, shutil.get_terminal_size().columns if sys.stdout.isatty() else 0)


def fitting(table: Table, width: int) -> Table:
    """Without as many of the columns that are missed least as it takes; 0: any width will do."""
    for name in _MISSED_LEAST:
        if not width or max(map(len, aligned((table.head, *table.rows)).splitlines())) <= width:
            break
        table = _without(table, (name,))
    return table


def _without(table: Table, names: Sequence[str]) -> Table:
    keep = [n for n, name in enumerate(table.head) if name not in names]
    rows = tuple(tuple(row[n] for n in keep) for row in table.rows)
    return replace(table, head=tuple(table.head[n] for n in keep), rows=rows)


def next_text(run: str, others: Sequence[str] = (), around: str = "") -> str:
    """Commands that follow on a run. others: earlier runs of the same workload, newest first. around: the deployment
    that was measured at its engine, not through its gateway.
    """
    rows = [(f"sparkwright report {run} -o report.html", "plots and conditions as one file")]
    rows.append((f"sparkwright report {run} --format md", "tables for a post"))
    rows += [(f"sparkwright compare {other} {run}", "against the run before") for other in others[:1]]
    rows += [(f"sparkwright bench {around} --gateway", "the same through its gateway: TLS and keys")] if around else []
    return f"next\n{aligned(rows)}"


def comparison_text(comparison: Comparison) -> str:
    table = comparison_table(comparison)
    refused = [fold(f"not comparable: {why}", 2) for why in comparison.refused]
    said = [fold(f"note: {note}", 2) for note in comparison.notes]
    return "\n".join([*refused, *said, *([table_text(table)] if table.rows else [])])


def table_text(table: Table) -> str:
    """Its title, its columns; what must be known to read it, in brackets behind the title."""
    says = f" ({table.says.rstrip('.')})" if table.says else ""
    return f"{table.title}{says}\n{aligned((table.head, *table.rows))}"


def _title(summary: RunSummary) -> str:
    run, known = summary.run, summary.run.conditions
    engine = f" on {engine_text(known)}" if known.engine else ""
    took = f", {duration(run.ended - run.began)}" if run.ended > run.began else ""
    head = f"{mark(known.simulated)}{run.id}  {known.model}{engine}: {verdict(summary)}"
    return f"{head}\n  {run.workload.name}@{run.workload.version} against {known.endpoint}{took}"
