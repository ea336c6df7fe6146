# ruff: noqa: E501 (whole messages, one a line)
"""Profiles: chosen by name, checked all, wrong ones reported with those that exist."""

import pytest

from sparkwright.domain.errors import RecipeError
from sparkwright.recipes.load import load_recipe
from unit.for_each import for_each
from unit.recipes.samples import GOOD, errors, recipe_errors

TWO = GOOD + (
    "serving: {context: 4096, sequences: 2}\nspeculation: {method: mtp, tokens: 2}\nflags: {a: 1, b: {c: 1}}\n"
    "profiles:\n  long:\n    serving: {context: 8192}\n    speculation: null\n    flags: {a: null, b: {d: 2}}\n"
    "  wide: {serving: {sequences: 8}}\n"
)


def test_the_base():
    """The base is served without a name and without a default."""
    recipe = load_recipe(TWO, "r.yaml")
    assert (recipe.profile, recipe.profiles) == ("", ("long", "wide"))
    assert (recipe.serving.context, recipe.speculation.method) == (4096, "mtp")


def test_a_profile_lies_over_the_base():
    """Deep merge; null removes; what it does not report stays."""
    recipe = load_recipe(TWO, "r.yaml", "long")
    assert (recipe.profile, recipe.serving.context, recipe.serving.sequences) == ("long", 8192, 2)
    assert recipe.speculation.method == ""
    assert recipe.flags == {"b": {"c": 1, "d": 2}}


def test_the_default_profile():
    """A recipe may report which one is meant when none is asked for."""
    assert load_recipe(TWO + "default_profile: wide\n", "r.yaml").profile == "wide"
    assert load_recipe(TWO + "default_profile: wide\n", "r.yaml", "long").profile == "long"


def test_a_wrong_profile_lists_the_existing():
    """The message lists the existing profiles."""
    with pytest.raises(RecipeError) as caught:
        load_recipe(TWO, "r.yaml", "huge")
    assert caught.value.message == "r.yaml:10: profile 'huge' does not exist; profiles of this recipe: long, wide"
    with pytest.raises(RecipeError, match="profile 'huge' does not exist; this recipe has no profiles"):
        load_recipe(GOOD, "r.yaml", "huge")


@for_each(
    "more, message",
    [
        ("profiles: {p: {serving: {ctx: 1}}}", "r.yaml:7: unknown key `serving.ctx`; did you mean `serving.context`? (profile p)"),
        ("profiles: [a]", "r.yaml:7: `profiles`: found a list of 1; expected a mapping of profiles by name"),
        ("profiles: {p: 3}", "r.yaml:7: `profiles.p`: found 3; expected a mapping of the keys that differ from the base"),
        ("profiles: {p: {name: x}}", "r.yaml:7: `profiles.p.name` is outside the profiles; a profile cannot change it"),
        ("profiles: {a b: {}}", "r.yaml:7: `profiles`: name of a profile: found 'a b'; allowed: letters, digits, `.`, `_` and `-`, as in 256k"),
        ("default_profile: p", "r.yaml:7: `default_profile`: found 'p'; this recipe has no profiles"),
        ("default_profile: [p]", "r.yaml:7: `default_profile`: found a list of 1; this recipe has no profiles"),
    ],
)  # fmt: skip
def test_wrong_profiles(more, message):
    """Profiles that are not asked for are checked too."""
    assert recipe_errors(more) == [message]


def test_an_error_of_the_base_is_reported_once():
    """Not once for each profile."""
    assert len(errors(TWO.replace("context: 4096, ", "port: 1, "))) == 1


def test_what_a_profile_fixes_is_no_error():
    """The bare base is never served with a default profile, so it need not be complete."""
    text = "title: t\nmodel: {id: a/b}\ndefault_profile: p\nprofiles:\n  p: {engine: {name: vllm, version: 1.0, runtime: process}}\n"
    assert load_recipe(text, "r.yaml").engine.version == "1.0"
    assert errors(text.replace("default_profile: p\n", ""))[0].startswith("r.yaml:1: `engine` is missing")


def test_the_line_is_where_the_value_is_written():
    """The line is the profile's if it has the value, else the base's."""
    text = (
        GOOD
        + "nodes: 2\nparallelism: {tp: 2}\nprofiles:\n  solo:\n    nodes: 1\n  four:\n    nodes: 4\n    parallelism: {tp: 2}\n"
    )
    assert [line.split(" `")[0] for line in errors(text)] == ["r.yaml:8:", "r.yaml:14:"]
    assert errors(text)[0].endswith("(profile solo)")
