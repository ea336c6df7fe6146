"""The supervisor's easy questions after a start: soup is a trouble, is no reference, and never a restart."""

from dataclasses import replace

import pytest

from fakes.endpoint import ANSWER
from sparkwright.domain.errors import NotReady
from sparkwright.evals.coherence import questions
from sparkwright.supervisor import coherence, endpoint
from sparkwright.supervisor.core.events import Cleared, Fault
from sparkwright.supervisor.core.state import Recovery
from unit.supervisor.watchtower import Tower, make_tower

SOUP = replace(ANSWER, text="rowspan kernel glob enumerable yacht pivot lantern cobalt tensor mango vortex quilt")
GOOD = [replace(ANSWER, text=text) for text in ("Paris", "5", "Thursday")]


def watched() -> Tower:
    it = make_tower()
    it.bus.begin()
    return it


async def test_soup_is_a_trouble_and_no_reference() -> None:
    """Once, without a restart; canaries record nothing, and it is over when the answers are language."""
    it = watched()
    it.scene.endpoint.given = [SOUP]
    await coherence.ask_once(it.bus)
    (fault,) = it.events
    assert isinstance(fault, Fault) and (fault.kind, fault.recovery) == ("garbled", Recovery.NONE)
    assert "its answers are garbled: words without a sentence" in fault.what
    assert not endpoint._records(it.bus) and it.bus.detectors.garbage.born
    assert it.bus.detectors.garbage.answer(SOUP.text, 1.0) is None
    it.scene.endpoint.given = list(GOOD)
    await coherence.ask_once(it.bus)
    (over,) = it.events
    assert isinstance(over, Cleared) and endpoint._records(it.bus) and not it.bus.detectors.garbage.born


async def test_language_is_the_reference() -> None:
    """Nothing is recorded before that is known; the tokens count as the supervisor's own."""
    it = watched()
    assert not endpoint._records(it.bus)
    it.scene.endpoint.given = list(GOOD)
    await coherence.ask_once(it.bus)
    assert endpoint._records(it.bus) and it.events == []
    assert it.bus.detectors.canaries.own == len(questions()) * ANSWER.completion_tokens


async def test_no_answer_is_not_held_against_it() -> None:
    """An engine that does not answer is the canary's matter; made-up answers of a simulator are nobody's."""
    for given in (NotReady("busy", ""), replace(SOUP, simulated=True)):
        it = watched()
        it.scene.endpoint.given = [given]
        await coherence.ask_once(it.bus)
        assert it.events == [] and it.bus.speaks


@pytest.mark.parametrize("off", ["key", "simulated", ""])
def test_who_is_judged(off: str) -> None:
    """A chat model, unless it is simulated or the recipe's key says no."""
    it = make_tower()
    recipe = it.context.desired.recipe
    recipe = replace(recipe, model=replace(recipe.model, simulated=off == "simulated"))
    if off == "key":
        recipe = replace(recipe, serving=replace(recipe.serving, coherence=False))
    it.context.desired = replace(it.context.desired, recipe=recipe)
    assert coherence.is_judged(it.context) is (off == "")
