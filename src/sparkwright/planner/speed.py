"""The speed of a recipe, each figure with an interval: decoding, prefill, first token, loading.

Every estimate is the arithmetic of bytes, products and waits, done with three sets of rates (speed_rates.py): the
likely ones give the value, the fast and the slow ones the interval. docs/reference/planner-accuracy.md: how accurate.
"""

from collections.abc import Sequence
from math import exp, hypot, log, sqrt

from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import GIB, duration, gib, milliseconds
from sparkwright.domain.values import dataclass, replace
from sparkwright.domain.verdict import Estimate, Load, LoaderCost, Speed
from sparkwright.engines.catalog import traits
from sparkwright.engines.flag_data import loaders_of
from sparkwright.engines.options import flag_value
from sparkwright.engines.tables import DEFAULT, LOAD_FORMAT, load_table, loader
from sparkwright.planner.kv_layout import layers
from sparkwright.planner.limits import captures, is_eager
from sparkwright.planner.parts import missing, settled
from sparkwright.planner.speed_decode import (
    DecodedModel,
    decode_step,
    draft_seconds,
    drafted,
    kernels,
    method,
    together,
    yielded,
)
from sparkwright.planner.speed_prefill import Prefill, prefill, waiting
from sparkwright.planner.speed_rates import Rates, rate_range, weighed, width_power

_SHALLOW = 8192  # tokens of context up to which the cache is next to nothing beside the weights
# One measured point fixes the curve within a tenth (planner-accuracy.md), less surely where steps are of other lengths.
_ANCHORED = 1.1
_APART = 0.4
# With drafts the same deployment gave 32 % less to 33 % more at another depth, another day (21 figures of 17 runs).
_DRAFTS_VARY = 1.35
_FALLS = (
    0.0,
    0.01,
    0.05,
)  # of a draft's chance, each time the context doubles beyond 8K; some published runs fall less
_LEAST_KEPT = 0.5
# Rows of tables on disk: two to five times slower in one engine, nothing in others that stage them (issue 38, 8 rows).
_ROWS_READ = 2.0
_ANSWER = 256  # tokens of a short answer
_PROMPT = 2048  # tokens of a prompt when nobody says: what most published benchmarks of these machines take
# Our own captures (vLLM 0.21.0): compiling took 10 s for 4 layers, 31 s for 36; graphs 0.08 s a batch size for 36.
_COMPILE = (8.0, 0.64)
_GRAPH = (0.03, 0.0015)
# States of a start: nothing of it is in any cache, or files in the page cache and kernels in the engine's.
DISK, CACHED = "first, from the disk", "again, from the page cache"
# The page cache of the nodes is too small to hold the files; whether kernels are compiled already, nobody knows.
UNCACHED = "now, its files from the disk"
_UNSURE = {"": (1 / 3, 1.0, 3.0), DISK: (0.5, 1.0, 3.0), CACHED: (0.2, 0.4, 1.0), UNCACHED: (1 / 3, 1.0, 3.0)}
_LEAST_FIRST = 0.8  # of the usual seconds around: six first starts took 190 to 500 s beside their files
_USUAL = ("", "auto", "safetensors", "hf")
Lines = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """The results of one run of the same deployment: tokens/s of one stream at a depth and a concurrency.

    accepted: probability that a draft token is accepted after accepted ones, 0 when not known.
    """

    decode: float = 0.0
    depth: int = 0
    concurrency: int = 1
    accepted: float = 0.0


