"""The plans that `make bench` times: whole plans of shipped recipes, which ask nobody."""

import pytest
from bench_plans import BUSY, CLUSTER, IDLE, SERVICES, _facts, _request, fitting, shipped

from sparkwright.app.plan.gate import judge_of, surroundings
from sparkwright.app.services import ClusterState
from sparkwright.domain.ledger import Lack
from sparkwright.planner.knobs import list_knobs
from sparkwright.planner.remedies import changed


@pytest.mark.full
def test_the_plans_that_are_timed_can_be_made() -> None:
    """Guards that `make bench` times whole plans of many recipes."""
    recipes = shipped()
    assert len(recipes) > 20
    first = next(one for one in recipes if fitting(one, IDLE))
    assert isinstance(fitting(first, BUSY), bool)


@pytest.mark.full
def test_no_knob_of_a_shipped_recipe_changes_a_lack_that_it_keeps() -> None:
    """Guards what a search does not ask, for every engine that claims a share of the memory."""
    state, engines = ClusterState(_facts(BUSY)), set[str]()
    for recipe in shipped():
        judge = judge_of(_request(recipe), state, CLUSTER.nodes[: recipe.nodes])
        lack = judge.verdict(recipe).lack
        for knob in list_knobs(recipe, surroundings(SERVICES, _request(recipe), state, judge)):
            if lack not in knob.keeps:
                continue
            engines.add(recipe.engine.name)
            for step in (knob.steps[0], knob.steps[-1]):
                assert judge.verdict(changed(recipe, step.variant)).lack is Lack.CLAIM, (recipe.name, step)
    assert "vllm" in engines
