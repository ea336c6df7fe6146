"""The knobs that make a recipe fit: each knob's steps from the mildest on, and the cost of a step for its user.

The cost ("loss") is a number only to put remedies in order, by what the user gives up:

| knob | loss |
|---|---|
| drop the page cache | 0.01: files are read again |
| another memory fraction (or pinned KV) | 0.02, and 0.2 for each whole fraction of distance |
| fewer batched tokens | 0.04 for each halving: prefill is slower |
| KV cache of 8 bits | 0.12: some precision |
| fewer sequences | 0.25 x the part of them that is lost |
| shorter context | the part of it that is lost |
| tables of single rows on disk | 0.3: a step waits for reads, by an unknown time |
| stop something else on a node | 0.4: somebody else's work |
| no CUDA graphs | 0.55: decoding that much slower (gpt-oss-120b on a GB10: 59 to 26 tokens/s) |
| another checkpoint of the model | 0.6: another precision, to be judged again |
| more nodes | 1 for each doubling |
"""

from collections.abc import Iterable, Iterator, Sequence
from math import log2
from typing import Any

from sparkwright.domain.checkpoint import Stored, Use
from sparkwright.domain.ledger import Lack
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Parallelism, Recipe
from sparkwright.domain.units import GIB, gib
from sparkwright.domain.values import asdict, dataclass, field, replace
from sparkwright.domain.verdict import Action, ActionKind, Variant
from sparkwright.engines.catalog import ENGINES, traits
from sparkwright.engines.flag_data import flag_data, versions
from sparkwright.planner import limits
from sparkwright.planner.parallelism import refusals, splits
from sparkwright.planner.parts import missing, settled, table_size

