"""The arithmetic of an estimate in words, with the likely rates."""

from sparkwright.domain.speed import Load
from sparkwright.domain.units import duration
from sparkwright.planner.limits import eager
from sparkwright.planner.speed_drafts import draft_seconds, drafted
from sparkwright.planner.speed_loading import Loading
from sparkwright.planner.speed_prefill import Prefill
from sparkwright.planner.speed_rates import Rates
from sparkwright.planner.speed_step import Model, kernels, step, together

Lines = tuple[str, ...]


def of_decode(model: Model, load: Load, rates: Rates, yielded: float) -> Lines:
    """yielded: tokens that a step gives one sequence."""
    tokens = drafted(model.recipe.speculation)
    one, running = step(model, load, rates, 1 + tokens), together(model.recipe, load)
    lines = [
        f"weights: {_ms(one.weights)} a step at {rates.read / 1e9:.0f} GB/s, {running * (1 + tokens)} tokens in it"
    ]
    if one.cache:
        lines.append(f"cache of {load.depth + load.prompt:,} tokens x {running}: {_ms(one.cache)}")
    lines.append(f"{kernels(model.shape):,} kernels x {rates.kernel * 1e6:g} us: {_ms(one.kernels)}")
    if one.exchanges:
        lines.append(f"exchanges between nodes at {rates.exchange * 1e6:.0f} us: {_ms(one.exchanges)}")
    if one.host:
        reason = "no CUDA graphs" if eager(model.recipe) else "no graph for so many tokens"
        lines.append(f"{reason}: the CPU needs {_ms(one.host)} to launch them, at the same time")
    if tokens:
        drafts = _ms(draft_seconds(model, load, rates))
        lines.append(f"{model.recipe.speculation.method} drafts {tokens}: {drafts}; {yielded:.2f} tokens a step")
    return tuple(lines)


def of_prefill(one: Prefill) -> Lines:
    lines = [f"{one.tokens:,} tokens in {one.chunks} chunk{'s' * (one.chunks > 1)}: products {duration(one.products)}"]
    lines.append(f"attention {duration(one.attention)}, weights {duration(one.weights)}, start {duration(one.fixed)}")
    if one.exchanges:
        lines.append(f"exchanges between nodes {duration(one.exchanges)}")
    return tuple(lines)


def of_loading(one: Loading) -> Lines:
    files = f"the rank's share of the files: {duration(one.files)}"
    return (
        files,
        f"compiling and graphs: {duration(one.prepared)}",
        f"imports, profile, warm-up: {duration(one.around)}",
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"
