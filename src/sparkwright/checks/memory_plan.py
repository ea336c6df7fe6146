"""Checks of the plan against the memory of its nodes."""

from collections.abc import Iterator

from sparkwright.checks.reading import simulated
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import OVERRIDE, WARN
from sparkwright.domain.ledger import GRAPHS, IN_USE, KV_POOL, Counts, Lack, MemoryLedger
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.domain.units import GIB, gib
from sparkwright.domain.unknown import known_or_none
from sparkwright.engines.catalog import traits
from sparkwright.engines.traits import Claim

_STEP = 4096  # tokens; a proposed context is a multiple of it
_USUAL_SHM = 64 * GIB  # given without a word in the recipe; NCCL and PyTorch take a small part of it
MIN_FREE = "vm.min_free_kbytes"
_ROOM = 4 * GIB  # stays free on a node next to a pool of fixed size
_TITLES_OF_DOUBT = {
    Lack.CLAIM: "memory fraction may exceed free memory",
    Lack.POOL: "may leave nothing for the KV cache",
    Lack.NODE: "may need more memory than the node has",
    Lack.CONTEXT: "KV cache may be too small for one sequence",
}


def arithmetic(ledger: MemoryLedger) -> str:
    """`121.6 GiB pool - 5.0 GiB in use now - 69.4 GiB weights - ... = 3.1 GiB`."""
    parts = "".join(f" - {gib(line.bytes)} {line.name}" for line in ledger.lines if line.known)
    parts += "".join(f" - {name} (not known)" for name in ledger.unknown)
    return f"{gib(ledger.pool.bytes)} pool{parts} = {gib(ledger.left)}"


def biggest_process(facts: NodeFacts | None) -> str:
    """The advice to stop the largest, `stop VLLM::EngineCore (pid 12, 9.0 GiB)`; '' if no size is known."""
    listed = known_or_none(facts.gpu_processes) or () if facts else ()
    sized = [(process.used, process) for process in listed if isinstance(process.used, int)]
    if not sized:
        return ""
    used, process = max(sized, key=lambda pair: pair[0])
    return f"stop {process.name} (pid {process.pid}, {gib(used)})"


def does_not_fit(context: Context) -> Iterator[Found]:
    recipe = context.recipe
    if recipe is None or simulated(context):
        return
    for ledger in context.ledgers:
        no_kv, least = ledger.has_no_kv, ledger.too_much_at_least
        if no_kv or least or (not ledger.fits and not ledger.claims_too_much):
            process = biggest_process(context.facts.get(ledger.node))
            fraction = _fraction_with_pool(ledger) if no_kv else 0.0
            found = [f"serving.memory_fraction: {fraction:.2f} or more"] if fraction else []
            found += [process] if process and not fraction else []
            found += ["a smaller serving.kv_cache_bytes"] if recipe.serving.kv_cache_bytes else []
            by_layer = traits(recipe).by_layer
            found += ["fewer sequences or a smaller context" if by_layer else f"more nodes than {recipe.nodes}"]
            yield Found(
                arithmetic(ledger),
                title="no memory left for the KV cache" if no_kv else "model does not fit",
                cause=_why_not(ledger),
                fix="; or ".join([*found, "a smaller checkpoint of the model"][:3]),
                subject=ledger.node,
            )


def _why_not(ledger: MemoryLedger) -> str:
    if ledger.too_much_at_least:
        unread = next(line for line in ledger.lines if not line.known and line.low)
        return f"{unread.name}: {unread.why}; {gib(ledger.too_much_at_least)} more than there is"
    if ledger.has_no_kv:
        return "weights and the engine's own needs take all that it may take"
    return "the lines exceed the pool"


