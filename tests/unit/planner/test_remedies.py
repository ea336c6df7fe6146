"""Remedies: each one fits, the cheapest are reported first, and what they cost is next to them."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.domain.checkpoint import Checkpoint, Stored, Usability, Use
from sparkwright.domain.ledger import Lack
from sparkwright.domain.recipe import Recipe, RecipeState
from sparkwright.domain.units import GIB
from sparkwright.domain.verdict import Action, ActionKind, Remedy, Verdict
from sparkwright.planner.knobs import contexts
from sparkwright.planner.remedies import BUDGET, SPARE, WANTED, remedies
from unit.planner.toy import POSITIONS, RECIPE, SHAPE, WORLD, Toy, recipe

STOP = Action("spark-1", ActionKind.STOP, "sudo kill 7", 30 * GIB, "comfy (pid 7) ends: 30.0 GiB", (7,))
SMALL = Stored("spark-2", "org/toy-nvfp4", "", "nvfp4", Checkpoint("/m", "/m", "", 30 * GIB, 4, shape=SHAPE))
USE = Use("toy", Usability.COULD, (("model.id", "org/toy-nvfp4"),), "nvfp4 instead of bf16")
EVERYTHING = replace(WORLD, actions=((STOP,),), checkpoints=((SMALL, USE),))


def changes(found: tuple[Remedy, ...]) -> list[str]:
    return [remedy.change for remedy in found]


@given(
    used=st.floats(2, 100), weights=st.floats(5, 250), token=st.floats(1, 400),
    fraction=st.sampled_from([0.4, 0.8, 0.92]), context=st.sampled_from([8192, 131072, 262144]),
)  # fmt: skip
def test_every_remedy_fits(used: float, weights: float, token: float, fraction: float, context: int) -> None:
    """The judge says yes to each remedy when asked again, whatever the node has; and few questions were needed."""
    toy = Toy(used=used, weights=weights, token=token, sizes={"org/toy-nvfp4": weights / 2})
    wanted = recipe(memory_fraction=fraction, context=context)
    fits = toy.verdict(wanted).fits
    toy.asked = 0
    found, _ = remedies(wanted, toy, EVERYTHING)
    assert toy.asked <= BUDGET and len(found) <= WANTED
    assert not (fits and found)
    for remedy in found:
        verdict = toy.verdict(remedy.recipe, remedy.variant.actions)
        assert verdict.fits and verdict.room >= SPARE and verdict == remedy.verdict
    assert len(set(changes(found))) == len(found)


@given(weights=st.floats(30, 90), token=st.floats(50, 400))
def test_the_context_is_the_longest_that_fits(weights: float, token: float) -> None:
    """The next friendly length above the one proposed does not fit."""
    toy = Toy(weights=weights, token=token)
    wanted = recipe(context=262144)
    for remedy in remedies(wanted, toy, WORLD)[0]:
        if list(remedy.variant.keys) == ["serving.context"]:
            longer = [length for length in contexts(262144) if length > remedy.recipe.serving.context]
            assert longer and not toy.verdict(recipe(context=longer[-1])).fits


def test_what_fits_needs_no_remedy() -> None:
    """One question, no answer."""
    toy = Toy()
    assert remedies(RECIPE, toy, EVERYTHING) == ((), ()) and toy.asked == 1


def test_a_fraction_that_is_not_free_is_lowered_no_more_than_needed() -> None:
    """Report 001's 0.88 next to 16 GB of other services: the largest share that is free, or the services' end."""
    toy = Toy(used=24.0)
    found, _ = remedies(recipe(memory_fraction=0.88), toy, EVERYTHING)
    assert changes(found)[:2] == ["serving.memory_fraction: 0.79", "sudo kill 7   # on spark-1"]
    assert "memory fraction 0.88 -> 0.79" in found[0].costs
    assert any(cost.startswith("KV pool ") for cost in found[0].costs)
    assert found[1].costs == ("comfy (pid 7) ends: 30.0 GiB",)


def test_a_pool_that_is_too_small_gets_more_before_the_context_gets_less() -> None:
    """The remedies come in the order of the user's loss: a free share of memory, precision, context."""
    found, _ = remedies(recipe(context=262144, kv_dtype="auto"), Toy(token=160), WORLD)
    assert changes(found) == ["serving.memory_fraction: 0.88", "serving.kv_dtype: fp8", "serving.context: 196608"]
    assert found[0].costs == ("memory fraction 0.8 -> 0.88", "6.4 GiB stay free on the fullest node")
    assert found[1].costs == ("KV cache auto -> fp8: some precision",)
    assert found[2].costs == ("context 262,144 -> 196,608 tokens (-25%)",)


