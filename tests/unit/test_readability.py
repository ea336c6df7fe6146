"""The three rules of grammar that `make lint` adds to ruff, and the record that only falls."""

import readability
from readability import CLASSES, DOCSTRINGS, FUNCTIONS

from unit.for_each import for_each

FIELD_WORDS = frozenset({"plan"})


def rules_broken(text: str, path: str = "src/sparkwright/app/one.py") -> list[tuple[str, str]]:
    found = readability.only_doubled(readability.places_in(path, text, FIELD_WORDS))
    return [(place.rule, place.where) for place in found]


@for_each(
    "docstring, bad",
    [
        ("Of one node its kernel log.", True),
        ("What a start takes.", True),
        ("whether it fits", True),
        ("With a key.", True),
        ("The kernel log of one node.", False),
        ("Returns the log.", False),
        ("None if there is none.", False),
        ("`in`: the column of arrivals.", False),
        ("IN: what the convolution reads.", False),
        ("Input of the gate.", False),
        ("", False),
    ],
)
def test_first_words(docstring: str, bad: bool) -> None:
    """A preposition, conjunction or question word is found, and no noun that begins like one."""
    assert readability.begins_badly(docstring) is bad


def test_each_place_is_found_with_its_line() -> None:
    """Docstrings of modules, classes, methods and nested functions count; functions only at the top of a module."""
    text = '"""What it is."""\nclass One:\n    """A."""\n    def go(self):\n        """As above."""\ndef run(): ...\n'
    path = "src/sparkwright/app/one.py"
    assert rules_broken(text) == [(DOCSTRINGS, f"{path}:1"), (DOCSTRINGS, f"{path}:5"), (FUNCTIONS, f"{path}:6")]


def test_names_of_functions() -> None:
    """Six letters, a field word or an underscore in front; underscores are no letters."""
    text = "\n".join(f"def {name}(): ..." for name in ("plan", "_go", "a_b_c_d", "planned", "main"))
    assert [where for _, where in rules_broken(text, "scripts/a.py")] == ["scripts/a.py:3", "scripts/a.py:5"]


def test_a_class_name_is_taken_once() -> None:
    """The second definition of a public name is found in whatever file it is; private ones may repeat."""
    text = "class Source: ...\nclass _Mine: ...\nclass Other: ...\n"
    places = list(readability.places_in("src/a.py", text, FIELD_WORDS))
    places += readability.places_in("tests/b.py", "class Source: ...\nclass _Mine: ...\n", FIELD_WORDS)
    assert [(p.rule, p.where) for p in readability.only_doubled(places)] == [
        (CLASSES, "src/a.py:1"),
        (CLASSES, "tests/b.py:1"),
    ]


def test_more_than_recorded_fails_and_the_record_only_falls() -> None:
    """A new place fails with its line; --record lowers numbers, drops zeros and never raises one."""
    text = '"""What it is."""\ndef go(): ...\n'
    places = readability.only_doubled(readability.places_in("tests/unit/a.py", text, FIELD_WORDS))
    record = {DOCSTRINGS: {"tests/unit/a.py": 1, "scripts/b.py": 4}, FUNCTIONS: {}, CLASSES: {}}
    (message,) = readability.excess(places, record)
    assert "tests/unit/a.py:2: def go" in message and "recorded 0" in message
    assert readability.excess(places, {**record, FUNCTIONS: {"tests/unit/a.py": 1}}) == []
    lowered = readability.lowered(
        {**record, DOCSTRINGS: {"tests/unit/a.py": 3, "scripts/b.py": 4}}, readability.counts(places)
    )
    assert lowered == {DOCSTRINGS: {"tests/unit/a.py": 1}, CLASSES: {}, FUNCTIONS: {}}


def test_the_text_keeps_its_head() -> None:
    """Writing the numbers back leaves comment and field words as they were."""
    old = '# Why.\nfield_words = ["plan"]\n\n[docstrings]\n"scripts" = 4\n'
    rules = {DOCSTRINGS: {"scripts": 2}, CLASSES: {"Source": 2}, FUNCTIONS: {}}
    new = readability.record_text(old, rules)
    assert (
        new
        == '# Why.\nfield_words = ["plan"]\n\n[docstrings]\n"scripts" = 2\n\n[classes]\n"Source" = 2\n\n[functions]\n'
    )
