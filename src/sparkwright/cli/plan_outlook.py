"""What a plan promises: memory, tokens of KV, sequences, speeds; and, where it does not fit, what would."""

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence

from sparkwright.cli.columns import aligned, fold, number_text
from sparkwright.domain.ledger import IN_USE, KV_POOL, STATES, WEIGHTS, KvCapacity, Lack, LedgerLine, MemoryLedger
from sparkwright.domain.plan import Advice, Plan, Range, Split, split_text
from sparkwright.domain.recipe import Figure
from sparkwright.domain.units import GIB, duration, gib
from sparkwright.domain.verdict import Estimate, Remedy, Speed


def outlook_text(plan: Plan, why: bool) -> str:
    """KV and speeds, with the published figures; '' when nothing of it is known."""
    parts = [kv_text(plan, why), speeds_text(plan.speeds, why), published_text(plan.recipe.published)]
    return "\n\n".join(filter(None, parts))


def answers_lines(plan: Plan) -> list[str]:
    """One figure a question: does it fit, how many tokens, how many users of what length, how fast."""
    found = plan.verdict
    if found is None:
        return []
    fit = f"{found.fit}" if found.known else "not known whether it fits"
    lines = [f"{fit}{f': {gib(found.short)} short' if found.short else ''}"]
    if found.kv and found.kv.tokens:
        length = f"{plan.recipe.serving.context:,} tokens" if plan.recipe.serving.context else "full length"
        users = f"{found.sequences:.1f} users of {length} at once"
        lines.append(f"{found.kv.tokens:,} tokens of KV cache: {users}")
    alone = next((one.decode for one in plan.speeds if one.decode.known), None)
    lines += [f"{_estimate('decode', alone)} for one user"] if alone else []
    return lines


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
    lines = [f"KV cache: {kv.tokens:,} tokens: {kv.sequences:.1f} requests {full} at once", *_pool_range(plan, kv)]
    if kv.low is not None and kv.high is not None:
        # Engines changed how they share a pool out: an exact figure of a version that nobody read would be none.
        engine, room = plan.recipe.engine, f"room for {kv.low:,} to {kv.high:,} tokens, by the releases around it"
        lines.append(f"  {engine.name} {engine.version} shares it out in a way that was not read: {room}")
    if why:
        lines += [f"  {line}" for line in (f"the engine's log will report {kv.reported:,} tokens", *kv.why)]
    return "\n".join(fold(line, 2) for line in lines)


def _pool_range(plan: Plan, kv: KvCapacity) -> Iterator[str]:
    """What the counts would be at both ends of the pool's range: they are no more exact than the pool is."""
    pools = [line for ledger in plan.ledgers if (line := ledger.line(KV_POOL))]
    pool = min(pools, key=lambda line: line.bytes, default=None)
    if pool is None or pool.low is None or pool.high is None or not pool.bytes or pool.low == pool.high:
        return
    low, high = (end / pool.bytes * kv.sequences for end in (pool.low, pool.high))
    said = f"  estimated: a pool of {pool.low / GIB:.1f} to {gib(pool.high)} gives {low:.2f} to {high:.2f} of them"
    needed = max((ledger.kv_needed or 0 for ledger in plan.ledgers), default=0)
    short = "; at the low end less than one fits, and the engine does not start" if pool.low < needed else ""
    yield f"{said}{short}"


def speeds_text(speeds: Sequence[Speed], why: bool) -> str:
    """Every estimate with its range; with `why` the arithmetic of each."""
    rows = list(_speeds(speeds))
    known = [(what, load, one) for what, load, one in rows if one.known]
    if not known:
        unknown = next((one.why[0] for *_, one in rows if one.why), "")
        return fold(f"speed: not estimated: {unknown}", 2) if unknown else ""
    lines = aligned([(what, load, _estimate(what, one)) for what, load, one in known]).splitlines()
    parts = ["speed (estimated; nine of ten measurements should be within the range)"]
    for line, (*_, one) in zip(lines, known, strict=True):
        parts += [line, *(fold(f"      {reason}", 8) for reason in one.why if why)]
    return "\n".join(parts)