def test_slower_is_reported_in_tokens_a_second() -> None:
    """Fewer batched tokens read a prompt more slowly: by how much is next to it."""
    (found,) = (r for r in remedies(recipe(context=262144), Toy(token=123), WORLD)[0] if "batched" in r.change)
    assert found.costs == ("batched 8,192 -> 4,096 tokens (-50%)", "prefill about 1,778 -> 1,600 tokens/s")


def test_two_changes_where_one_is_not_enough() -> None:
    """A share that is free and a context that fits in it; neither helps alone."""
    toy = Toy(used=30.0, token=400)
    found, _ = remedies(recipe(memory_fraction=0.9), toy, replace(WORLD, kv_dtypes=(), shape=None, nodes=1))
    assert "serving.memory_fraction: 0.74, serving.context:" in changes(found)[0]
    lowered = toy.verdict(recipe(memory_fraction=0.74))
    assert not lowered.fits


def test_another_checkpoint_is_named_with_what_it_is() -> None:
    """Weights that no limit makes fit: the smaller form that lies on a disk, and more nodes."""
    toy = Toy(weights=150.0, sizes={"org/toy-nvfp4": 40.0})
    found, _ = remedies(recipe(memory_fraction=0.8), toy, EVERYTHING)
    smaller = next(remedy for remedy in found if "org/toy-nvfp4" in remedy.change)
    assert smaller.change == "model.id: org/toy-nvfp4, model.size: 30 GiB"
    assert smaller.costs[0] == "nvfp4 weights, 30.0 GiB on spark-2; nvfp4 instead of bf16"
    wider = next(remedy for remedy in found if "nodes:" in remedy.change)
    assert wider.recipe.nodes == wider.recipe.parallelism.world_size > 1


@pytest.mark.parametrize(("nodes", "told"), [(4, "3 more nodes"), (1, "3 more nodes than now; the cluster has 1")])
def test_nodes_that_are_not_there_are_not_counted_on(nodes: int, told: str) -> None:
    """The cost reports whether the cluster has them."""
    toy = Toy(weights=300.0)
    found, _ = remedies(recipe(memory_fraction=0.85), toy, replace(WORLD, nodes=nodes))
    assert told in next(remedy.costs for remedy in found if "nodes: 4" in remedy.change)


def test_less_and_more_of_one_thing_are_never_asked_together() -> None:
    """Guards the time of a plan: the second would undo the first, and was asked alone."""
    toy, asked = Toy(used=30.0, token=400), list[Recipe]()

    class Noting(Toy):
        def verdict(self, recipe: Recipe, actions: Sequence[Action] = ()) -> Verdict:
            asked.append(recipe)
            return super().verdict(recipe, actions)

    given = recipe(memory_fraction=0.8)
    remedies(given, Noting(used=30.0, token=400), replace(WORLD, kv_dtypes=(), shape=None, nodes=1))
    assert toy.verdict(given).lack is Lack.CLAIM
    assert min(one.serving.memory_fraction for one in asked) < 0.8
    assert not [one for one in asked if one.serving.memory_fraction > 0.8]


def test_a_recipe_that_is_known_not_to_work_is_searched_no_further_than_its_refusal() -> None:
    """Guards the time of a plan: no change lifts that, and one thing that would fit is enough to name it."""
    given = replace(recipe(memory_fraction=0.9), state=RecipeState.REFUSED)
    asked: list[Recipe] = []

    def refusal(changed: Recipe, _: Sequence[Action]) -> str:
        asked.append(changed)
        return "REC001 (refused)"

    assert remedies(given, Toy(used=30.0), EVERYTHING, refusal) == ((), ("REC001 (refused)",))
    assert len(asked) == 1


def test_nothing_is_proposed_where_nothing_helps() -> None:
    """A model far too large for four nodes has no remedy here."""
    assert remedies(RECIPE, Toy(weights=900.0), EVERYTHING) == ((), ())


@pytest.mark.parametrize(("used", "more"), [(8.0, set()), (30.0, {"serving.memory_fraction"})])
def test_a_context_above_the_model_s_gets_that_maximum_first(used: float, more: set[str]) -> None:
    """Guards `nothing fits` for a recipe that fits at the longest context that there is; other changes come on top."""
    wanted = recipe(context=16 * POSITIONS)
    (first, *_), _ = remedies(wanted, Toy(used=used, token=20.0), WORLD)
    assert (
        first.variant.keys["serving.context"] == POSITIONS and first.variant.keys.keys() - {"serving.context"} == more
    )
