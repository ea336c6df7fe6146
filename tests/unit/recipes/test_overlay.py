"""Profiles lie over the base."""

from sparkwright.recipes.problems import drop_unset, overlay


def test_mappings_merge_deep_lists_replace():
    """The rule that the reference states."""
    base = {"a": {"b": 1, "c": [1, 2]}, "d": 1}
    assert overlay(base, {"a": {"c": [3]}, "e": 2}) == {"a": {"b": 1, "c": [3]}, "d": 1, "e": 2}
    assert base == {"a": {"b": 1, "c": [1, 2]}, "d": 1}


def test_null_removes():
    """A profile takes away what the base reports."""
    assert drop_unset(overlay({"speculation": {"method": "mtp"}, "a": 1}, {"speculation": None})) == {"a": 1}


def test_x_keys_are_free_at_every_level():
    """Keys beginning x- are for the user."""
    assert drop_unset({"x-a": 1, "env": {"x-b": 2, "A": "1"}, "published": [{"x-c": 1, "what": "w"}]}) == {
        "env": {"A": "1"}, "published": [{"what": "w"}],
    }  # fmt: skip


def test_what_is_inside_a_flag_is_the_engines():
    """A null or an x- key inside a JSON flag goes to the engine as it is."""
    tree = {"flags": {"f": {"x-h": 1, "n": None}, "gone": None}, "speculation": {"options": {"o": {"n": None}}}}
    assert drop_unset(tree) == {"flags": {"f": {"x-h": 1, "n": None}}, "speculation": {"options": {"o": {"n": None}}}}
