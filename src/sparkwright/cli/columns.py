"""Columns of text, lines that fit the terminal, and findings: one entry for what several nodes share."""

import re
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.printable import printable
from sparkwright.domain.units import exact_number

if TYPE_CHECKING:  # `diagnose FILE` starts without recipes
    from sparkwright.domain.recipe import Figure

_COLORS = re.compile(r"(\x1b\[(?:0|1|3[1-6])m)")
SIMULATED = "SIMULATED"


def simulated_mark(simulated: bool) -> str:
    """The beginning of a line about simulated things."""
    return f"{SIMULATED}  " if simulated else ""


def echo_text(text: str, err: bool = False) -> None:
    """Prints text that may come from nodes: of control sequences only the colors of `click.style` pass."""
    click.echo(printable_text(text), err=err)


def printable_text(text: str) -> str:
    return "".join(part if n % 2 else printable(part) for n, part in enumerate(_COLORS.split(text)))


def in_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Left-aligned columns, two spaces apart, a line a row."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Indented columns; an empty column is left out."""
    used = [column for column in zip(*rows, strict=True) if any(column)]
    return "\n".join(f"  {line}".rstrip() for line in in_columns(list(zip(*used, strict=True))))


def fold_line(text: str, indent: int) -> str:
    """A long line broken for the terminal, its other lines indented; as it is where no terminal is."""
    if not sys.stdout.isatty():
        return text
    width = max(shutil.get_terminal_size().columns - 1, indent + 40)
    lines = textwrap.wrap(text, width, subsequent_indent=" " * indent, break_on_hyphens=False, break_long_words=False)
    return "\n".join(lines)


def published_text(figures: "Sequence[Figure]", why: bool) -> str:
    """The published figures by source; with `why` each with its conditions."""
    lines = [f"published figures (not ours{'' if why else '; --why: their conditions'})"]
    groups: dict[str, list[Figure]] = {}
    for one in figures:
        groups.setdefault(one.source, []).append(one)
    for source, group in groups.items():
        if why:
            lines += [
                fold_line(f"  {_published(one)} ({'; '.join(filter(None, (one.conditions, source)))})", 6)
                for one in group
            ]
        else:
            lines.append(fold_line(f"  {'; '.join(map(_published, group))} ({source})", 4))
    return "\n".join(fold_line(line, 4) for line in lines) if figures else ""


def _published(one: "Figure") -> str:
    return f"{one.what}: {exact_number(one.value)} {one.unit}"


def fold_command(head: str, step: str) -> str:
    """head and step as fold does, but a command stays in one piece, to be copied; its remark goes on below it."""
    command, sharp, remark = step.partition("   # ")
    folded = fold_line(head + step, len(head))
    if folded == head + step or not (sharp or _looks_typed(command)):
        return folded
    return head + command + ("\n" + fold_line(" " * (len(head) + 2) + "# " + remark, len(head) + 4) if sharp else "")


def _looks_typed(text: str) -> bool:
    """True for a command, False for a sentence."""
    return ", " not in text and re.match(r"(sudo|docker|export|pip|printf|[\w./-]+ -|--|[A-Z_]+=)", text) is not None


COLORS = {Severity.BLOCK: "red", Severity.OVERRIDE: "red", Severity.WARN: "yellow", Severity.INFO: "blue"}
_INDENT = 14


def severity_word(severity: Severity) -> str:
    """`override` is an error on screens: `up` refuses it until --force."""
    return "error" if severity is Severity.OVERRIDE else severity


def findings_text(findings: Sequence[Finding], nodes: Collection[str] = (), fixes: bool = False) -> str:
    """Worst first as they come: code, subject, title, then evidence, cause and remedy where there are any.

    What several nodes share is printed once. nodes: which ones are all. fixes: also what `check --fix` would do.
    """
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for one in findings:
        groups.setdefault((one.code, one.severity, one.cause), []).append(one)
    return "\n".join(line for group in groups.values() for line in _entry(group, nodes, fixes))


def _entry(group: Sequence[Finding], nodes: Collection[str], fixes: bool) -> Iterator[str]:
    first = group[0]
    head = f"{severity_word(first.severity).upper():<8} {first.code}"
    for number, (title, subjects) in enumerate(_by_text((one.subject, one.title) for one in group).items()):
        lead = head if not number else " " * len(head)
        line = fold_line(f"{lead}  {_named(subjects, nodes)}: {title}", len(head) + 2)
        yield click.style(lead, fg=COLORS[first.severity], bold=True) + line[len(lead) :]
    for label in ("evidence", "cause"):
        yield from _lines(label, [(one.subject, getattr(one, label)) for one in group], nodes)
    yield from _lines("remedy", [(one.subject, _remedy(one, len(group) > 1)) for one in group], nodes)
    if fixes:
        yield from _lines("--fix", [(one.subject, one.fix.says if one.fix else "") for one in group], nodes)


def _remedy(finding: Finding, several: bool) -> str:
    """The remedy; on several nodes its text is equal, so that they share an entry."""
    here = f"on {finding.subject}: "
    several = several and finding.remedy.startswith(here)
    return f"on each: {finding.remedy.removeprefix(here)}" if several else finding.remedy


def _lines(label: str, told: Sequence[tuple[str, str]], nodes: Collection[str]) -> Iterator[str]:
    """The text of all, once; else each text with its subjects."""
    by_text = _by_text(told)
    by_text.pop("", None)
    alone = len(by_text) == 1 and all(text for _, text in told)
    for number, (text, subjects) in enumerate(by_text.items()):
        where = "" if alone else f"{_named(subjects, nodes)}: "
        yield fold_line(f"    {f'{label}:' if not number else '':<9} {where}{text}", _INDENT)


def _by_text(told: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Text -> its subjects, each once; a subject may be several nodes (`a, b`)."""
    found: dict[str, dict[str, None]] = {}
    for subject, text in told:
        found.setdefault(text, {}).update(dict.fromkeys(subject.split(", ")))
    return {text: list(subjects) for text, subjects in found.items()}


def _named(subjects: Sequence[str], nodes: Collection[str]) -> str:
    return f"all {len(nodes)} nodes" if len(nodes) > 2 and set(subjects) == set(nodes) else ", ".join(subjects)