FINE, COARSE, LONG = 1024, 4096, 32768
_LEAST_CONTEXT = 2048
_BATCHED = (16384, 8192, 4096, 2048, 1024, 512)
_SEQUENCES = (256, 192, 128, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1)
# The most that a recipe may ask for (recipes/schema.py): the system needs the rest.
LEAST_FRACTION, MOST_FRACTION, MOST_PINNED = 0.30, 0.92, 112 * GIB
TOO_HIGH = frozenset({Lack.CLAIM, Lack.NODE})
TOO_LOW = frozenset({Lack.POOL, Lack.CONTEXT})
# An engine claims its fraction of a node's memory whatever it is to serve.
_CLAIM = frozenset({Lack.CLAIM})
_EIGHT_BITS = ("fp8", "fp8_e4m3", "q8_0")
_NARROW = ("fp8", "int8", "nvfp4", "fp4", "turboquant", "q8", "q4", "mxfp8", "int4")
_MORE_NODES = (2, 4, 8)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The world around a recipe. nodes: of the cluster. kv_dtypes: types of KV cache that the engine takes.

    fraction: what the engine takes when the recipe gives none, 0 for one that claims no share. actions: each group does
    one thing on one or more nodes. checkpoints: of the same model in another form, on some node's disk. file_split: the
    parallelism in the user's file, where the recipe was planned for another number of nodes.
    """

    nodes: int = 1
    shape: ModelShape | None = None
    kv_dtypes: tuple[str, ...] = ()
    fraction: float = 0.0
    actions: tuple[tuple[Action, ...], ...] = ()
    checkpoints: tuple[tuple[Stored, Use], ...] = ()
    file_split: Parallelism | None = None


@dataclass(frozen=True, slots=True)
class KnobStep:
    variant: Variant
    loss: float


@dataclass(frozen=True, slots=True)
class Knob:
    """steps: the mildest first. past: lacks that mean that a step went too far, of what can be too high and too low.
    keeps: lacks that no step changes.

    Knobs of one kind are ways to the same end: only the cheapest that fits is shown.
    """

    kind: str
    steps: tuple[KnobStep, ...]
    past: frozenset[Lack] = field(default=frozenset())
    keeps: frozenset[Lack] = field(default=frozenset())


def list_knobs(recipe: Recipe, world: Surroundings) -> tuple[Knob, ...]:
    """All that can be turned for this recipe, cheapest kinds first."""
    spread = _CLAIM if recipe.parallelism.world_size == recipe.nodes else frozenset[Lack]()
    found = [
        *_acts(world, ActionKind.DROP_CACHE, 0.01),
        *_pool(recipe, world),
        Knob("batched tokens", tuple(_batched(recipe)), keeps=_CLAIM),
        Knob("KV type", tuple(_kv_type(recipe, world)), keeps=_CLAIM),
        Knob("sequences", tuple(_sequences(recipe)), keeps=_CLAIM),
        Knob("context", tuple(_context(recipe, world.shape)), keeps=_CLAIM),
        Knob("tables", tuple(_tables(recipe, world.shape))),
        *_acts(world, ActionKind.STOP, 0.4),
        Knob("CUDA graphs", tuple(_eager(recipe)), keeps=_CLAIM),
        *_checkpoints(recipe, world),
        *(Knob("nodes", (step,), keeps=spread) for step in _nodes(recipe, world)),
    ]
    return tuple(knob for knob in found if knob.steps)


def context_of(recipe: Recipe, shape: ModelShape | None) -> int:
    """The longest sequence that the engine will take: the recipe's, else the model's."""
    return recipe.serving.context or (shape.positions if shape else 0)


def contexts(most: int, least: int = _LEAST_CONTEXT) -> tuple[int, ...]:
    """Friendly lengths up to `most`, longest first: every 4,096, below 32,768 every 1,024."""
    coarse = range(most - most % COARSE, LONG - 1, -COARSE)
    fine = range(min(most - most % FINE, LONG - FINE), least - 1, -FINE)
    return (*coarse, *fine)


def eight_bits(recipe: Recipe, types: Sequence[str]) -> str:
    """The engine's KV type of 8 bits where the recipe's own is wider; '' when there is none."""
    if recipe.serving.kv_dtype.startswith(_NARROW):
        return ""
    return next((name for name in _EIGHT_BITS if name in types), "")


def setting(**serving: Any) -> Variant:
    return Variant(tuple((f"serving.{name}", value) for name, value in serving.items()))


def fractions(low: float, high: float) -> tuple[float, ...]:
    """Every hundredth between them, rising."""
    return tuple(n / 100 for n in range(round(low * 100), round(high * 100) + 1))


def _acts(world: Surroundings, kind: ActionKind, loss: float) -> Iterator[Knob]:
    for done in world.actions:
        if done and done[0].kind is kind:
            yield Knob(done[0].command, (KnobStep(Variant(actions=done), loss),))


def _pool(recipe: Recipe, world: Surroundings) -> Iterator[Knob]:
    """The share of the pool, and KV that is pinned, both ways: less of what is not free, more where it is too small."""
    now, pinned = recipe.serving.memory_fraction or world.fraction, recipe.serving.kv_cache_bytes
    if now:
        yield from _both_ways("memory_fraction", now, fractions(LEAST_FRACTION, MOST_FRACTION), 1.0)
    if pinned:
        yield from _both_ways("kv_cache_bytes", pinned, tuple(range(GIB, MOST_PINNED + 1, GIB)), MOST_PINNED)


def _both_ways(name: str, now: float, values: Sequence[float], whole: float) -> Iterator[Knob]:
    """values: rising; whole: the distance that costs 0.2."""

    def steps(found: Iterable[float]) -> tuple[KnobStep, ...]:
        return tuple(KnobStep(setting(**{name: value}), 0.02 + 0.2 * abs(value - now) / whole) for value in found)

    yield Knob(f"less {name}", steps(value for value in reversed(values) if value < now), past=TOO_LOW)
    yield Knob(f"more {name}", steps(value for value in values if value > now), past=TOO_HIGH)


def _batched(recipe: Recipe) -> Iterator[KnobStep]:
    """vLLM wants as many batched tokens as sequences at least."""
    now, least = limits.batched_tokens(recipe), max(512, limits.sequences(recipe))
    if not traits(recipe).batches:
        return
    for tokens in _BATCHED:
        if least <= tokens < now:
            yield KnobStep(setting(batched_tokens=tokens), 0.04 * log2(now / tokens))


def _sequences(recipe: Recipe) -> Iterator[KnobStep]:
    now = limits.sequences(recipe)
    for count in _SEQUENCES:
        if count < now:
            yield KnobStep(setting(sequences=count), 0.25 * (1 - count / now))


def _context(recipe: Recipe, shape: ModelShape | None) -> Iterator[KnobStep]:
    now, most = context_of(recipe, shape), shape.positions if shape else 0
    above = 0 < most < now
    for tokens in dict.fromkeys((*([most] if above else []), *contexts(most if above else now - 1))):
        yield KnobStep(setting(context=tokens), 1 - tokens / now)


def _kv_type(recipe: Recipe, world: Surroundings) -> Iterator[KnobStep]:
    name = eight_bits(recipe, world.kv_dtypes)
    if name:
        yield KnobStep(setting(kv_dtype=name), 0.12)


def _tables(recipe: Recipe, shape: ModelShape | None) -> Iterator[KnobStep]:
    """Tables of which a token needs single rows, on disk; also with an engine that can, where nothing ties to this."""
    stays = _table_bytes(recipe, shape)
    if shape is None or not stays:
        return
    disk: tuple[str, Any] = ("model.on_disk", stays - stays % GIB or stays)
    if flags := _off_options(recipe):
        yield KnobStep(Variant((disk, *flags)), 0.3)
    elif not (recipe.flags or recipe.env or recipe.engine.image):
        for name, version, flags in _engines_off(recipe, shape):
            yield KnobStep(Variant((("engine.name", name), ("engine.version", version), disk, *flags)), 0.7)


def tables_elsewhere(recipe: Recipe, shape: ModelShape | None) -> str:
    """The engines that leave the model's tables on disk, where the recipe's own has no option for it; '' else."""
    stays = _table_bytes(recipe, shape)
    if shape is None or not stays or _off_options(recipe):
        return ""
    able = " or ".join(f"{name} {version}" for name, version, _ in _engines_off(recipe, shape))
    own = recipe.engine.label
    return f"{own} keeps {gib(stays)} of the model's tables in memory, {able} can leave them on disk" if able else ""


def _table_bytes(recipe: Recipe, shape: ModelShape | None) -> int:
    """Bytes of tables of single rows that are in memory now; 0 where that is not known."""
    size = recipe.model.size
    written = None if shape is None or recipe.model.on_disk else settled(shape, size)
    if written is None or missing(written):
        return 0
    stays = int(written.tables * table_size(written))
    return 0 if size and stays >= size else max(0, stays)


def _engines_off(recipe: Recipe, shape: ModelShape) -> Iterator[tuple[str, str, tuple[tuple[str, Any], ...]]]:
    """Engines for such files whose newest release leaves tables on disk: name, version, options."""
    for name in ENGINES:
        version = (versions(name) or ("",))[-1]
        other = replace(recipe, engine=replace(recipe.engine, name=name, version=version))
        if traits(other).gguf is (shape.quantization == "gguf") and (flags := _off_options(other)):
            yield name, version, flags


def _off_options(recipe: Recipe) -> tuple[tuple[str, Any], ...]:
    """The options that leave tables on disk; () where this version of the engine lacks one of them."""
    off = traits(recipe).tables_off
    data, _ = flag_data(recipe.engine.name, recipe.engine.version)
    there = data is not None and all(name in data.options for name, _ in off)
    return tuple((f"flags.{name}", value) for name, value in off) if there else ()


def _eager(recipe: Recipe) -> Iterator[KnobStep]:
    flag = traits(recipe).eager_flag
    if flag and not limits.is_eager(recipe):
        yield KnobStep(Variant(((f"flags.{flag}", True),)), 0.55)


def _checkpoints(recipe: Recipe, world: Surroundings) -> Iterator[Knob]:
    """Smallest first, and each one's size, which the recipe may give of its own."""
    for stored, use in world.checkpoints:
        keys = dict(use.change)
        own = {"model.path": ""} if "model.id" in keys and recipe.model.path else {}
        size = {"model.size": stored.size} if recipe.model.size else {}
        size |= {"model.on_disk": 0} if recipe.model.on_disk else {}
        yield Knob(f"checkpoint {stored.label}", (KnobStep(Variant(tuple({**keys, **own, **size}.items())), 0.6),))


