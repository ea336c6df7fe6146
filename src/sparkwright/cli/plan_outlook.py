"""The promises of a plan: memory, KV tokens, sequences, speeds; and the remedies if it does not fit."""

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from math import sqrt

from sparkwright.cli.columns import aligned, findings_text, fold_line, published_text
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.ledger import IN_USE, KV_POOL, STATES, WEIGHTS, KvCapacity, Lack, LedgerLine, MemoryLedger
from sparkwright.domain.plan import Advice, Plan, Range, Split, SplitCost, split_text, stopping
from sparkwright.domain.units import GIB, duration, gib
from sparkwright.domain.values import dataclass
from sparkwright.domain.verdict import Estimate, Remedy, Speed, Verdict


@dataclass(frozen=True, slots=True)
class Shown:
    """The parts shown beyond the answer: arithmetic and sources, other splits, ranks and their command lines."""

    why: bool = False
    splits: bool = False
    commands: bool = False


def found_text(findings: Sequence[Finding], shown: Shown) -> str:
    """Findings whole; with no `why` those for information by their codes alone."""
    told = [one for one in findings if shown.why or one.severity is not Severity.INFO]
    codes = dict.fromkeys(one.code for one in findings if one not in told)
    line = fold_line(f"for your information: {', '.join(codes)} (--why shows them)", 2) if codes else ""
    return "\n".join(filter(None, (findings_text(told) if told else "", line)))


def more_text(shown: Shown, plan: Plan, has_commands: bool) -> str:
    """The options that show what is left out; '' when nothing is. has_commands: whether command lines can be shown."""
    asked = (
        ("--why", "the arithmetic", shown.why),
        ("--splits", "other ways to split it", shown.splits or plan.advice is None or len(plan.advice.splits) < 2),
        ("--commands", "what each rank runs", shown.commands or not has_commands),
    )
    left = [f"{option} ({what})" for option, what, done in asked if not done]
    return f"more: {', '.join(left)}" if left else ""


def outlook_text(plan: Plan, why: bool) -> str:
    """KV and speeds, with `why` the published figures, too; '' when nothing of it is known."""
    published = published_text(plan.recipe.published, why) if why else ""
    parts = kv_text(plan, why), speeds_text(plan.speeds, why), published
    return "\n\n".join(filter(None, parts))


def answers_text(plan: Plan, longest: int = 0) -> str:
    """One figure a question: does it fit, how many tokens, how many users of what length, how fast, how long."""
    longer = (f"longest context that surely fits: {longest:,} tokens",) * bool(longest)
    return "\n".join(fold_line(line, 2) for line in (*answers(plan), *longer))


def answers(plan: Plan) -> Iterator[str]:
    found = plan.verdict
    if found is None or not plan.ledgers:
        return
    other = {one.code: one.title for one in stopping(plan, "") if one.code not in _MEMORY} if found.fits else {}
    why = "; ".join(f"{title} ({code})" for code, title in sorted(other.items()))
    rest = next((words for code, words in _FILES.items() if code in other and found.known), "by memory alone")
    first = f"refused: {why}; {rest}: " if why else ""
    short = [f"{gib(found.short)} short on {found.node}"] if found.short else []
    beyond = [f"{one.title} ({one.code})" for one in plan.findings if one.code == _BEYOND_MODEL and short]
    yield f"{first}{found.fit}{': ' if short else ''}{'; '.join([*beyond, *short])}"
    if not found.known:
        yield from found.missing
        yield from unknown_hints(plan)
        return
    if found.kv and found.kv.tokens:
        context = plan.recipe.serving.context or found.kv.context
        length = f"{context:,} tokens" if context else "full length"
        count = f"{found.sequences:.1f} users of" if found.sequences >= 1 else f"{found.sequences:.2f} of one user's"
        low, high = _kv_ends(plan, found.kv)
        tokens = f" ({_round(low * found.kv.tokens)} to {_round(high * found.kv.tokens)})" if low != high else ""
        users = _users_range(found, low, high)
        each = f" in each of {found.pools} data-parallel ranks" if found.pools > 1 else ""
        yield f"{found.kv.tokens:,} tokens of KV cache{tokens}{each}: {count} {length} at once{users}"
    if found.kv and found.kv.context:
        yield f"context by `max-model-len: auto`: about {found.kv.context:,} tokens; vLLM takes what fits"
    if not found.fits:
        return
    alone = next((one.decode for one in plan.speeds if one.decode.known), None)
    busy = next((one for one in plan.speeds if one.load.concurrency > 1 and one.decode_all.known), None)
    more = f"; {_estimate('', busy.decode_all)} for {busy.load.concurrency} together" if busy else ""
    if alone:
        yield f"{_estimate('', alone)} for one user{more}"


