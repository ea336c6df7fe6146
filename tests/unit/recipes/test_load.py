"""A recipe file with mistakes."""

from sparkwright.domain.recipe import Stated
from sparkwright.recipes.load import load_recipe, what_is_left


def test_what_is_left_of_a_file_with_mistakes_can_be_checked_further() -> None:
    """Guards `validate` from showing one class of errors a time: options of the engine are behind a wrong key."""
    text = "name: t\ntitle: t\nmodel: {id: a/b, odd: 1}\nengine: {name: vllm, version: 0.21.0, runtime: process}\n"
    (left,) = what_is_left(f"{text}flags: {{no-such: 1}}\n", "t.yaml")
    assert dict(left.flags) == {"no-such": 1}


def test_what_an_author_states_of_a_model_is_loaded_and_is_no_part_of_the_hash() -> None:
    """Guards the planner's access to statements of an imported recipe, and their being no reason for a new start."""
    text = "name: t\ntitle: t\nmodel: {id: a/b}\nengine: {name: vllm, version: 0.21.0, image: x/y:v0.21.0}\n"
    stated = "{id: a/b, stated: {parameters: 295000000000, dtype: nvfp4, memory: 181GB, layers: 80, by: a file}}"
    bare, more = load_recipe(text, "t.yaml"), load_recipe(text.replace("{id: a/b}", stated), "t.yaml")
    assert bare.model.stated is None and bare.hash == more.hash
    assert more.model.stated == Stated(295_000_000_000, dtype="nvfp4", memory=181 * 10**9, layers=80, by="a file")
