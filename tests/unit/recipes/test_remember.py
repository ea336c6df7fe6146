"""serving.remember: allowed values, and a recipe that says nothing of it."""

import pytest

from sparkwright.domain.errors import RecipeError
from sparkwright.domain.units import MIB
from sparkwright.recipes.load import load_recipe

TEXT = """
name: tiny
title: tiny
model: {id: a/b, served_name: tiny}
engine: {name: vllm, version: 0.26.0, image: "vllm/vllm-openai:v0.26.0"}
nodes: 1
serving: {context: 8192, KEY}
"""


@pytest.mark.parametrize(
    "key", ["remember: 10 KiB", "remember: 100 GiB", "remember: true", "remember_hours: 0", "remember_hours: 9000"]
)
def test_bad_values_are_named(key: str) -> None:
    """Guards sizes that hold no context, and texts of clients that stay for ever."""
    with pytest.raises(RecipeError, match=rf"tiny.yaml:7: .*{key.split(':')[0]}"):
        load_recipe(TEXT.replace("KEY", key), "tiny.yaml")


def test_it_changes_no_rank() -> None:
    """Guards an engine that would be started again for a key of the gateway."""
    plain, keeps = (load_recipe(TEXT.replace("KEY", key), "t.yaml") for key in ("queue: 0", "remember: 64 MiB"))
    assert (plain.serving.remember, keeps.serving.remember) == (0, 64 * MIB)
    assert plain.hash == keeps.hash


def test_a_limit_of_answers_needs_a_context() -> None:
    """Guards a limit that the engine would refuse, or that would never be set."""
    assert load_recipe(TEXT.replace("KEY", "gateway: {answer_tokens: 4000}"), "t.yaml").serving.gateway.answer_tokens
    with pytest.raises(RecipeError, match=r"answer_tokens.: found 8192; less than .serving.context., which is 8192"):
        load_recipe(TEXT.replace("KEY", "gateway: {answer_tokens: 8192}"), "t.yaml")
