"""The figures that a plan may take from an earlier start, and those that it may not."""

from dataclasses import replace

import pytest

from sparkwright.domain.calibration import Calibration
from sparkwright.domain.recipe import EngineChoice, Model, Parallelism, Recipe, Serving, Speculation
from sparkwright.domain.units import GIB, MIB
from sparkwright.planner.calibrate import calibrate_for_pool, choose, conditions, holding, loading, measured, source_of
from unit.for_each import for_each

RECIPE = Recipe(
    "v4",
    "V4",
    Model("org/v4", "abc"),
    EngineChoice("vllm", "0.21.0"),
    parallelism=Parallelism(tp=2),
    serving=Serving(context=131072, memory_fraction=0.8),
)
FACTS = {"weights_gib": "74.08", "kv_gib": "26.72", "kv_tokens": "4047815", "graphs_gib": "0.41"}
HERE = {"rank": 0, "node": "spark-1", "driver": "580.95.05", "image": "sha256:1"}
DATE = 1_763_700_000.0  # 2025-11-21


def start(recipe: Recipe = RECIPE, at: float = DATE, **where: str | int) -> Calibration:
    under = conditions(recipe, False, **{**HERE, **where})
    return measured(FACTS, under, at=at, pool=120 * GIB, source="v4")


def chosen(*known: Calibration, alike: bool = True, **where: str | int) -> Calibration:
    found = choose(known, conditions(RECIPE, False, **{**HERE, **where}), alike)
    assert found
    return found


def test_an_engines_figures_become_bytes() -> None:
    """GiB as the engine prints them, two decimals; what it does not print stays unknown, and so does nonsense."""
    found = start()
    assert (found.weights, found.kv, found.graphs) == (round(74.08 * GIB), round(26.72 * GIB), round(0.41 * GIB))
    assert found.kv_tokens == 4_047_815
    odd = measured({"weights_mib": "300.5", "kv_gib": "-6.52", "kv_tokens": "many"}, found.conditions)
    assert (odd.weights, odd.kv, odd.kv_tokens, odd.graphs) == (round(300.5 * MIB), None, None, None)
    assert measured({"version": "0.21.0", "kv_gib": "nan"}, found.conditions).is_empty


def test_the_same_start_is_taken_as_it_is() -> None:
    """Nothing differs, so the range is that of repeated starts."""
    found = chosen(start())
    assert (found.differs, found.spread) == ((), 0.005)
    assert found.around(100 * GIB) == (99.5 * GIB, 100.5 * GIB)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"node": "spark-9"}, "another node"),
        ({"driver": "590.1"}, "driver 590.1 then"),
        ({"image": "sha256:2"}, "another image"),
        ({"rank": 1}, "rank 1 spoke"),
    ],
)
def test_another_place_counts_with_a_wider_range(where: dict[str, str | int], said: str) -> None:
    """The same recipe elsewhere is still better than any formula; the plan reports what was different."""
    found = chosen(start(**where))
    assert found.differs == (said,)
    assert found.spread > chosen(start()).spread
    assert found.weights == start().weights


