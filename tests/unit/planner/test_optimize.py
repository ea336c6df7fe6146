"""`--optimize`: what is best fits, is better than what was there, and is found with a bounded number of questions."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkwright.domain.recipe import Recipe
from sparkwright.domain.verdict import Estimate, Goal, Load, Speed, Verdict
from sparkwright.planner import limits
from sparkwright.planner.optimize import BUDGET, RESERVE, optimize
from unit.planner.toy import POSITIONS, RECIPE, WORLD, Toy, recipe


@settings(max_examples=25)
@given(
    goal=st.sampled_from(Goal), used=st.floats(2, 60), weights=st.floats(5, 130), token=st.floats(1, 400),
    context=st.sampled_from([8192, 131072]),
)  # fmt: skip
def test_the_best_fits_and_is_no_worse(goal: Goal, used: float, weights: float, token: float, context: int) -> None:
    """A setting that does not fit is never the answer on a node where one fits."""
    toy = Toy(used=used, weights=weights, token=token)
    found = optimize(recipe(context=context), toy, WORLD, goal)
    assert toy.asked == found.judged <= BUDGET
    assert all(toy.verdict(choice.recipe).fits for choice in found.table)
    assert toy.verdict(found.best.recipe) == found.best.verdict
    if found.before.verdict.fits:
        assert found.best.verdict.fits and found.best.score >= found.before.score
    if found.table:
        assert found.best.verdict.fits and found.best.score * 1.03 >= found.table[0].score


def test_context_goes_to_the_models_own_limit_and_no_further() -> None:
    """Nothing but the context is changed if there is room to spare."""
    found = optimize(recipe(context=8192), Toy(token=20), WORLD, Goal.CONTEXT)
    assert found.best.variant.keys == {"serving.context": POSITIONS}


def test_context_takes_what_it_needs() -> None:
    """The pool is the limit: a larger share, a narrower type; and shorter ones for more at once."""
    found = optimize(recipe(kv_dtype="auto"), Toy(token=300), WORLD, Goal.CONTEXT)
    assert found.best.recipe.serving.context > 131072
    assert found.best.recipe.serving.kv_dtype == "fp8" and found.best.verdict.room >= RESERVE
    lengths = [choice.recipe.serving.context for choice in found.table]
    at_once = [int(choice.verdict.sequences) for choice in found.table]
    assert lengths == sorted(lengths, reverse=True) and at_once[0] == 1 and max(at_once) >= 8


def test_throughput_opens_more_sequences_and_keeps_the_context() -> None:
    """More streams give more tokens a second in all; what they may ask for stays."""
    found = optimize(recipe(sequences=4, batched_tokens=2048), Toy(), WORLD, Goal.THROUGHPUT)
    assert limits.sequences(found.best.recipe) == 64 and limits.batched_tokens(found.best.recipe) == 16384
    assert found.best.recipe.serving.context == RECIPE.serving.context
    assert found.best.together and found.best.together.load.concurrency > 4
    assert [limits.sequences(choice.recipe) for choice in found.table] == [64, 32, 16, 8, 4, 2, 1]


def test_latency_reads_prompts_in_large_pieces() -> None:
    """The toy's prefill likes them; sequences are left alone."""
    found = optimize(recipe(batched_tokens=2048), Toy(), WORLD, Goal.LATENCY)
    assert found.best.variant.keys == {"serving.batched_tokens": 16384}


def test_a_recipe_that_does_not_fit_gets_one_that_does() -> None:
    """A context that no setting reaches is shortened before anything is compared."""
    toy = Toy(weights=85.0, token=800)
    found = optimize(RECIPE, toy, WORLD, Goal.LATENCY)
    assert not found.before.verdict.fits and found.best.verdict.fits
    assert found.best.recipe.serving.context < RECIPE.serving.context


def test_a_gain_that_no_estimate_shows_changes_nothing() -> None:
    """A KV cache of less precision for half a percent would be a bad trade."""

    class Keen(Toy):
        def speed(self, recipe: Recipe, load: Load) -> Speed:
            found = super().speed(recipe, load)
            better = 1.005 if recipe.serving.kv_dtype == "fp8" else 1.0
            return replace(found, decode=Estimate(found.decode.value * better))

    found = optimize(recipe(batched_tokens=16384), Keen(), WORLD, Goal.LATENCY)
    assert found.best is found.before and found.table[0].recipe.serving.kv_dtype == "fp8"


def test_what_is_best_already_is_left_alone() -> None:
    """No change for change's sake: of equal settings the recipe's own."""
    best = optimize(recipe(sequences=4), Toy(), WORLD, Goal.THROUGHPUT).best
    again = optimize(best.recipe, Toy(), WORLD, Goal.THROUGHPUT)
    assert again.best is again.before and not again.best.variant.changes


def test_without_figures_of_speed_or_kv_nothing_is_claimed() -> None:
    """A pool of which nobody knows the tokens has no best context; unknown speeds have no order."""

    class Dumb(Toy):
        def verdict(self, *asked: object) -> Verdict:
            return replace(super().verdict(*asked), kv=None)  # type: ignore[arg-type]

        def speed(self, *_: object) -> None:  # type: ignore[override]
            return None

    for goal in Goal:
        found = optimize(RECIPE, Dumb(), WORLD, goal)
        assert found.best is found.before