def unknown_hints(plan: Plan) -> Iterator[str]:
    """Name the recipe key or command that settles what the verdict lacks."""
    model = plan.recipe.model
    if any(WEIGHTS in ledger.unknown for ledger in plan.ledgers):
        asks = f" (the hub is asked for it: sparkwright plan {model.id})" if model.id else ""
        yield f"hint: give the recipe the bytes of the weights, as in `model.size: 160 GiB`{asks}"
    elif any(KV_POOL in ledger.unknown or (ledger.uncounted and not ledger.capacity) for ledger in plan.ledgers):
        yield "hint: give the folder with the model's config.json: sparkwright plan ./FOLDER"
    if any(not ledger.pool.bytes for ledger in plan.ledgers):
        yield "hint: `sparkwright check` shows why the memory of a node could not be read"


def kv_text(plan: Plan, why: bool) -> str:
    """Open questions of the KV cache: the reason why it is unknown, its doubts, and the figure that the engine
    prints."""
    kv = plan.verdict.kv if plan.verdict else None
    if kv is None:
        unknown = next((c.unknown for c in (ledger.capacity for ledger in plan.ledgers) if c and c.unknown), "")
        return fold_line(f"KV cache: not known how many tokens: {unknown}", 2) if unknown else ""
    if not kv.tokens:
        return "KV cache: nothing is left for it"
    lines = ["KV cache"]
    lines += [f"  {line}" for line in (*_pool_doubts(plan), *kv.doubts, *_printed(kv), *(kv.why if why else ()))]
    return "\n".join(fold_line(line, 4) for line in lines) if lines[1:] else ""


def _printed(kv: KvCapacity) -> Iterator[str]:
    if abs(kv.reported - kv.tokens) > kv.tokens // 100:
        less = "counts layers with windows or states as if they kept every token"
        how = less if kv.reported < kv.tokens else "leaves out what pages of unequal size are padded to"
        yield f"the engine's log will report {kv.reported:,} tokens for the same pool: it {how}"


def _ends(plan: Plan) -> tuple[float, float] | None:
    """The smallest pool's low and high end as parts of its value; None where it is no range."""
    pools = [line for ledger in plan.ledgers if (line := ledger.line(KV_POOL))]
    pool = min(pools, key=lambda line: line.bytes, default=None)
    if pool is None or pool.low is None or pool.high is None or not pool.bytes or pool.low == pool.high:
        return None
    return pool.low / pool.bytes, pool.high / pool.bytes


def _kv_ends(plan: Plan, kv: KvCapacity) -> tuple[float, float]:
    """Low and high end of the tokens as parts of their value: of the pool's bytes, and of what a token takes."""
    low, high = _ends(plan) or (1.0, 1.0)
    return low * (kv.low or kv.tokens) / kv.tokens, high * (kv.high or kv.tokens) / kv.tokens


def _round(tokens: float) -> str:
    """Three digits of a count that is no more exact."""
    return f"{int(float(f'{tokens:.3g}')):,}"


def _users_range(found: Verdict, low: float, high: float) -> str:
    """The counts are no more exact than the pool is."""
    few, many = f"{low * found.sequences:.1f}", f"{high * found.sequences:.1f}"
    return f" ({few} to {many})" if few != many else ""


def _pool_doubts(plan: Plan) -> Iterator[str]:
    pools = [line for ledger in plan.ledgers if (line := ledger.line(KV_POOL))]
    low = min((line.bytes if line.low is None else line.low for line in pools), default=0)
    if low < max((ledger.kv_needed or 0 for ledger in plan.ledgers), default=0):
        yield f"at the low end of the pool, {gib(low)}, less than one context fits, and the engine does not start"


