"""Speculative decoding: how many tokens a step yields, and what the drafts cost."""

from dataclasses import dataclass

from sparkwright.domain.recipe import Speculation
from sparkwright.domain.speed import Load
from sparkwright.planner.speed_rates import Rates
from sparkwright.planner.speed_step import Model, together
from sparkwright.planner.speed_weights import weighed
from sparkwright.planner.split_cost import read


@dataclass(frozen=True, slots=True)
class Method:
    """low, likely, high: probability that a draft token is accepted when those before it were.

    each: every token of a draft is a pass of its own. layers: of one pass, 0 where no model drafts.
    """

    low: float
    likely: float
    high: float
    each: bool = True
    layers: int = 1


# What published GB10 runs imply: MTP 0.4 to 0.93, DSpark 0.45 (prose) to 0.99 (counting), DFlash about as DSpark,
# n-gram 0.2 to 0.8 by how much of the answer is in the question.
_METHODS = {
    "mtp": Method(0.4, 0.73, 0.95),
    "nextn": Method(0.4, 0.75, 0.95),
    "eagle": Method(0.2, 0.6, 0.9),
    "dspark": Method(0.4, 0.83, 0.99, each=False, layers=3),
    "dflash": Method(0.35, 0.78, 0.98, each=False, layers=5),
    "ngram": Method(0.05, 0.4, 0.9, each=False, layers=0),
}
_OTHER = Method(0.2, 0.6, 0.95)
_TOKENS = 3  # when nobody says how many are drafted
_HOST = 1.5e-3  # seconds of a pass beside its reading: sampling, and the input of the next


def drafted(speculation: Speculation) -> int:
    """Tokens that each step drafts; 0 without speculation."""
    return (speculation.tokens or _TOKENS) if speculation.method else 0


def method(speculation: Speculation) -> Method:
    name = speculation.method.lower()
    return next((one for word, one in _METHODS.items() if word in name), _OTHER)


def yielded(tokens: int, accepted: float) -> float:
    """Tokens of a step that verifies so many drafts: those accepted in a row, and one of the model itself."""
    return sum(accepted**n for n in range(tokens + 1))


def draft_seconds(model: Model, load: Load, rates: Rates) -> float:
    """Of all passes before one step: the draft's layers, the vocabulary, two exchanges a layer, the host between."""
    tokens, how = drafted(model.recipe.speculation), method(model.recipe.speculation)
    if not tokens:
        return 0.0
    passes, batch = (tokens, 1) if how.each else (1, tokens)
    waits = 2 * how.layers * rates.exchange if model.recipe.parallelism.tp > 1 else 0.0
    loaded = _loaded(model, rates, how, batch * together(model.recipe, load)) if how.layers else 0.0
    return passes * (loaded / rates.read + waits + _HOST)


def _loaded(model: Model, rates: Rates, how: Method, batch: int) -> float:
    """Bytes of a pass: layers like the model's own, and its vocabulary."""
    shape, split = model.shape, model.recipe.parallelism
    counted = weighed(shape, model.size, rates.rest)
    inner = tuple(part for part in counted if not part.ends)
    ends = tuple(part for part in counted if part.ends)
    return read(inner, shape, split, batch) * how.layers / shape.layers + read(ends, shape, split, batch)