def test_the_pool_is_less_sure_than_the_weights() -> None:
    """Three starts of one recipe on a GB10 left 62.31, 62.59 and 62.81 GiB; the rest cannot be below nothing."""
    low, high = start().around(round(62.59 * GIB), pool=True)
    assert low < 62.31 * GIB and high > 62.81 * GIB
    assert chosen(start(node="spark-9")).around(GIB, pool=True) == (0, GIB + GIB * 12 // 10)


def test_the_likest_start_wins_then_the_newest() -> None:
    """The same limits before the same place, the same place before a later time."""
    limits = replace(RECIPE, serving=replace(RECIPE.serving, context=4096))
    here, elsewhere, other = start(at=1.0), start(at=9.0, node="spark-9"), start(limits, at=99.0)
    assert chosen(other, elsewhere, here).at == 1.0
    assert chosen(other, elsewhere).at == 9.0
    assert chosen(start(at=1.0), start(at=2.0)).at == 2.0


@for_each(
    "changed",
    [
        replace(RECIPE, model=Model("org/v4", "def")),
        replace(RECIPE, engine=EngineChoice("vllm", "0.33.0")),
        replace(RECIPE, parallelism=Parallelism(tp=2, ep=True)),
        replace(RECIPE, flags={"quantization": "fp8"}),
        replace(RECIPE, env={"VLLM_X": "1"}),
        replace(RECIPE, speculation=Speculation("mtp", 2)),
    ],
)
def test_other_weights_calibrate_nothing(changed: Recipe) -> None:
    """Another checkpoint, engine, split, flag, variable or draft loads other bytes."""
    assert choose([start(changed)], conditions(RECIPE, False, **HERE)) is None
    assert holding(start(changed), RECIPE) is None


def test_a_simulated_start_never_represents_a_real_one() -> None:
    """A real start never represents a simulated one, either: the simulator allocates nothing, so its figures count in
    no ledger."""
    made_up = replace(start(), conditions=conditions(RECIPE, True, **HERE))
    assert choose([made_up], conditions(RECIPE, False, **HERE)) is None
    assert choose([start()], conditions(RECIPE, True, **HERE)) is None
    assert holding(made_up, RECIPE) is None
    assert source_of(made_up).startswith("simulated: ")


def test_other_limits_leave_the_weights() -> None:
    """A search over context and fractions may not take one point's KV pool for another's."""
    wider = replace(RECIPE, serving=replace(RECIPE.serving, memory_fraction=0.85))
    found = holding(start(), wider)
    assert found
    assert (found.weights, found.kv, found.kv_tokens, found.graphs) == (start().weights, None, None, None)
    assert holding(start(), replace(RECIPE, title="Other words")) == start()
    assert holding(replace(start(), weights=None), wider) is None
    assert holding(None, RECIPE) is None


def test_ranks_that_are_not_alike_speak_for_themselves() -> None:
    """The stages of a pipeline hold different layers."""
    assert choose([start(rank=1)], conditions(RECIPE, False, **HERE), alike=False) is None
    assert chosen(start(), start(rank=1), alike=False, rank=1).conditions.rank == 1


def test_another_pool_changes_the_share_that_the_engine_takes() -> None:
    """0.80 of 2 GiB more is 1.6 GiB more KV; the engine's count of tokens then no longer holds."""
    found = calibrate_for_pool(start(), RECIPE, 122 * GIB)
    assert found.kv == round(26.72 * GIB) + round(0.8 * 2 * GIB)
    assert (found.kv_tokens, found.differs) == (None, ("another pool",))
    assert calibrate_for_pool(start(), RECIPE, 120 * GIB) == start()
    assert calibrate_for_pool(start(), RECIPE, 0) == start()
    pinned = replace(RECIPE, serving=replace(RECIPE.serving, kv_cache_bytes=GIB))
    assert calibrate_for_pool(start(), pinned, 122 * GIB) == start()
    unknown = replace(start(), pool=0)
    assert calibrate_for_pool(unknown, RECIPE, 128 * GIB) == unknown
    assert calibrate_for_pool(unknown, RECIPE, 120 * GIB).differs == ("a larger pool",)
    assert (
        calibrate_for_pool(unknown, RECIPE, 120 * GIB).kv,
        calibrate_for_pool(unknown, RECIPE, 120 * GIB).weights,
    ) == (None, unknown.weights)
    own = replace(RECIPE, serving=replace(RECIPE.serving, memory_fraction=0.0))
    assert calibrate_for_pool(start(), own, 122 * GIB).kv == round(26.72 * GIB) + round(0.92 * 2 * GIB)
    assert calibrate_for_pool(start(), RECIPE, 121 * GIB) == start()
    assert calibrate_for_pool(start(), RECIPE, 50 * GIB).kv == 0
    assert calibrate_for_pool(start(), replace(RECIPE, engine=EngineChoice("llama-cpp", "9")), 50 * GIB) == start()


def test_the_time_of_a_start_is_that_of_the_last_one() -> None:
    """The time counts if the start was watched from its beginning; files and kernels may be cached by now, or not
    be."""
    watched = replace(start(), phases=(("load", 20.0), ("server", 290.0), ("answer", 300.0)))
    took = loading(watched)
    assert took and (took.value, took.low, took.high) == (300.0, 120.0, 450.0)
    there = loading(replace(watched, phases=watched.phases[:2], differs=("a log given by hand",)))
    assert there and (there.value, there.high) == (290.0, 870.0)
    assert (loading(start()), loading(None)) == (None, None)


def test_the_words_report_when_where_and_what_differs() -> None:
    """A calibrated line of the ledger shows its source."""
    assert source_of(start()) == "measured at the start of 2025-11-21 by v4 on spark-1"
    assert source_of(chosen(start(node="spark-9"))).endswith("on spark-9; not the same: another node")
    assert source_of(measured(FACTS, conditions(RECIPE, False), source="a.log")) == "measured, as in a.log"