def speeds_text(speeds: Sequence[Speed], why: bool) -> str:
    """Every estimate with its range; with `why` the arithmetic of each."""
    rows = list(_speeds(speeds))
    known = [(what, load, one) for what, load, one in rows if one.known]
    if not known:
        unknown = next((one.why[0] for *_, one in rows if one.why), "")
        return fold_line(f"speed: not estimated: {unknown}", 2) if unknown else ""
    lines = aligned([(what, load, _estimate(what, one)) for what, load, one in known]).splitlines()
    parts = ["speed (estimated; nine of ten measurements should be within the range)"]
    for line, (*_, one) in zip(lines, known, strict=True):
        parts += [fold_line(line, 8), *(fold_line(f"      {reason}", 8) for reason in one.why if why)]
    return "\n".join(parts)


def _speeds(speeds: Sequence[Speed]) -> Iterator[tuple[str, str, Estimate]]:
    """Rows of speeds: (name, load, estimate)."""
    for speed in speeds:
        load, depth = speed.load, f", {speed.load.depth + speed.load.prompt:,} tokens deep"
        if load.concurrency > 1:
            yield "decode", f"{load.concurrency} streams{depth}", speed.decode_all
        else:
            yield "decode", f"1 stream{depth}{f', {load.text}' if load.text else ''}", speed.decode
    for first in speeds[:1]:
        prompt = f"prompt of {first.load.prompt:,} tokens"
        yield from (("prefill", prompt, first.prefill), ("first token", prompt, first.ttft))
        yield from (("loading", state, one) for state, one in first.starts or (("", first.loading),))


def _estimate(what: str, one: Estimate) -> str:
    """Value and range: a rate, or a time."""
    if what in ("first token", "loading"):
        return f"{duration(one.value)} ({duration(one.low)} to {duration(one.high)})"
    digits = 1 if one.value < 100 else 0
    if one.high < 0.05:
        return "less than 0.1 tokens/s"
    return f"{one.value:,.{digits}f} tokens/s ({one.low:,.{digits}f} to {one.high:,.{digits}f})"


def remedies_text(remedies: Sequence[Remedy]) -> str:
    """Numbered, cheapest first, each with what is given up for it."""
    lines = ["what does fit, cheapest first"]
    for number, remedy in enumerate(remedies, 1):
        lines.append(fold_line(f"  {number}. {remedy.change}", 5))
        lines += [fold_line(f"     - {cost}", 7) for cost in remedy.costs]
    return "\n".join(lines)


def advice_text(advice: Advice) -> str:
    """Every split with its cost or what forbids it; `*` marks the recipe's own. '' where there is nothing to choose."""
    if len(advice.splits) < 2 or not advice.source:
        return ""
    own = advice.chosen
    head = ("", "split", "weights/node", "KV/token", "exchanges", f"speed 1 / {advice.batch}")
    base = next((split.cost for split in advice.splits if split is own), None)
    rows = [head, *(("*" if split is own else "", *_advice_row(split, base)) for split in advice.splits)]
    notes = [fold_line(f"  {line}", 4) for line in _notes(advice)]
    return "\n".join([f"ways to split it (shape: {advice.source})", aligned(rows), *notes])


def _advice_row(split: Split, base: SplitCost | None) -> tuple[str, ...]:
    cost, name = split.cost, split_text(split.parallelism)
    if split.refused or cost is None:
        return (name, "not possible" if split.refused else "not known", "", "", "")
    copies = f", {gib(cost.copies)} twice" if cost.copies > cost.weights // 100 else ""
    base = base or cost
    speeds = f"{_share(base.step, cost.step)} / {_share(base.batch_step, cost.batch_step)}"
    return (name, f"{gib(cost.weights)}{copies}", f"{cost.kv_token / 1024:.1f} KiB", str(cost.collectives), speeds)


def _share(base: Range, step: Range) -> str:
    """The speed relative to the recipe's own split: `94 %`."""
    return f"{100 * sqrt(base[0] * base[1] / (step[0] * step[1])):.0f} %"


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
        yield "speed: of the own split's, estimated, short context, no speculation"
        yield "exchanges: waits for the other nodes per token"
        yield "how, and what was measured: docs/reference/parallelism-measured.md"


_MEMORY = {"MEM001", "MEM002", "MEM003"}
_BEYOND_MODEL = "MODEL013"
_FILES = {"MODEL006": "with whole files", "MODEL001": "with all of its files"}
_MARKS = {"in use": "▒", "weights": "█", "engine": "▓", "KV pool": "░"}
_PLAIN = {"in use": "u", "weights": "W", "engine": "e", "KV pool": "k"}
LEFT, OVER, UNREAD = ".", "!", "?"
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
        below = outlook_body(ledger, why)
        same = ["  line by line as above"] if why else []
        told += [*outlook_head(ledger, why), *(same if below and below == above else below)]
        above = below
    return "\n".join(told)