def _speeds(speeds: Sequence[Speed]) -> Iterator[tuple[str, str, Estimate]]:
    """(what, under which load, how much)."""
    for speed in speeds:
        load, depth = speed.load, f", {speed.load.depth + speed.load.prompt:,} tokens deep"
        if load.concurrency > 1:
            yield "decode", f"{load.concurrency} streams{depth}, all together", speed.decode_all
        else:
            yield "decode", f"1 stream{depth}", speed.decode
    for first in speeds[:1]:
        prompt = f"prompt of {first.load.prompt:,} tokens"
        yield from (("prefill", prompt, first.prefill), ("first token", prompt, first.ttft))
        yield "loading", "", first.loading


def _estimate(what: str, one: Estimate) -> str:
    """Value and range: a rate, or a time."""
    if what in ("first token", "loading"):
        return f"{duration(one.value)} ({duration(one.low)} to {duration(one.high)})"
    digits = 1 if one.value < 100 else 0
    return f"{one.value:,.{digits}f} tokens/s ({one.low:,.{digits}f} to {one.high:,.{digits}f})"


def published_text(figures: Sequence[Figure]) -> str:
    if not figures:
        return ""
    lines = ["published figures (not ours)"]
    for one in figures:
        conditions = "; ".join(filter(None, (one.conditions, one.source)))
        lines.append(fold(f"  {one.what}: {number_text(one.value)} {one.unit} ({conditions})", 6))
    return "\n".join(lines)


def remedies_text(remedies: Sequence[Remedy]) -> str:
    """Numbered, cheapest first, each with what is given up for it."""
    lines = ["what does fit, cheapest first"]
    for number, remedy in enumerate(remedies, 1):
        lines.append(fold(f"  {number}. {remedy.change}", 5))
        lines += [fold(f"     - {cost}", 7) for cost in remedy.costs]
    return "\n".join(lines)


def advice_text(advice: Advice) -> str:
    """Every split with its cost or what forbids it; `*` marks the recipe's own. '' where there is nothing to choose."""
    if len(advice.splits) < 2 or not advice.source:
        return ""
    own = advice.chosen
    head = ("", "split", "weights/node", "KV/token", "exchanges", f"tok/s 1 / {advice.batch}", "")
    rows = [head, *(("*" if split is own else "", *_advice_row(split, advice.batch)) for split in advice.splits)]
    notes = [fold(f"  {line}", 4) for line in _notes(advice)]
    return "\n".join([f"ways to split it (shape: {advice.source})", aligned(rows), *notes])


def _advice_row(split: Split, batch: int) -> tuple[str, ...]:
    cost, name = split.cost, split_text(split.parallelism)
    if split.refused or cost is None:
        return (name, "not possible" if split.refused else "not known", "", "", "", "")
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
    width = min(shutil.get_terminal_size().columns, _WIDEST) if sys.stdout.isatty() else _WIDTH
    return [sums, f"  {bar(ledger, width - 4)}"]


def body(ledger: MemoryLedger, why: bool) -> list[str]:
    """What the bar means: its legend, or every line."""
    if not ledger.pool.bytes:
        return []
    if not why:
        return [legend(ledger)]
    lines = (ledger.pool, *ledger.lines, *([ledger.loading] if ledger.loading else []))
    return [fold(_ledger_row(line), _INDENT) for line in lines]


def verdict_text(ledger: MemoryLedger) -> str:
    without = f" (without {' and '.join(ledger.unknown)}: not known)" if ledger.unknown else ""
    if ledger.doubt:
        return f"MAY NOT FIT: at the low end of the estimate {_LACKS[ledger.doubt]}{without}"
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


def _ledger_row(line: LedgerLine) -> str:
    amount = f"{line.bytes / GIB:8.1f} GiB" if line.known else f"{'not known':>12}"
    between = ""
    if line.low is not None and line.high is not None and line.low != line.high:
        between = f" ({line.low / GIB:.1f} to {line.high / GIB:.1f})"
    return f"  {amount}  {line.name:<21} {line.origin}{between}: {line.why}"
