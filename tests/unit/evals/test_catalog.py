"""The probes' texts and their choice."""

import pytest

from sparkwright.domain.errors import UsageError
from sparkwright.evals.catalog import PROBES, chosen, entries, parse

ENTRY = '[a]\nchecks = "c"\nmeans = "m"\nhint = "h"\n'


def test_every_probe_has_its_texts() -> None:
    """The entries are in the order of the table; names, functions and texts are complete."""
    assert [entry.name for entry in entries()] == list(PROBES)


@pytest.mark.parametrize(
    ("source", "problem"),
    (
        (ENTRY + 'hnt = "x"\n', r"\[a\]: unknown key hnt"),
        ('[a]\nchecks = "c"\nmeans = "m"\n', r"\[a\]: hint is missing"),
        (ENTRY + 'needs = ["b"]\n', r"\[a\]: needs b, which is not before it"),
    ),
)
def test_the_schema_is_strict(source: str, problem: str) -> None:
    """A mistake in probes.toml is named with its entry."""
    with pytest.raises(ValueError, match=problem):
        parse(source)


def test_what_a_probe_needs_comes_with_it() -> None:
    """A probe brings what it needs, and what that needs in turn."""
    assert [entry.name for entry in chosen(("tool-stream",))] == ["follows", "tool-call", "tool-stream"]
    assert {entry.name for entry in chosen((), quick=True)} == {"follows", "tool-call", "thinking", "length"}


def test_an_unknown_probe() -> None:
    """The nearest name is suggested."""
    with pytest.raises(UsageError, match="tool-cal") as raised:
        chosen(("tool-cal",))
    assert "tool-call" in raised.value.hint
