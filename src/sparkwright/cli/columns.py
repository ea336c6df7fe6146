"""Columns of text."""

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Indented columns, two spaces apart; a column in which nothing stands is left out."""
    used = [column for column in zip(*rows, strict=True) if any(column)]
    widths = [max(map(len, column)) for column in used]
    lines = [zip(row, widths, strict=True) for row in zip(*used, strict=True)]
    return "\n".join(f"  {'  '.join(cell.ljust(width) for cell, width in line)}".rstrip() for line in lines)