def estimate_speed(recipe: Recipe, shape: ModelShape, size: int, load: Load, anchor: Measured | None = None) -> Speed:
    """size: bytes of the checkpoint, 0 if not known. What cannot be estimated is an Estimate of 0 with the reason.

    Without a prompt in the load, prefill and ttft are of a usual one.
    """
    shape = settled(shape, size, recipe.model.on_disk)
    loaded = started(recipe, shape, size)
    cache = layers(recipe, shape)
    opaque = f"how fast {recipe.engine.name} computes is not known here: `sparkwright bench` measures it"
    why = _unknown(shape, size) or (opaque if traits(recipe).opaque else "")
    if isinstance(cache, Unknown):
        why = why or (cache.why if load.depth + load.prompt > _SHALLOW else "")
        cache = ()
    if why:
        none = Estimate(0.0, why=(why,))
        return Speed(load, none, none, none, none, loaded, starts(recipe, shape, size))
    model = DecodedModel(recipe, shape, size, cache)
    one = _decode(model, load, anchor or Measured())
    asked = load if load.prompt else replace(load, prompt=_PROMPT, depth=0)
    prompts = tuple(prefill(model, asked, rate) for rate in rate_range(recipe, shape))
    count = together(recipe, load)
    every = replace(one, value=one.value * count, low=one.low * count, high=one.high * count)
    fast, likely, slow = (prompt.tokens / prompt.seconds for prompt in prompts)
    read = widened(Estimate(likely, slow, fast, of_prefill(prompts[1])), "prompts", shape)
    return Speed(load, one, every, read, _first(model, asked, prompts), loaded, starts(recipe, shape, size))


def _unknown(shape: ModelShape, size: int) -> str:
    counted = weighed(shape, size) if _sound(shape) else ()
    if counted and min(part.bytes for part in counted) >= 0:
        return ""
    name = missing(shape) or ("" if counted or not _sound(shape) else "number format")
    return f"the model's {name} is not known" if name else "the model's dimensions contradict each other"


def _sound(shape: ModelShape) -> bool:
    """True if all divisors of the arithmetic are positive."""
    counted = (
        min(shape.layers, shape.heads, shape.kv_heads) > 0 and min(shape.attention_layers, shape.dense_layers) >= 0
    )
    return counted and shape.experts_per_token <= shape.experts and shape.rope_dim <= (shape.latent or shape.head_dim)


def _decode(model: DecodedModel, load: Load, anchor: Measured) -> Estimate:
    """Widths add as squares: what is not known of the machine and what is not known of the text are independent."""
    how, tokens = method(model.recipe.speculation, load.text), drafted(model.recipe.speculation)
    fallen = (chance * kept for chance, kept in zip((how.high, how.likely, how.low), _deep(model, load), strict=True))
    chances = (anchor.accepted or chance for chance in fallen)
    most, middle, least = (yielded(tokens, chance) for chance in chances)
    every = rate_range(model.recipe, model.shape)
    fast, likely, slow = (_step(model, load, rate) for rate in every)
    slow += _crowded(model, load, every[2])
    value, why = middle / likely, of_decode(model, load, every[1], middle)
    low, high = _both(slow / likely, middle / least), _both(likely / fast, most / middle)
    what = "drafts" if tokens else "streams" if together(model.recipe, load) > 1 else "decode"
    low, high = (side ** width_power(what, model.shape) for side in (low, high))
    if stays := model.recipe.model.on_disk:
        low = _both(low, _ROWS_READ)
        rows = f"rows take {milliseconds(every[1].rows)} a step; twice as slow where none are staged"
        why = (*why, f"{gib(stays)} of tables off memory: {rows}")
    if anchor.decode:
        there = replace(load, depth=anchor.depth, prompt=0, concurrency=anchor.concurrency)
        apart = likely / _step(model, there, every[1])
        value = anchor.decode / apart
        said = f"scaled to {anchor.decode:g} tokens/s measured at {anchor.depth:,} tokens, {anchor.concurrency} at once"
        varies = _DRAFTS_VARY if tokens and not anchor.accepted else 1.0
        low = high = _both(_both(_ANCHORED, varies), max(apart, 1 / apart) ** _APART)
        why = (*why, said)
    return Estimate(value, value / low, value * high, why)


def _deep(model: DecodedModel, load: Load) -> tuple[float, float, float]:
    """Share of a draft's chance that depth leaves, as (most, likely, least): it falls as the context grows."""
    doublings = log(1 + (load.depth + load.prompt) / _SHALLOW, 2) if drafted(model.recipe.speculation) else 0.0
    most, likely, least = (max(_LEAST_KEPT, 1 - falls * doublings) for falls in _FALLS)
    return most, likely, least


def _both(one: float, other: float) -> float:
    """Two independent factors of uncertainty as one."""
    return exp(hypot(log(one), log(other)))


