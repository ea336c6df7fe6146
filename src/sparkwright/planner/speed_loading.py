"""Seconds from start to the first answer: reading the checkpoint, compiling, capturing graphs."""

from dataclasses import dataclass

from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.planner.limits import captures, eager, flag

# Bytes/s at which a rank gets its share (fast, likely, slow). Slow is vLLM's default loader on cold files (80 GB in 552
# s; 69 GB in 216 s is nearer), fast a parallel loader with files in the page cache (80 GB in 80 s; field guide C2).
_RATES = (1.4e9, 0.45e9, 0.14e9)
_PARALLEL = ("instanttensor", "fastsafetensors", "runai_streamer")
_PARALLEL_RATE = 0.9e9
# Seconds of imports, rendezvous, profile run and warm-up (field guide C2: 45-80; cold kernels take minutes).
_AROUND = (25.0, 70.0, 240.0)
# Our own captures (vLLM 0.21.0): compiling took 10 s for 4 layers, 31 s for 36; graphs 0.08 s a batch size for 36.
_COMPILE = (8.0, 0.64)
_GRAPH = (0.03, 0.0015)
_UNSURE = (1 / 3, 1.0, 3.0)


@dataclass(frozen=True, slots=True)
class Loading:
    """Seconds: of the rank's share of the files, of compiling and graphs, of everything around."""

    files: float
    prepared: float
    around: float

    @property
    def seconds(self) -> float:
        return self.files + self.prepared + self.around


def loading(recipe: Recipe, shape: ModelShape, size: int) -> tuple[Loading, Loading, Loading]:
    """(fast, likely, slow) for a checkpoint of so many bytes."""
    held = size / (recipe.parallelism.tp * recipe.parallelism.pp)
    prepared = 0.0 if eager(recipe) else _prepared(recipe, shape)
    rates = (_RATES[0], _PARALLEL_RATE, _RATES[2]) if flag(recipe, "load-format") in _PARALLEL else _RATES
    every = zip(rates, _UNSURE, _AROUND, strict=True)
    fast, likely, slow = (Loading(held / rate, prepared * times, around) for rate, times, around in every)
    return fast, likely, slow


def _prepared(recipe: Recipe, shape: ModelShape) -> float:
    sizes, _ = captures(recipe)
    return _COMPILE[0] + _COMPILE[1] * shape.layers + sizes * (_GRAPH[0] + _GRAPH[1] * shape.layers)