def _fraction_with_pool(ledger: MemoryLedger) -> float:
    """The memory fraction that leaves 1 GiB for the KV pool, rounded up; 0 when so much is not free now."""
    needed = GIB + ledger.engine_bytes
    if not ledger.pool.bytes or needed > ledger.free:
        return 0.0
    return min(0.99, -(-100 * needed // ledger.pool.bytes) / 100)


def fraction_too_high(context: Context) -> Iterator[Found]:
    recipe = context.recipe
    if recipe is None or simulated(context):
        return
    for ledger in context.ledgers:
        if ledger.claims_too_much:
            used, fraction = ledger.line(IN_USE), ledger.claim / ledger.pool.bytes
            fits = ledger.free * 100 // ledger.pool.bytes / 100
            enough = fits * ledger.pool.bytes > ledger.engine_bytes + recipe.serving.kv_cache_bytes
            found = [f"serving.memory_fraction: {fits:.2f}"] if enough else []
            process = biggest_process(context.facts.get(ledger.node))
            found += [process or f"stop what holds it (on {ledger.node}: ps aux --sort=-rss | head)"]
            yield Found(
                f"{fraction:.2f} x {gib(ledger.pool.bytes)} = {gib(ledger.claim)} needed, "
                f"{gib(ledger.free)} free now" + (f" ({gib(used.bytes)} in use: {used.why})" if used else ""),
                title=f"memory fraction {fraction:.2f} exceeds free memory",
                fix="; or ".join(found),
                subject=ledger.node,
            )


def context_too_long(context: Context) -> Iterator[Found]:
    recipe = context.recipe
    if recipe is None or simulated(context):
        return
    for ledger in context.ledgers:
        pool, needed = ledger.line(KV_POOL), ledger.kv_needed
        if pool is not None and needed is not None and ledger.too_short:
            ends = f" ({gib(pool.low)} to {gib(pool.high)})" if pool.low is not None and pool.high is not None else ""
            length = f" of {recipe.serving.context:,} tokens" if recipe.serving.context else " of full length"
            yield Found(
                f"{gib(needed)} needed, {gib(pool.bytes)} in the pool{ends}: {pool.why}",
                title=f"KV cache is too small for one sequence{length}",
                fix=_shorten_context(recipe, ledger, pool.bytes / needed),
                subject=ledger.node,
            )


def _shorten_context(recipe: Recipe, ledger: MemoryLedger, share: float) -> str:
    """Up to three ways to make one sequence fit. share: the part of it that fits now.

    A tenth less is proposed, for what does not shrink with the context (tokens in flight).
    """
    fits = int(recipe.serving.context * share * 0.9) // _STEP * _STEP
    found = [f"serving.context: {fits} or less"] if fits else []
    narrow = recipe.serving.kv_dtype in ("", "auto", "bf16", "bfloat16")
    found += ["serving.kv_dtype: fp8"] if narrow else []
    wanted = ledger.claim + ledger.short
    more = -(-100 * wanted // ledger.pool.bytes) / 100
    found += (
        [f"serving.memory_fraction: {more:.2f}"] if ledger.claim and more * ledger.pool.bytes <= ledger.free else []
    )
    return "; or ".join([*found, f"more nodes than {recipe.nodes}"][:3])


def may_not_fit(context: Context) -> Iterator[Found]:
    recipe = context.recipe
    for ledger in context.ledgers if recipe and not simulated(context) else ():
        pool, needed = ledger.line(KV_POOL), ledger.kv_needed or 0
        if ledger.doubt is None or pool is None:
            continue
        ends = f"{gib(pool.bytes if pool.low is None else pool.low)} to {gib(pool.high or pool.bytes)}"
        wanted = f"; one full sequence needs {gib(needed)}" if needed else ""
        free, ask = _not_asked(ledger)
        yield Found(
            f"{free}KV pool estimated at {ends}{_graphs_range(ledger)}, {gib(ledger.left)} left on the node{wanted}",
            title=_TITLES_OF_DOUBT[ledger.doubt],
            fix=ask
            + _fixed_pool(ledger, needed, pool.bytes)
            + "`sparkwright up` starts it and stops it again when memory runs low; surely: see `what does fit`",
            subject=ledger.node,
        )


def _not_asked(ledger: MemoryLedger) -> tuple[str, str]:
    """(what is free on a node that nobody asked, how to find out); ('', '') where the node was asked."""
    used = ledger.line(IN_USE)
    if ledger.seen or used is None or used.low is None or used.high is None:
        return "", ""
    least, most = (gib(ledger.pool.bytes - end) for end in (used.high, used.low))
    claims = f"{gib(ledger.claim)} claimed at the start; " if ledger.claim else ""
    return (
        f"{claims}{least} to {most} free on such nodes; ",
        "plan with `--free SIZE`, as in 110GiB: the `available` of `free -g` on your node; or ",
    )


def _graphs_range(ledger: MemoryLedger) -> str:
    """The range of an engine's measurement of its CUDA graphs while other memory of the one pool changes."""
    graphs = ledger.line(GRAPHS)
    if graphs is None or graphs.low is None or graphs.high is None:
        return ""
    return f" (CUDA graphs {gib(graphs.low)} to {gib(graphs.high)})"


def _fixed_pool(ledger: MemoryLedger, needed: int, pool: int) -> str:
    """The advice to fix the pool's size at one full sequence, '' where the node has no room for it.

    needed: bytes of one full sequence. pool: bytes planned now. An estimate of CUDA graphs takes nothing off a fixed
    pool.
    """
    size = -(-needed // GIB)
    room = ledger.left + pool - size * GIB
    return f"serving.kv_cache_bytes: {size} GiB fixes the pool; or " if needed and room >= _ROOM else ""


def reserve_counted(context: Context) -> Iterator[Found]:
    for ledger in context.ledgers if context.recipe and not simulated(context) else ():
        facts, seen = context.facts.get(ledger.node), ledger.seen
        upkeep = known_or_none(facts.upkeep) if facts else None
        reserve = (upkeep.sysctl(MIN_FREE) or 0) * 1024 if upkeep else 0
        if seen and seen.counts is Counts.AVAILABLE and 0 < ledger.claim - seen.available <= 2 * reserve:
            lacks = ledger.claim - seen.available
            yield Found(
                f"{MIN_FREE} = {reserve // 1024}; MemAvailable {gib(seen.available)}, {gib(ledger.claim)} claimed",
                title=f"free-memory reserve fails the engine's check by {gib(lacks)}",
                fix=f"sudo sysctl -w {MIN_FREE}={max(reserve - lacks, 0) // 2048} until it serves; "
                "or a lower serving.memory_fraction",
                subject=ledger.node,
            )


def shm_beyond(context: Context) -> Iterator[Found]:
    recipe = context.recipe
    if recipe is None or simulated(context) or recipe.engine.runtime is not Runtime.DOCKER:
        return
    for ledger in context.ledgers:
        if ledger.pool.bytes and recipe.shm_bytes > max(ledger.left, _USUAL_SHM):
            left = gib(max(0, ledger.left))
            yield Found(f"shm: {gib(recipe.shm_bytes)}; the plan leaves {left}", subject=ledger.node)


def pool_pinned(context: Context) -> Iterator[Found]:
    """Findings for a pinned pool size that leaves too little, where the engine would have measured its own needs."""
    recipe = context.recipe
    if recipe is None or simulated(context) or not recipe.serving.kv_cache_bytes:
        return
    for ledger in context.ledgers if traits(recipe).claim is Claim.POOL else ():
        above = sum((line.bytes if line.high is None else line.high) - line.bytes for line in ledger.lines)
        if ledger.pool.bytes and 0 <= ledger.left < above:
            yield Found(
                f"serving.kv_cache_bytes: {gib(recipe.serving.kv_cache_bytes)}; {gib(ledger.left)} left, "
                f"{gib(above)} more at the high end of all lines",
                subject=ledger.node,
            )


def floor_too_high(context: Context) -> Iterator[Found]:
    recipe = context.recipe
    if recipe is None or simulated(context) or not recipe.loading.floor:
        return
    for ledger in context.ledgers:
        if ledger.pool.bytes and not ledger.unknown and recipe.loading.floor > max(0, ledger.lowest):
            yield Found(
                f"loading.floor: {gib(recipe.loading.floor)}; at least {gib(max(0, ledger.lowest))} planned to stay",
                subject=ledger.node,
            )


CHECKS = explained(
    __file__,
    Check("MEM001", OVERRIDE, "model does not fit", does_not_fit),
    Check("MEM002", OVERRIDE, "memory fraction exceeds free memory", fraction_too_high),
    Check("MEM003", OVERRIDE, "KV cache too small for one sequence", context_too_long),
    Check("MEM021", WARN, "model may not fit", may_not_fit),
    Check("MEM023", WARN, "free-memory reserve fails the engine's check", reserve_counted),
    Check("MEM024", WARN, "shared memory larger than what is left", shm_beyond),
    Check("MEM025", WARN, "pinned KV pool with little room", pool_pinned),
    Check("MEM026", WARN, "loading.floor above what stays free", floor_too_high),
)