def _step(model: DecodedModel, load: Load, rate: Rates) -> float:
    """Seconds of a step with its drafts."""
    tokens = 1 + drafted(model.recipe.speculation)
    return decode_step(model, load, rate, tokens).seconds + draft_seconds(model, load, rate)


def _crowded(model: DecodedModel, load: Load, rate: Rates) -> float:
    """Seconds that a token may wait for prompts of others, where each of them comes again for every short answer."""
    others = together(model.recipe, load) - 1
    return others * prefill(model, Load(prompt=load.depth), rate).seconds / _ANSWER if others and load.depth else 0.0


def _first(model: DecodedModel, load: Load, prompts: Sequence[Prefill]) -> Estimate:
    """Prompts of others that come first, the own one, and drafts; slow: an engine hands the token on a step later."""
    before, (fast, likely, slow) = waiting(model, load), rate_range(model.recipe, model.shape)
    drafts = draft_seconds(model, load, likely)
    ends = zip(prompts, (draft_seconds(model, load, fast), drafts, _step(model, load, slow)), strict=True)
    low, middle, high = ((1 + before) * one.seconds + last for one, last in ends)
    queue = (f"behind {before:g} other prompts",) if before else ()
    drafted_ = (f"drafts {milliseconds(drafts)}",) if drafts else ()
    found = Estimate(middle, low, high, (*of_prefill(prompts[1]), *queue, *drafted_))
    return widened(found, "first", model.shape)


def widened(one: Estimate, what: str, shape: ModelShape) -> Estimate:
    """The estimate with both sides of its range to the power that published rows of its class need."""
    power = width_power(what, shape)
    return replace(
        one, low=one.value * (one.low / one.value) ** power, high=one.value * (one.high / one.value) ** power
    )


def started(recipe: Recipe, shape: ModelShape, size: int, state: str = "") -> Estimate:
    """Seconds from the start to a server that answers. state: DISK, CACHED, UNCACHED; '' where nobody knows which."""
    if not size:
        return Estimate(0.0, why=("the checkpoint's size is not known",))
    fast, likely, slow = loading(recipe, shape, size, state)
    # What slows or speeds up one part does not do so to the others; a later start finds everything in caches at once.
    early, late = _apart_of(likely, fast), _apart_of(likely, slow)
    low = likely.seconds - early if state == DISK else fast.seconds
    return Estimate(likely.seconds, low, likely.seconds + late, of_loading(likely))


def starts(recipe: Recipe, shape: ModelShape, size: int) -> tuple[tuple[str, Estimate], ...]:
    """The first start, whose files and kernels are in no cache, and a later one; () where the size is not known."""
    return tuple((state, started(recipe, shape, size, state)) for state in (DISK, CACHED)) if size else ()


def _apart_of(one: "LoadingSeconds", other: "LoadingSeconds") -> float:
    return hypot(one.files - other.files, one.prepared - other.prepared, one.around - other.around)


@dataclass(frozen=True, slots=True)
class LoadingSeconds:
    """Seconds: of the rank's share of the files, of compiling and graphs, of everything around."""

    files: float
    prepared: float
    around: float

    @property
    def seconds(self) -> float:
        return self.files + self.prepared + self.around


def loading(
    recipe: Recipe, shape: ModelShape, size: int, state: str = ""
) -> tuple[LoadingSeconds, LoadingSeconds, LoadingSeconds]:
    """(fast, likely, slow) for a checkpoint of so many bytes. state: as of `started`."""
    held = size / (recipe.parallelism.tp * recipe.parallelism.pp)
    prepared = 0.0
    engine = traits(recipe)
    if engine.compiles and not is_eager(recipe):
        per_size = _GRAPH[0] + _GRAPH[1] * shape.layers
        prepared = _COMPILE[0] + _COMPILE[1] * shape.layers + captures(recipe)[0] * per_size
    row = loader(engine.reader(recipe) or loader_name(recipe))
    rates = {DISK: row.disk, UNCACHED: row.disk, CACHED: row.cached}.get(state, row.rate)
    every = zip(rates, _UNSURE[state], _around(engine.around, state), strict=True)
    fast, likely, slow = (LoadingSeconds(held / rate / 1e9, prepared * times, around) for rate, times, around in every)
    return fast, likely, slow


