"""The KV cache of models whose dimensions nobody read."""

from dataclasses import replace

from sparkwright.domain.ledger import Fit
from sparkwright.domain.recipe import Model, Recipe, Stated
from sparkwright.domain.units import GIB
from sparkwright.planner.judge import verdict
from sparkwright.planner.kv_stated import stated_capacity, stated_needed, token_bytes
from sparkwright.planner.ledger import ledger
from unit.for_each import for_each
from unit.planner.memory_samples import gb10_node, model_shape, recipe

DENSE = Stated(layers=64, kv_heads=8, head_dim=128)
ROW = 64 * 8 * 128 * 2 * 2  # keys and values of 16 bits


def unread(said: Stated | None = None, engine: str = "vllm", **serving: object) -> Recipe:
    """30 GB of weights and no dimensions."""
    told = {"context": 200_000, "sequences": 8, "memory_fraction": 0.8, **serving}
    made = recipe(model_shape("minimax-m2.7-nvfp4"), tp=1, nodes=1, serving=told)
    return replace(
        made,
        engine=replace(made.engine, name=engine),
        model=Model(id="acme/Thing", size=30 * 10**9, shape=None, stated=said),
        speculation=replace(made.speculation, method=""),
    )


@for_each(
    "said, kv_dtype, tp, most",
    [
        (DENSE, "", 1, ROW),
        (DENSE, "fp8", 1, ROW // 2),
        (DENSE, "", 2, ROW // 2),
        (Stated(kv_bytes=98_304), "", 1, 98_304),
        (Stated(layers=64), "", 1, 0),
    ],
)
def test_an_author_s_dimensions_give_the_bytes_of_a_token(said: Stated, kv_dtype: str, tp: int, most: int) -> None:
    """Windows and compressed caches, of which no author tells, keep as little as a quarter of that."""
    made = unread(said, kv_dtype=kv_dtype)
    made = replace(made, parallelism=replace(made.parallelism, tp=tp))
    each = token_bytes(made)
    assert each == ((most // 4, most) if most else None)
    needed = stated_needed(made)
    assert needed == ((most // 4 * 200_000, most * 200_000) if most else None)
    held = stated_capacity(made, 30 * GIB)
    assert (held and (held.tokens, held.low)) == ((30 * GIB // most,) * 2 if most else None)


@for_each(
    "said, serving, fit",
    [
        (None, {}, Fit.UNKNOWN),
        (None, {"context": 16_000_000}, Fit.UNKNOWN),
        (DENSE, {}, Fit.FITS),
        (DENSE, {"context": 500_000}, Fit.MAY),
        (DENSE, {"context": 16_000_000}, Fit.NOT),
    ],
)
def test_a_context_of_unknown_size_is_no_fit(said: Stated | None, serving: dict[str, int], fit: Fit) -> None:
    """Guards `fits` where vLLM refuses to start: the pool is known, and what one request takes of it is not."""
    found = verdict((ledger(unread(said, **serving), gb10_node(6.0), None, 1),))
    assert (found.fit, bool(found.missing)) == (fit, fit is Fit.UNKNOWN)


def test_an_engine_that_starts_with_any_pool_fits() -> None:
    """SGLang does not ask at its start whether one whole context fits, and a simulator has no pool."""
    played = unread()
    played = replace(played, model=replace(played.model, simulated=True))
    assert verdict((ledger(played, gb10_node(6.0), None, 1),)).fit is Fit.FITS
    assert verdict((ledger(unread(engine="sglang"), gb10_node(6.0), None, 1),)).fit is Fit.FITS
