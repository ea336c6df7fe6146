"""Lines of a stream, between the marks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.adapters.lines import Lines


def lines(*chunks: bytes) -> list[str]:
    cutter = Lines("MARK")
    return [line for chunk in chunks for line in cutter.feed(chunk)]


@pytest.mark.parametrize(
    ("output", "wanted"),
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\r\nb", ["a", "b"]),
        (b"a\n\nb\n", ["a", "", "b"]),
        (b"\r 10%\r 20%\n", [" 10%", " 20%"]),
        (b"no end", ["no end"]),
        (b"", []),
    ],
)
def test_lines_between_marks(output: bytes, wanted: list[str]) -> None:
    """Line ends of any kind, a last line without one, and no mark among the lines."""
    assert lines(b"MARK\n" + output + b"MARK 0\n") == wanted


@given(st.binary(max_size=60), st.integers(0, 80))
def test_cuts_change_nothing(output: bytes, at: int) -> None:
    """The same lines come whether the bytes arrive at once or in two pieces."""
    stream = b"noise\nMARK\n" + output + b"MARK 0\n"
    assert lines(stream) == lines(stream[:at], stream[at:])


def test_what_came_before_is_kept_apart() -> None:
    """ssh's or a login shell's words before the opening mark are for the error message."""
    cutter = Lines("MARK")
    assert list(cutter.feed(b"ssh: no route\nMARK\nline\n")) == ["line"]
    assert (cutter.before, cutter.begun, cutter.ended) == ("ssh: no route\n", True, False)
