"""A judge with a memory model of a few lines: what searches are tested against."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sparkwright.domain.ledger import KvCapacity, Lack
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import EngineChoice, Model, Parallelism, Recipe, Serving
from sparkwright.domain.units import GIB, KIB
from sparkwright.domain.verdict import Action, Estimate, Load, Speed, Verdict
from sparkwright.planner import limits
from sparkwright.planner.knobs import Surroundings

POSITIONS = 262144
SHAPE = ModelShape(layers=48, heads=32, kv_heads=8, hidden=4096, vocab=151936, head_dim=128, positions=POSITIONS)
WORLD = Surroundings(nodes=2, shape=SHAPE, kv_dtypes=("auto", "fp8"), fraction=0.9)
RECIPE = Recipe(
    "toy",
    "Toy",
    Model(id="org/toy", size=60 * GIB),
    EngineChoice("vllm", "0.21.0"),
    serving=Serving(context=131072, sequences=64, batched_tokens=8192, memory_fraction=0.8),
)


def recipe(**serving: float | str) -> Recipe:
    return replace(RECIPE, serving=replace(RECIPE.serving, **serving))  # type: ignore[arg-type]


@dataclass
class Toy:
    """`used` of `pool` GiB are taken; weights are split over the ranks, KV takes `token` KiB a token."""

    pool: float = 120.0
    used: float = 8.0
    weights: float = 60.0
    token: float = 100.0
    sizes: Mapping[str, float] = field(default_factory=dict)
    asked: int = 0

    def verdict(self, recipe: Recipe, actions: Sequence[Action] = ()) -> Verdict:
        self.asked += 1
        s, ranks = recipe.serving, recipe.parallelism.world_size
        free = self.pool - max(0.0, self.used - sum(action.frees for action in actions) / GIB)
        engine = self.sizes.get(recipe.model.id, self.weights) / ranks + self._needs(recipe)
        claim = s.memory_fraction * self.pool
        kv, one = claim - engine, self._each(recipe) * s.context / ranks
        found = (
            (claim > free, Lack.CLAIM, claim - free),
            (kv <= 0, Lack.POOL, one - kv),
            (kv < one, Lack.CONTEXT, one - kv),
        )
        lack, short = next(((lack, short) for holds, lack, short in found if holds), (None, 0.0))
        tokens = int(max(0.0, kv) / self._each(recipe) * ranks)
        capacity = KvCapacity(int(max(0.0, kv) * GIB), tokens, tokens, tokens / s.context)
        return Verdict(lack is None, lack, int(short * GIB), "spark-1", int((free - claim) * GIB), capacity)

    def _needs(self, recipe: Recipe) -> float:
        graphs = 0.0 if limits.is_eager(recipe) else 1.5
        return 1.0 + recipe.serving.batched_tokens / 4096 + recipe.serving.sequences / 64 + graphs

    def _each(self, recipe: Recipe) -> float:
        """GiB that a token takes on all ranks together."""
        return self.token * KIB / GIB / (2 if recipe.serving.kv_dtype == "fp8" else 1)

    def speed(self, recipe: Recipe, load: Load) -> Speed:
        """Decoding is shared by the streams, but for what their number gains; prefill likes large batches."""
        step = (2.0 if limits.is_eager(recipe) else 1.0) * (1 + 0.1 * load.concurrency)
        decode, prefill = 50 / step, 2000 * limits.batched_tokens(recipe) / (limits.batched_tokens(recipe) + 1024)
        one, each = Estimate(decode, decode, decode), Estimate(prefill, prefill, prefill)
        ttft, every = load.prompt / prefill, decode * load.concurrency
        return Speed(load, one, Estimate(every, every, every), each, Estimate(ttft, ttft, ttft), Estimate(100.0))


TWO_NODES = replace(RECIPE, nodes=2, parallelism=Parallelism(tp=2))
