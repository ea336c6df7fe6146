"""Files and records that use the names of earlier versions still load."""

import pytest

from sparkwright.domain.codec import from_json, to_json
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.recipe import Recipe
from sparkwright.recipes.load import load_recipe

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
