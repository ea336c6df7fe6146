"""Columns of text, and lines that fit the terminal."""

import re
import shutil
import sys
import textwrap
from collections.abc import Sequence

import click

from sparkwright.domain.printable import printable

_COLORS = re.compile(r"(\x1b\[(?:0|1|3[1-6])m)")


def echo(text: str, err: bool = False) -> None:
    """Prints text that may come from nodes: of control sequences only the colors of `click.style` pass."""
    click.echo(shown(text), err=err)


def shown(text: str) -> str:
    return "".join(part if n % 2 else printable(part) for n, part in enumerate(_COLORS.split(text)))


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Indented columns, two spaces apart; an empty column is left out."""
    used = [column for column in zip(*rows, strict=True) if any(column)]
    widths = [max(map(len, column)) for column in used]
    lines = [zip(row, widths, strict=True) for row in zip(*used, strict=True)]
    return "\n".join(f"  {'  '.join(cell.ljust(width) for cell, width in line)}".rstrip() for line in lines)


def fold(text: str, indent: int) -> str:
    """A long line broken for the terminal, its other lines indented; as it is where no terminal is."""
    if not sys.stdout.isatty():
        return text
    width = max(shutil.get_terminal_size().columns - 1, indent + 40)
    lines = textwrap.wrap(text, width, subsequent_indent=" " * indent, break_on_hyphens=False, break_long_words=False)
    return "\n".join(lines)


def fold_command(head: str, step: str) -> str:
    """head and step as fold does, but a command stays in one piece, to be copied; its remark goes on below it."""
    command, sharp, remark = step.partition("   # ")
    folded = fold(head + step, len(head))
    if folded == head + step or not (sharp or _looks_typed(command)):
        return folded
    return head + command + ("\n" + fold(" " * (len(head) + 2) + "# " + remark, len(head) + 4) if sharp else "")


def _looks_typed(text: str) -> bool:
    """Whether this is a command and not a sentence."""
    return ", " not in text and re.match(r"(sudo|docker|export|pip|printf|[\w./-]+ -|--|[A-Z_]+=)", text) is not None
