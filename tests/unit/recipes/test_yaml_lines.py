# ruff: noqa: E501 (whole messages, one a line)
"""Reading YAML: values as written, lines kept, and whatever is no plain YAML reported with its line."""

import pytest

from sparkwright.domain.errors import RecipeError
from sparkwright.recipes.yaml_lines import MAX_NODES, dotted, read_yaml
from unit.for_each import for_each
from unit.recipes.samples import errors


def read(text):
    return read_yaml(text, "f.yaml")


def failure(text):
    return errors(text, lambda t, s: read_yaml(t, s), "f.yaml")


@for_each(
    "written, value",
    [
        ("true", True), ("False", False), ("yes", "yes"), ("on", "on"), ("1:30", "1:30"), ("2026-11-21", "2026-11-21"),
        ("1_000", 1000), ("0x10", 16), ("-3", -3), ("2.5", 2.5), ("1e3", 1000.0), (".5", 0.5), ("~", None), ("", None),
        ("0.21.0", "0.21.0"), ("'5'", "5"), ("12.1a", "12.1a"), (".inf", ".inf"), (".nan", ".nan"),
    ],
)  # fmt: skip
def test_scalars_follow_yaml_1_2(written, value):
    """The words `on`, `yes` and `1:30` stay text: an engine's flag must get what the user wrote."""
    found = read(f"a: {written}").value["a"]
    assert found == value
    assert isinstance(found, bool) == isinstance(value, bool)


def test_numbers_remember_their_text():
    """`version: 0.20` must not become 0.2."""
    value = read("a: 0.20\nb: 1_000").value
    assert value["a"].text == "0.20"
    assert value["b"].text == "1_000"


def test_lines_of_keys_and_items():
    """Every key and item knows its line, and what is not written has its parent's."""
    document = read("a: 1\nb:\n  c:\n    - x\n    - y: 2\n")
    assert document.lines == {
        ("a",): 1,
        ("b",): 2,
        ("b", "c"): 3,
        ("b", "c", 0): 4,
        ("b", "c", 1): 5,
        ("b", "c", 1, "y"): 5,
    }
    assert document.line(("b", "c", 1, "missing")) == 5
    assert document.line(("nothing",)) == 1


def test_duplicate_keys_are_named_with_both_lines():
    """YAML keeps the last of two keys in silence; here both lines are reported and the first is kept."""
    document = read("a:\n  b: 1\n  c: 2\n  b: 3\n")
    assert [(p.line, p.text) for p in document.problems] == [(4, "key `a.b` is there twice: on line 2 and on line 4")]
    assert document.value == {"a": {"b": 1, "c": 2}}


def test_merge_keys_add_what_is_not_written():
    """`<<: *common` is how recipes share what repeats; written keys win."""
    document = read("x: &c {a: 1, b: 2}\ny: {<<: *c, b: 3}\nz: {<<: [*c, {d: 4}]}\n")
    assert document.value["y"] == {"a": 1, "b": 3}
    assert document.value["z"] == {"a": 1, "b": 2, "d": 4}


def test_merge_of_something_else_is_a_problem():
    """`<<: 3` merges nothing and is reported."""
    assert [p.text for p in read("a: {<<: 3}").problems] == ["`<<` takes an alias of a mapping, as in `<<: *common`"]


@for_each(
    "text, message",
    [
        ("a: [1, 2\nb: 3", "f.yaml:2:2: this is no YAML: expected ',' or ']', but got ':'; check the indentation, the colon and the quotes of this line and of the one before"),
        ("a: 1\n\tb: 2", "f.yaml:2:1: this is no YAML: found character '\\t' that cannot start any token; indent with spaces, not with tabs"),
        ("a: b: c", "f.yaml:1:5: this is no YAML: mapping values are not allowed here; put the value in quotes"),
        ("a: @x", "f.yaml:1:4: this is no YAML: found character '@' that cannot start any token; put the value in quotes"),
        ("a: *gone", "f.yaml:1:4: this is no YAML: found undefined alias 'gone'; put the value in quotes"),
        ("a: 1\nb: \x07", "f.yaml:2:4: character U+0007 is not allowed in YAML; remove it"),
        ("a: 1\n---\nb: 2", "f.yaml:2:1: this is no YAML: but found another document; check the indentation, the colon and the quotes of this line and of the one before"),
        ("a: &a [*a]", "f.yaml:1: an alias (`*name`) that contains itself"),
        ("[\n" * 20000, "f.yaml:1: nested too deeply to be read"),
        ("- " * 20000, "f.yaml:1: nested too deeply to be read"),
    ],
)  # fmt: skip
def test_text_that_is_no_yaml(text, message):
    """Bad YAML gives line, column and a hint, and nothing of the line itself (it may hold a key)."""
    assert failure(text) == [message]


@pytest.mark.full
def test_aliases_cannot_blow_up():
    """A few lines of nested aliases would fill the memory."""
    levels = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9))
    assert failure(f"a0: &a0 [1]\n{levels}")[0].endswith(
        f"more than {MAX_NODES} values once aliases (`*name`) are expanded"
    )


def test_size_limit():
    """A recipe is a few kilobytes; a gigabyte is a mistake."""
    assert failure("a" * 1_000_001) == ["f.yaml:1: the file has 1000001 characters; allowed are 1000000"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: !!python/object:os.system x", "tag `!!python/object:os.system` is not used here; write the plain value"),
        ("? [a, b]\n: 1", "a key must be one word, not a list or mapping"),
        ("a: " + "9" * 5000, f"`{'9' * 20}` is no number that can be used"),
        ("a: 1e999", "`1e999` is no number that can be used"),
    ],
)
def test_problems_that_do_not_stop_reading(text, problem):
    """They are reported together with everything else that is wrong."""
    assert [p.text for p in read(text).problems] == [problem]


def test_dotted():
    """Paths are shown as a user would write them."""
    assert dotted(("published", 0, "value")) == "published[0].value"


@pytest.mark.full
@for_each("end", ["x", ".x", "e", "_x", ".1.1", ""])
def test_a_long_number_is_read_at_once(end: str) -> None:
    """Guards 200,000 digits with something behind them, which once took longer than anybody waits."""
    text = f"a: {'1' * 200_000}{end}"
    try:
        assert read_yaml(text, "x.yaml").value
    except RecipeError as error:
        assert "x.yaml:1" in str(error)


@for_each("text", ["0.20", "1.", ".5", "-1.5e3", "1_000.5", "1e5", "+2.5E-3"])
def test_numbers_with_a_point_stay_numbers(text: str) -> None:
    """Guards the spellings that recipes use."""
    found = read_yaml(f"a: {text}", "x.yaml").value["a"]
    assert isinstance(found, float) and found.text == text


def test_deep_files_are_refused_before_they_cost_anything() -> None:
    """Guards memory: each value remembers its path."""
    with pytest.raises(RecipeError, match="nested deeper than 50 levels"):
        read_yaml("a: " + "[" * 60 + "]" * 60, "x.yaml")
