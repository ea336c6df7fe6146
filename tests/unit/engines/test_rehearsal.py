"""A recipe's commands are checked without any node."""

from dataclasses import replace

from sparkwright.engines.catalog import rehearse
from unit.engines.samples import one_node_recipe, shipped
from unit.for_each import for_each


def test_a_good_recipe_has_nothing_against_it() -> None:
    """The shipped two-node recipe: its version has no data of its own, and that is all there is to report."""
    assert [f.code for f in rehearse(shipped("deepseek-v4-flash"))] == ["ENG005"]


@for_each("version", ["0.33.0+cu130.gabc", "nightly", "main", "0.34.0", "1.0.0rc1", "v0.40.0", "", "0.33.0 (custom)"])
def test_a_version_that_nobody_read_goes_on_and_is_told_once(version: str) -> None:
    """An own build, a moving name, the future and no version: one finding says what is not known, and nothing stops."""
    recipe = one_node_recipe()
    found = rehearse(replace(recipe, flags={}, engine=replace(recipe.engine, version=version)))
    assert [one.code for one in found] == ["ENG005"], found
    assert not found[0].severity.stops and "0.33.0" in found[0].title + found[0].evidence


def test_keys_are_checked_as_the_flags_that_they_become() -> None:
    """`serving.kv_dtype` is `--kv-cache-dtype`: a wrong value is found although the recipe names no flag."""
    recipe = shipped("deepseek-v4-flash")
    wrong = replace(recipe, serving=replace(recipe.serving, kv_dtype="fp9"))
    (finding,) = [f for f in rehearse(wrong) if f.code == "ENG002"]
    assert finding.subject == "--kv-cache-dtype"


def test_flags_and_variables_of_the_recipe_are_checked() -> None:
    """Another engine's word in `flags` and a typo in `env` are both named."""
    recipe = one_node_recipe()
    wrong = replace(recipe, flags={"mem-fraction-static": 0.8}, env={"VLLM_CACHE_ROT": "/x"})
    assert {"ENG001", "ENG008"} == {f.code for f in rehearse(wrong)}


def test_a_recipe_that_cannot_be_split_is_still_reviewed() -> None:
    """Ranks and nodes that do not match leave nothing to render, and report it."""
    recipe = replace(shipped("deepseek-v4-flash"), nodes=3)
    assert "ENG014" in {f.code for f in rehearse(recipe)}
