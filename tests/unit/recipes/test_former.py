"""Files, records and variables that use the names of earlier versions still load."""

import pytest

from sparkwright.domain.codec import from_json, to_json
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.recipe import Recipe
from sparkwright.recipes.load import load_recipe
from sparkwright.simulator.settings import settings_from

BASE = """\
name: tiny
title: A tiny model
license: none
model: {id: a/b, size: 1GiB}
engine: {name: vllm, version: 0.21.0, image: a/b:v0.21.0}
nodes: 1
parallelism: {tp: 1}
serving: {context: 4096, sequences: 2, batched_tokens: 2048, memory_fraction: 0.5, NAME: {port: 9443}}
profiles:
  other:
    serving: {NAME: {port: 9553}}
"""


@pytest.mark.parametrize("name", ["door", "gateway"])
def test_the_gateway_is_read_by_both_names(name: str) -> None:
    """`serving.door` is the former name of `serving.gateway`, in the recipe and in its profiles."""
    text = BASE.replace("NAME", name)
    assert load_recipe(text, "r.yaml").serving.gateway.port == 9443
    assert load_recipe(text, "r.yaml", "other").serving.gateway.port == 9553


def test_a_mistake_under_the_former_name_is_shown_at_its_line() -> None:
    """Lines of a renamed key are those of the file."""
    with pytest.raises(RecipeError, match=r"r\.yaml:11: .*serving\.gateway\.port"):
        load_recipe(BASE.replace("NAME: {port: 9553}", "door: {port: many}").replace("NAME", "gateway"), "r.yaml")


def test_both_names_at_once_are_a_mistake() -> None:
    """Nothing is chosen between two values."""
    text = BASE.replace("NAME: {port: 9443}", "door: {port: 1}, gateway: {port: 9443}").replace("NAME", "gateway")
    with pytest.raises(RecipeError, match=r"r\.yaml:8: `serving\.door` is the former name of `serving\.gateway`"):
        load_recipe(text, "r.yaml")


def test_a_record_of_an_earlier_version_loads() -> None:
    """Deployments that were started before the key was renamed keep their gateway."""
    recipe = load_recipe(BASE.replace("NAME", "gateway"), "r.yaml")
    former = to_json(recipe).replace('"gateway":', '"door":')
    assert former != to_json(recipe)
    assert from_json(Recipe, former) == recipe


SIMULATED = """\
name: tiny
title: A tiny model
license: none
model: {id: a/b, simulated: true}
engine: {name: NAME, version: 0.21.0, runtime: process}
nodes: 1
parallelism: {tp: 1}
serving: {context: 4096, sequences: 2, batched_tokens: 2048, memory_fraction: 0.5}
"""


def test_the_engine_twin_is_the_simulator() -> None:
    """Recipes and records with the engine's former name are those of the simulator, with the same hash."""
    former, today = (load_recipe(SIMULATED.replace("NAME", name), "r.yaml") for name in ("twin", "simulator"))
    assert former == today and today.engine.name == "simulator"
    assert from_json(Recipe, to_json(today).replace('"simulator"', '"twin"')) == today


def test_variables_of_the_simulator_keep_their_former_names() -> None:
    """Today's name counts if both are set."""
    assert settings_from({"SPARKWRIGHT_TWIN_DEAD_S": "3"}).dead_s == 3
    assert settings_from({"SPARKWRIGHT_TWIN_DEAD_S": "3", "SPARKWRIGHT_SIMULATOR_DEAD_S": "4"}).dead_s == 4
