"""Searching variants: few questions, each asked once, and the right one found."""

from math import log2

from hypothesis import given
from hypothesis import strategies as st

from sparkwright.domain.ledger import Lack
from sparkwright.domain.verdict import Variant, Verdict
from sparkwright.planner.knobs import setting
from sparkwright.planner.remedies import SPARE, Tries, first_good
from unit.planner.toy import RECIPE, Toy


@given(st.integers(0, 600), st.integers(0, 700))
def test_the_first_good_one_is_found_with_few_questions(count: int, start: int) -> None:
    """The search finds `start`, from which on everything is good, in about log2 questions."""
    asked: list[int] = []

    def good(index: int) -> bool:
        asked.append(index)
        return index >= start

    assert first_good(count, good) == (start if start < count else None)
    assert len(asked) <= (log2(count) + 2 if count else 0)


def test_a_variant_is_judged_once() -> None:
    """The order in which its keys were changed does not matter; another value is another variant."""
    toy = Toy()
    ask = Tries(RECIPE, toy, 9)
    one = setting(context=4096) + setting(sequences=4)
    assert ask(one) == ask(setting(sequences=4) + setting(context=4096))
    assert (toy.asked, ask.asked) == (1, 1)
    ask(setting(context=8192))
    assert toy.asked == 2


def test_a_spent_budget_finds_nothing_new() -> None:
    """The judge is not asked beyond it, and what it has reported still holds."""
    toy = Toy()
    ask = Tries(RECIPE, toy, 1)
    assert ask(Variant()).fits
    assert not ask(setting(context=4096)).fits
    assert ask(Variant()).fits and toy.asked == 1


def test_what_is_proposed_needs_more_than_luck() -> None:
    """The gate lets pass what has been seen to start; a changed recipe has to leave something free."""

    class Lucky(Toy):
        def verdict(self, *_: object) -> Verdict:
            return Verdict(True, room=0)

    ask = Tries(RECIPE, Lucky(), 9)
    assert ask(Variant()).fits
    assert ask(setting(context=4096)) == Verdict(False, Lack.NODE, SPARE)
