"""Runs as Markdown for a post: tables in the form that the field uses, conditions folded away below."""

import re
from collections.abc import Sequence
from dataclasses import replace

from sparkwright.domain.summary import Comparison, LevelSummary, RunSummary
from sparkwright.domain.workload import Single
from sparkwright.report.agentic import gap_words, turns_table
from sparkwright.report.tables import Table, comparison_table, doubts, errors_table, levels_table, verdict, whole_levels
from sparkwright.report.texts import conditions, engine_text, field_name

_FIELD_HEAD = ("model", "test", "t/s", "TTFT (ms)", "TPOT (ms)")
_SPECIAL = re.compile(r"[\\`*_\[\]<>|#~$&]|@(?=\w)")


def markdown(summaries: Sequence[RunSummary], comparisons: Sequence[Comparison] = ()) -> str:
    """Ends with a newline."""
    parts = [_run(summary) for summary in summaries] + [_compared(one) for one in comparisons]
    return "\n\n".join(parts) + "\n"


def _run(summary: RunSummary) -> str:
    known = summary.run.conditions
    engine = f" on {engine_text(known)}" if known.engine else ""
    turns, errors = turns_table(summary), errors_table(summary)
    rows = tuple((name, "; ".join(text.splitlines())) for name, text in conditions(summary.run))
    parts = [
        f"## {escaped((known.model or summary.run.id) + engine)}",
        _status(summary),
        _main(summary),
        *((escaped(gap_words([summary])), markdown_table(turns)) if turns else ()),
        f"**{errors.title}**\n\n{markdown_table(errors)}" if errors else "",
        f"<details><summary>Conditions</summary>\n\n{markdown_table(Table('', ('', ''), rows), left=2)}\n\n</details>",
    ]
    return "\n\n".join(filter(None, parts))


def _status(summary: RunSummary) -> str:
    told = [
        f"Run `{escape_code(summary.run.id)}`, workload `{escape_code(summary.run.workload.name)}`: {verdict(summary)}."
    ]
    if summary.run.conditions.simulated:
        told.insert(0, "**SIMULATED: a simulated engine answered. These are no figures of real hardware.**")
    told += [f"- {escaped(doubt)}" for doubt in doubts(summary)]
    return told[0] + "".join(f"\n{'' if line.startswith('-') else chr(10)}{line}" for line in told[1:])


def _main(summary: RunSummary) -> str:
    single = [
        level for level in whole_levels(summary) if isinstance(level.plan.shape, Single) and field_rows(summary, level)
    ]
    other = [level for level in whole_levels(summary) if level not in single]  # also what failed as a whole
    parts = []
    if single:
        parts.append(
            markdown_table(field_table(summary, single), "±: half of the 95 % bootstrap interval of the median.")
        )
    if other:
        parts.append(markdown_table(levels_table(replace(summary, levels=tuple(other)))))
    return "\n\n".join(parts)


def field_table(summary: RunSummary, levels: Sequence[LevelSummary]) -> Table:
    """`pp2048 @ d4096` and `tg128 @ d4096`, each on a line of its own: the form of llama-bench and its kin."""
    return Table("", _FIELD_HEAD, tuple(row for level in levels for row in field_rows(summary, level)))


def field_rows(summary: RunSummary, level: LevelSummary) -> list[tuple[str, ...]]:
    """Prefill, then decode; [] of a level that has neither."""
    return [row for part in ("pp", "tg") if (row := _field_row(summary, level, part))]


def _field_row(summary: RunSummary, level: LevelSummary, part: str) -> tuple[str, ...] | None:
    if not (rate := _with_half(level, "prefill" if part == "pp" else "decode", 1.0)):
        return None
    first = _with_half(level, "ttft", 1000.0) if part == "pp" else ""
    each = _with_half(level, "tpot", 1000.0) if part == "tg" else ""
    return summary.run.conditions.model, field_name(level.plan, part), rate, first, each


def _with_half(level: LevelSummary, metric: str, scale: float) -> str:
    found = level.metrics.get(metric)
    middle = found.central if found else None
    if middle is None:
        return ""
    half = (middle.high - middle.low) / 2
    return f"{middle.value * scale:.2f} ± {half * scale:.2f}" if half else f"{middle.value * scale:.2f}"


def _compared(comparison: Comparison) -> str:
    found = comparison_table(comparison)
    said = [f"- not comparable: {escaped(why)}" for why in comparison.refused]
    said += [f"- {escaped(note)}" for note in comparison.notes]
    parts = [f"## {escaped(found.title)}", "\n".join(said), markdown_table(found, left=2) if found.rows else ""]
    return "\n\n".join(filter(None, parts))


def markdown_table(shown: Table, says: str = "", left: int = 1) -> str:
    rule = [":---" if column < left else "---:" for column in range(len(shown.head))]
    lines = [_line([escaped(cell) for cell in row]) for row in (shown.head, *shown.rows)]
    text = "\n".join([lines[0], _line(rule), *lines[1:]])
    return f"{text}\n\n{says or shown.says}" if says or shown.says else text


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    """No name can end a cell, open a tag or call a user."""
    return _SPECIAL.sub(r"\\\g<0>", " ".join(text.split()))


def escape_code(text: str) -> str:
    """The text for inside of backquotes."""
    return text.replace("`", "'").replace("\n", " ")