def _nodes(recipe: Recipe, world: Surroundings) -> Iterator[KnobStep]:
    """Steps to larger numbers of nodes, each with the split that changes least and that model and engine allow."""
    own = recipe.parallelism
    for count in _MORE_NODES:
        allowed = splits_for(recipe, world.shape, count) if count > recipe.nodes else ()
        if not allowed:
            continue
        best = allowed[0]
        other = [(f"parallelism.{name}", new) for name, new in asdict(best).items() if _other(name, new, own, world)]
        yield KnobStep(Variant((("nodes", count), *other)), log2(count / recipe.nodes))


def _other(name: str, new: Any, own: Parallelism, world: Surroundings) -> bool:
    """True if a key of the split changes in the recipe that is planned, or in the file that the user changes."""
    return bool(new != getattr(own, name) or (world.file_split and new != getattr(world.file_split, name)))


def splits_for(recipe: Recipe, shape: ModelShape | None, count: int) -> tuple[Parallelism, ...]:
    """Splits over `count` nodes that model and engine allow; those closest to the recipe's own come first."""
    allowed = [split for split in splits(count, shape) if not refusals(shape, recipe, split)]
    return tuple(sorted(allowed, key=lambda split: _unlike(split, recipe.parallelism)))


def _unlike(split: Parallelism, own: Parallelism) -> tuple[bool, int, int, int]:
    """The kinds of parallelism that the recipe has grow; tensor parallelism grows before the others."""
    return split.ep != own.ep, split.dp if own.dp == 1 else 0, split.pp if own.pp == 1 else 0, -split.tp


def kv_dtypes(recipe: Recipe) -> tuple[str, ...]:
    """Types of KV cache that this version of the engine takes, as far as its data show."""
    data, _ = flag_data(recipe.engine.name, recipe.engine.version)
    option = data.options.get(traits(recipe).kv_option) if data else None
    return tuple(str(name) for name in option.allowed("")) if option else ()
