"""The parallelism advisor's table."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from sparkwright.cli.columns import aligned, fold
from sparkwright.domain.plan import Advice, Range, Split, split_text
from sparkwright.domain.units import gib


def advice_text(advice: Advice) -> str:
    """Every split with its cost or what forbids it; `*` marks the recipe's own. '' where there is nothing to choose."""
    if len(advice.splits) < 2 or not advice.source:
        return ""
    own = advice.chosen
    head = ("", "split", "weights/node", "KV/token", "exchanges", f"tok/s 1 / {advice.batch}", "")
    rows = [head, *(("*" if split is own else "", *_row(split, advice.batch)) for split in advice.splits)]
    notes = [fold(f"  {line}", 4) for line in _notes(advice)]
    return "\n".join([f"ways to split it (shape: {advice.source})", aligned(rows), *notes])


def advice_json(advice: Advice) -> dict[str, Any]:
    """The same for machines: `splits[0]` is the recipe's own; bytes, seconds (best, worst)."""
    return asdict(advice)


def _row(split: Split, batch: int) -> tuple[str, ...]:
    cost, name = split.cost, split_text(split.parallelism)
    if split.refused:
        return (name, "not possible", "", "", "", "")
    if cost is None:
        return (name, "not known", "", "", "", "")
    copies = f"{gib(cost.copies)} of it held twice" if cost.copies > cost.weights // 100 else ""
    speeds = f"{_speed(cost.step, 1)} / {_speed(cost.batch_step, batch)}"
    return (name, gib(cost.weights), f"{cost.kv_token / 1024:.1f} KiB", str(cost.collectives), speeds, copies)


def _speed(step: Range, batch: int) -> str:
    """Tokens a second of all sequences together, worst to best."""
    best, worst = step
    return f"{batch / worst:.0f}-{batch / best:.0f}"


def _notes(advice: Advice) -> Iterator[str]:
    """Each reason once, with all the splits that it forbids."""
    reasons: dict[str, list[str]] = {}
    for split in advice.splits:
        for reason in split.refused[:1]:
            reasons.setdefault(reason, []).append(split_text(split.parallelism))
    for reason, names in reasons.items():
        yield f"{', '.join(names)}: {reason.removeprefix(names[0]).lstrip(': ')}"
    if advice.why:
        yield advice.why
    if any(split.cost for split in advice.splits):
        yield "tok/s: estimated, short context, no speculation; exchanges: waits for the other nodes per token"
        yield "how, and what was measured: docs/guides/parallelism.md"
