"""`recipes list --nodes 1 --for code`: sizes, expected speeds, and what is said where something is not known."""

from sparkwright.cli.recipe_choice import choice_row, choice_text, weights
from sparkwright.recipes.catalogue import Purpose
from unit.recipes.test_shipped import shipped


def recipe_row(name: str, purpose: Purpose | None = None) -> dict[str, object]:
    recipe = shipped(name)
    about = {"name": name, "nodes": recipe.nodes, "state": recipe.state.value, "older": "", "title": recipe.title}
    return about | choice_row(recipe, purpose)


def test_a_row_has_size_and_expected_speed_with_its_range() -> None:
    """Decode for a model that generates, prefill for one that only reads."""
    chat, embed = recipe_row("qwen3.8-27b"), recipe_row("qwen3-vl-embedding-8b", Purpose.EMBED)
    assert (chat["size"], chat["speed_of"], embed["speed_of"]) == (23_400_000_000, "decode", "prefill")
    for one in (chat, embed):
        found = one["speed"]
        assert isinstance(found, dict)
        assert 0 < found["low"] < found["value"] < found["high"]


def test_a_size_that_nobody_publishes_follows_from_the_dimensions() -> None:
    """8 billion numbers of two bytes."""
    size = weights(shipped("qwen3-vl-embedding-8b"))
    assert size is not None
    assert 15e9 < size < 19e9


def test_what_is_not_known_is_shown_as_not_known() -> None:
    """The tiny recipe serves whatever model is there."""
    text = choice_text([recipe_row("tiny-llama-cpp")])
    assert text.count("not known") == 2
    assert "sparkwright plan tiny-llama-cpp" in text


def test_nothing_that_suits_is_a_sentence() -> None:
    """The sentence also names the place to look for more."""
    assert "recipes source add" in choice_text([])