def _around(usual: tuple[float, float, float], state: str) -> tuple[float, float, float]:
    """Seconds (fast, likely, slow): the slower half of the range where kernels are compiled for the first time."""
    fast, likely, slow = usual
    if state == DISK:
        return _LEAST_FIRST * likely, sqrt(likely * slow), slow
    return (fast, sqrt(fast * likely), 2 * likely) if state == CACHED else usual


def loader_name(recipe: Recipe) -> str:
    """Its load-format, DEFAULT for those that are the same thing."""
    name = str(flag_value(recipe, LOAD_FORMAT) or "")
    return DEFAULT if name in _USUAL else name


def loader_costs(recipe: Recipe, size: int) -> tuple[LoaderCost, ...]:
    """The cost of each loader, the recipe's own first; () if the engine has no choice or the recipe reads no
    weights."""
    own, has = loader_name(recipe), loaders_of(recipe.engine.name, recipe.engine.version)
    if has is None or own == "dummy":
        return ()
    held = size / (recipe.parallelism.tp * recipe.parallelism.pp) / 1e9
    names = {own: 1, **{name: 1 for name in load_table("loaders") if not loader(name).own}}
    return tuple(_cost(name, held, True if name == DEFAULT else has(name)) for name in names)


def _cost(name: str, held: float, there: bool | None) -> LoaderCost:
    """held: GB of a rank's files."""
    row = loader(name)
    fast, likely, slow = (held / rate for rate in row.rate)
    buffers, keeps = ((int(a * GIB), int(b * GIB), int(c * GIB)) for a, b, c in (row.buffers, row.keeps))
    return LoaderCost(name, row.what, there, buffers, keeps, Estimate(likely, fast, slow))


def of_decode(model: DecodedModel, load: Load, rates: Rates, yielded: float) -> Lines:
    """yielded: tokens that a step gives one sequence."""
    tokens = drafted(model.recipe.speculation)
    one, running = decode_step(model, load, rates, 1 + tokens), together(model.recipe, load)
    lines = [
        f"weights: {milliseconds(one.weights)} a step at {rates.read / 1e9:.0f} GB/s, "
        f"{running * (1 + tokens)} tokens in it"
    ]
    if one.cache:
        lines.append(f"cache of {load.depth + load.prompt:,} tokens x {running}: {milliseconds(one.cache)}")
    lines.append(f"{kernels(model.shape):,} kernels x {rates.kernel * 1e6:g} us: {milliseconds(one.kernels)}")
    if one.indexers:
        lines.append(f"{model.shape.index_layers} indexers x {rates.index * 1e6:g} us: {milliseconds(one.indexers)}")
    if one.exchanges:
        lines.append(f"exchanges between nodes at {rates.exchange * 1e6:.0f} us: {milliseconds(one.exchanges)}")
    if one.host:
        reason = "no CUDA graphs" if is_eager(model.recipe) else "no graph for so many tokens"
        lines.append(f"{reason}: the CPU needs {milliseconds(one.host)} to launch them, at the same time")
    if tokens:
        drafts = milliseconds(draft_seconds(model, load, rates))
        lines.append(f"{model.recipe.speculation.method} drafts {tokens}: {drafts}; {yielded:.2f} tokens a step")
    return tuple(lines)


def of_prefill(one: Prefill) -> Lines:
    lines = [f"{one.tokens:,} tokens in {one.chunks} chunk{'s' * (one.chunks > 1)}: products {duration(one.products)}"]
    lines.append(f"attention {duration(one.attention)}, weights {duration(one.weights)}, start {duration(one.fixed)}")
    if one.exchanges:
        lines.append(f"exchanges between nodes {duration(one.exchanges)}")
    if one.rows:
        lines.append(f"rows of tables off memory {duration(one.rows)}: less where they are in the page cache")
    return tuple(lines)


def of_loading(one: LoadingSeconds) -> Lines:
    return (
        f"the rank's share of the files: {duration(one.files)}",
        f"compiling and graphs: {duration(one.prepared)}",
        f"imports, profile, warm-up: {duration(one.around)}",
    )