def outlook_head(ledger: MemoryLedger, why: bool) -> list[str]:
    if not ledger.pool.bytes:
        return [f"memory {ledger.node}: not known: {ledger.pool.why}"]
    left = "" if ledger.unknown else f"{gib(ledger.left)} left, "
    sums = f"memory {ledger.node}: {gib(ledger.pool.bytes)} pool, {left}{verdict_text(ledger)}"
    width = min(shutil.get_terminal_size().columns, _WIDEST) if sys.stdout.isatty() else _WIDTH
    return [fold_line(sums, 2), f"  {memory_bar(ledger, width - 4)}", *_seen(ledger, why)]


def _seen(ledger: MemoryLedger, why: bool) -> Iterator[str]:
    """Three figures of what is free; without `why` where the engine's own check fails, or `up` evicts page cache."""
    seen, most = ledger.seen, max(ledger.claim, ledger.loading.bytes if ledger.loading else 0)
    if seen and (why or ledger.claim > seen.counted or seen.free < most):
        large = "" if seen.large is None else f", {gib(seen.large)} of it in blocks of 16 MiB or more (the driver's)"
        yield fold_line(f"  now: MemAvailable {gib(seen.available)}, MemFree {gib(seen.free)}{large}", _INDENT)
        lack = f"lacks {gib(ledger.claim - seen.counted)} now" if ledger.claim > seen.counted else "passes"
        check = f"; its check takes {gib(ledger.claim)} of it: {lack}" if ledger.claim else ""
        yield fold_line(f"  the engine counts {seen.counts} ({gib(seen.counted)}){check}", _INDENT)


def outlook_body(ledger: MemoryLedger, why: bool) -> list[str]:
    """The explanation of the bar: its legend, or every line."""
    if not ledger.pool.bytes:
        return []
    if not why:
        return [fold_line(legend(ledger), 2)]
    lines = (ledger.pool, *ledger.lines, *([ledger.loading] if ledger.loading else []))
    return [fold_line(_ledger_row(line), _INDENT) for line in lines]


def verdict_text(ledger: MemoryLedger) -> str:
    if ledger.lack:
        least = " at least" if ledger.too_much_at_least else ""
        return f"DOES NOT FIT, {gib(ledger.short)} short{least}: {_LACKS[ledger.lack]}"
    if ledger.unknown or (ledger.uncounted and not ledger.doubt):
        return (
            f"NOT KNOWN whether it fits, without {' and '.join(ledger.unknown) or 'the size of a token in its cache'}"
        )
    if ledger.doubt:
        return f"MAY NOT FIT: at the low end of the estimate {_LACKS[ledger.doubt]}"
    return "fits"


def memory_bar(ledger: MemoryLedger, width: int) -> str:
    """The bar `|▒▒███████▓▓░░░░...|`: `width` cells for the whole pool, or for the need if that is larger.

    The cells of what is left are `?` where a line is not known: it may take all of them.
    """
    sizes = _sizes(ledger)
    scale = width / max(ledger.pool.bytes, sum(sizes.values()))
    cells, done, marked = "", 0, bar_marks()
    for name, size in sizes.items():
        done += size
        cells += marked[name] * (round(done * scale) - len(cells))
    end = round(ledger.pool.bytes * scale)
    return f"|{cells[:end].ljust(end, UNREAD if ledger.unknown else LEFT)}|{OVER * (width - end)}"


def legend(ledger: MemoryLedger) -> str:
    """The legend: `▒ in use 9.0  █ weights 70.0  . left 41.0 GiB`."""
    told = [f"{bar_marks()[name]} {name} {size / GIB:.1f}" for name, size in _sizes(ledger).items() if size]
    if ledger.unknown:
        told.append(f"{UNREAD} {' and '.join(ledger.unknown)}, not known, of {max(0, ledger.left) / GIB:.1f}")
    else:
        told.append(f"{f'{OVER} too much' if ledger.left < 0 else f'{LEFT} left'} {abs(ledger.left) / GIB:.1f}")
    return "  " + "  ".join([*told[:-1], f"{told[-1]} GiB"])


def bar_marks() -> Mapping[str, str]:
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
