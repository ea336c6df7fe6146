"""What a plan promises: tokens of KV, sequences, speeds; and, where it does not fit, what would."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from sparkwright.cli.columns import aligned, fold
from sparkwright.domain.ledger import KV_POOL, KvCapacity
from sparkwright.domain.plan import Advice, Plan, Range, Split, split_text
from sparkwright.domain.recipe import Figure
from sparkwright.domain.units import GIB, duration, gib
from sparkwright.domain.verdict import Estimate, Remedy, Speed

Row = tuple[str, str, str]


def outlook_text(plan: Plan, why: bool) -> str:
    """KV and speeds, with the published figures; '' when nothing of it is known."""
    parts = [kv_text(plan, why), speeds_text(plan.speeds, why), published_text(plan.recipe.published)]
    return "\n\n".join(part for part in parts if part)


def kv_text(plan: Plan, why: bool) -> str:
    """`KV cache: 1,430,000 tokens: 10.9 requests of 131,072 tokens at once`; why nobody knows, where that is so."""
    kv = plan.verdict.kv if plan.verdict else None
    if kv is None:
        unknown = next((c.unknown for c in (ledger.capacity for ledger in plan.ledgers) if c and c.unknown), "")
        return fold(f"KV cache: not known how many tokens: {unknown}", 2) if unknown else ""
    if not kv.tokens:
        return "KV cache: nothing is left for it"
    length = plan.recipe.serving.context
    full = f"of {length:,} tokens" if length else "of full length"
    lines = [f"KV cache: {kv.tokens:,} tokens: {kv.sequences:.1f} requests {full} at once"]
    lines += [*_pool_range(plan, kv), *_releases(plan, kv)]
    lines += [f"  the engine's log will report {kv.reported:,} tokens"] if why else []
    return "\n".join(fold(line, 2) for line in (*lines, *(f"  {line}" for line in kv.why if why)))


def _pool_range(plan: Plan, kv: KvCapacity) -> Iterator[str]:
    """What the counts would be at both ends of the pool's range: they are no more exact than the pool is."""
    pools = [line for ledger in plan.ledgers if (line := ledger.line(KV_POOL))]
    pool = min(pools, key=lambda line: line.bytes, default=None)
    if pool is None or pool.low is None or pool.high is None or not pool.bytes or pool.low == pool.high:
        return
    low, high = (end / pool.bytes * kv.sequences for end in (pool.low, pool.high))
    said = f"  estimated: a pool of {pool.low / GIB:.1f} to {gib(pool.high)} gives {low:.2f} to {high:.2f} of them"
    needed = max((ledger.kv_needed or 0 for ledger in plan.ledgers), default=0)
    short = "; at the low end less than one fits, and the engine would not start" if pool.low < needed else ""
    yield f"{said}{short}"


def _releases(plan: Plan, kv: KvCapacity) -> Iterator[str]:
    """Engines changed how they share a pool out: an exact figure of a version that nobody read would be none."""
    if kv.low is not None and kv.high is not None:
        engine = plan.recipe.engine
        yield (
            f"  {engine.name} {engine.version} shares it out in a way that was not read: room for {kv.low:,} to "
            f"{kv.high:,} tokens, by the releases around it"
        )


def speeds_text(speeds: Sequence[Speed], why: bool) -> str:
    """Every estimate with its range; with `why` the arithmetic of each."""
    found = [(row, one) for row, one in _speeds(speeds) if one.known]
    if not found:
        unknown = next((one.why[0] for _, one in _speeds(speeds) if one.why), "")
        return fold(f"speed: not estimated: {unknown}", 2) if unknown else ""
    lines = aligned([row for row, _ in found]).splitlines()
    parts = ["speed (estimated; nine of ten measurements should be within the range)"]
    for line, (_, one) in zip(lines, found, strict=True):
        parts += [line, *(fold(f"      {reason}", 8) for reason in one.why if why)]
    return "\n".join(parts)


def _speeds(speeds: Sequence[Speed]) -> Iterator[tuple[Row, Estimate]]:
    for speed in speeds:
        load = speed.load
        depth = f", {load.depth + load.prompt:,} tokens deep"
        if load.concurrency > 1:
            yield _row("decode", f"{load.concurrency} streams{depth}, all together", speed.decode_all), speed.decode_all
        else:
            yield _row("decode", f"1 stream{depth}", speed.decode), speed.decode
    if speeds:
        first, prompt = speeds[0], f"prompt of {speeds[0].load.prompt:,} tokens"
        yield _row("prefill", prompt, first.prefill), first.prefill
        yield _times("first token", prompt, first.ttft), first.ttft
        yield _times("loading", "", first.loading), first.loading


def _row(what: str, load: str, one: Estimate) -> Row:
    digits = 1 if one.value < 100 else 0
    return what, load, f"{one.value:,.{digits}f} tokens/s ({one.low:,.{digits}f} to {one.high:,.{digits}f})"


def _times(what: str, load: str, one: Estimate) -> Row:
    return what, load, f"{duration(one.value)} ({duration(one.low)} to {duration(one.high)})"


def published_text(figures: Sequence[Figure]) -> str:
    if not figures:
        return ""
    rows = [fold(f"  {f.what}: {_number(f.value)} {f.unit} ({_conditions(f)})", 6) for f in figures]
    return "published figures (not ours)\n" + "\n".join(rows)


def remedies_text(remedies: Sequence[Remedy]) -> str:
    """Numbered, cheapest first, each with what is given up for it."""
    lines = ["what does fit, cheapest first"]
    for number, remedy in enumerate(remedies, 1):
        lines.append(fold(f"  {number}. {remedy.change}", 5))
        lines += [fold(f"     - {cost}", 7) for cost in remedy.costs]
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,}"


def _conditions(figure: Figure) -> str:
    return "; ".join(part for part in (figure.conditions, figure.source) if part)


def advice_text(advice: Advice) -> str:
    """Every split with its cost or what forbids it; `*` marks the recipe's own. '' where there is nothing to choose."""
    if len(advice.splits) < 2 or not advice.source:
        return ""
    own = advice.chosen
    head = ("", "split", "weights/node", "KV/token", "exchanges", f"tok/s 1 / {advice.batch}", "")
    rows = [head, *(("*" if split is own else "", *_advice_row(split, advice.batch)) for split in advice.splits)]
    notes = [fold(f"  {line}", 4) for line in _notes(advice)]
    return "\n".join([f"ways to split it (shape: {advice.source})", aligned(rows), *notes])


def advice_json(advice: Advice) -> dict[str, Any]:
    """The same for machines: `splits[0]` is the recipe's own; bytes, seconds (best, worst)."""
    return asdict(advice)


def _advice_row(split: Split, batch: int) -> tuple[str, ...]:
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
