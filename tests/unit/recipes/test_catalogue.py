"""`recipes list`: purposes, order, and what stands last."""

from dataclasses import replace

import pytest

from sparkwright.domain.recipe import ModelKind
from sparkwright.recipes.catalogue import Purpose, list_place, older_recipes, suits_purpose
from unit.recipes.test_shipped import NAMES, shipped


def test_what_stands_last_is_shipped() -> None:
    """A name that no recipe has would keep its place in the file for ever."""
    assert set(older_recipes()) <= set(NAMES)
    assert all(len(reason) > 20 for reason in older_recipes().values())


@pytest.mark.parametrize(
    ("name", "purposes"),
    [
        ("qwen3.8-27b", {Purpose.CHAT, Purpose.CODE}),
        ("qwen3-vl-embedding-8b", {Purpose.EMBED}),
        ("qwen3-vl-reranker-8b", {Purpose.RERANK}),
        ("simulator", set()),
    ],
)
def test_a_recipe_suits_what_its_model_answers(name: str, purposes: set[Purpose]) -> None:
    """Nobody is offered an embedding model for code, and nobody a simulator for anything."""
    assert {purpose for purpose in Purpose if suits_purpose(shipped(name), purpose)} == purposes


def test_code_needs_tools_and_room() -> None:
    """An agent without parsed tool calls, or with 8K of context, is none."""
    recipe = shipped("qwen3.8-27b")
    small = replace(recipe, serving=replace(recipe.serving, context=8192))
    mute = replace(recipe, parsers=replace(recipe.parsers, tool=""))
    assert not suits_purpose(small, Purpose.CODE)
    assert not suits_purpose(mute, Purpose.CODE)
    assert suits_purpose(small, Purpose.CHAT)
    assert suits_purpose(replace(recipe, model=replace(recipe.model, kind=ModelKind.TRANSCRIPTION)), Purpose.TRANSCRIBE)


def test_ready_comes_first_and_older_last() -> None:
    """One's own recipe of an old name is not old."""
    assert list_place(shipped("qwen3.6-35b-a3b"), True) < list_place(shipped("qwen3.8-27b"), True)
    assert list_place(shipped("qwen3.8-27b"), True) < list_place(shipped("gpt-oss-120b"), True)
    assert list_place(shipped("gpt-oss-120b"), False) < list_place(shipped("qwen3.8-27b"), True)
    assert list_place(shipped("gpt-oss-120b"), True) < list_place(shipped("simulator"), True)
