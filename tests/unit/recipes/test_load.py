"""A recipe file with mistakes."""

from sparkwright.recipes.load import what_is_left


def test_what_is_left_of_a_file_with_mistakes_can_be_checked_further() -> None:
    """Guards `validate` from showing one class of errors a time: options of the engine are behind a wrong key."""
    text = "name: t\ntitle: t\nmodel: {id: a/b, odd: 1}\nengine: {name: vllm, version: 0.21.0, runtime: process}\n"
    (left,) = what_is_left(f"{text}flags: {{no-such: 1}}\n", "t.yaml")
    assert dict(left.flags) == {"no-such": 1}
