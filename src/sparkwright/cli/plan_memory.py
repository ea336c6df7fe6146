"""The memory of every node: a bar of its pool with a legend, and line by line where each figure is from."""

import shutil
import sys
from collections.abc import Mapping, Sequence

from sparkwright.cli.columns import fold
from sparkwright.domain.ledger import IN_USE, KV_POOL, STATES, WEIGHTS, Lack, LedgerLine, MemoryLedger
from sparkwright.domain.units import GIB, gib

_MARKS = {"in use": "▒", "weights": "█", "engine": "▓", "KV pool": "░"}
_PLAIN = {"in use": "u", "weights": "W", "engine": "e", "KV pool": "k"}
LEFT, OVER = ".", "!"
_NAMES = {IN_USE: "in use", WEIGHTS: "weights", KV_POOL: "KV pool", STATES: "KV pool"}
_WIDTH, _WIDEST = 80, 120
_INDENT = 38  # where the reason of a line begins
_LACKS = {
    Lack.CLAIM: "the memory fraction claims more than is free now",
    Lack.POOL: "nothing is left for a KV pool",
    Lack.NODE: "more than the node has",
    Lack.CONTEXT: "the KV pool is too small for one sequence of full length",
}


def memory_text(ledgers: Sequence[MemoryLedger], why: bool) -> str:
    """One block a node; a legend or lines that are the same as of the node above are not repeated."""
    told: list[str] = []
    above: list[str] = []
    for ledger in ledgers:
        below = body(ledger, why)
        same = ["  line by line as above"] if why else []
        told += [*head(ledger), *(same if below and below == above else below)]
        above = below
    return "\n".join(told)


def head(ledger: MemoryLedger) -> list[str]:
    if not ledger.pool.bytes:
        return [f"memory {ledger.node}: not known: {ledger.pool.why}"]
    sums = f"memory {ledger.node}: {gib(ledger.pool.bytes)} pool, {gib(ledger.left)} left, {verdict_text(ledger)}"
    return [sums, f"  {bar(ledger, _columns() - 4)}"]


def body(ledger: MemoryLedger, why: bool) -> list[str]:
    """What the bar means: its legend, or every line."""
    if not ledger.pool.bytes:
        return []
    return (
        [fold(_row(line), _INDENT) for line in (ledger.pool, *ledger.lines, *_loading(ledger))]
        if why
        else [legend(ledger)]
    )


def verdict_text(ledger: MemoryLedger) -> str:
    without = f" (without {' and '.join(ledger.unknown)}: not known)" if ledger.unknown else ""
    if ledger.lack is None:
        return f"fits{without}"
    return f"DOES NOT FIT, {gib(ledger.short)} short: {_LACKS[ledger.lack]}{without}"


def bar(ledger: MemoryLedger, width: int) -> str:
    """`|▒▒███████▓▓░░░░...|`: so many cells for the whole pool, or for all that is needed where that is more."""
    sizes = _sizes(ledger)
    scale = width / max(ledger.pool.bytes, sum(sizes.values()))
    cells, done, marked = "", 0, marks()
    for name, size in sizes.items():
        done += size
        cells += marked[name] * (round(done * scale) - len(cells))
    end = round(ledger.pool.bytes * scale)
    return f"|{cells[:end].ljust(end, LEFT)}|{OVER * (width - end)}"


def legend(ledger: MemoryLedger) -> str:
    """`▒ in use 9.0  █ weights 70.0  . left 41.0 GiB`."""
    told = [f"{marks()[name]} {name} {size / GIB:.1f}" for name, size in _sizes(ledger).items() if size]
    over = ledger.left < 0
    told.append(f"{OVER} too much {-ledger.left / GIB:.1f}" if over else f"{LEFT} left {ledger.left / GIB:.1f}")
    return "  " + "  ".join([*told[:-1], f"{told[-1]} GiB", *(f"not known  {name}" for name in ledger.unknown)])


def marks() -> Mapping[str, str]:
    """Blocks where the terminal's encoding has them."""
    try:
        "".join(_MARKS.values()).encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return _PLAIN
    return _MARKS


def _sizes(ledger: MemoryLedger) -> dict[str, int]:
    """Lines in the order of the bar; what is neither weights nor KV is the engine's own."""
    sizes = dict.fromkeys(_MARKS, 0)
    for line in ledger.lines:
        sizes[_NAMES.get(line.name, "engine")] += line.bytes
    return sizes


def _loading(ledger: MemoryLedger) -> tuple[LedgerLine, ...]:
    return (ledger.loading,) if ledger.loading else ()


def _row(line: LedgerLine) -> str:
    amount = f"{line.bytes / GIB:8.1f} GiB" if line.known else f"{'not known':>12}"
    return f"  {amount}  {line.name:<21} {line.origin}{_range(line)}: {line.why}"


def _range(line: LedgerLine) -> str:
    if line.low is None or line.high is None or line.low == line.high:
        return ""
    return f" ({line.low / GIB:.1f} to {line.high / GIB:.1f})"


def _columns() -> int:
    """Of the terminal, at most 120; 80 where there is none."""
    return min(shutil.get_terminal_size().columns, _WIDEST) if sys.stdout.isatty() else _WIDTH
