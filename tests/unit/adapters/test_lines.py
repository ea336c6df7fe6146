"""Lines of a stream, between the marks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.adapters.node_host import LONGEST, LineSplitter
from unit.for_each import for_each


def split_lines(*chunks: bytes) -> list[str]:
    cutter = LineSplitter("MARK")
    return [line for chunk in chunks for line in cutter.feed(chunk)]


@for_each(
    "output, wanted",
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
    assert split_lines(b"MARK\n" + output + b"MARK 0\n") == wanted


@given(st.binary(max_size=60), st.integers(0, 80))
def test_cuts_change_nothing(output: bytes, at: int) -> None:
    """The same lines come whether the bytes arrive at once or in two pieces."""
    stream = b"noise\nMARK\n" + output + b"MARK 0\n"
    assert split_lines(stream) == split_lines(stream[:at], stream[at:])


def test_what_came_before_is_kept_apart() -> None:
    """ssh's or a login shell's words before the opening mark are for the error message."""
    cutter = LineSplitter("MARK")
    assert list(cutter.feed(b"ssh: no route\nMARK\nline\n")) == ["line"]
    assert (cutter.before, cutter.begun, cutter.ended) == ("ssh: no route\n", True, False)


@given(st.binary(max_size=40), st.integers(LONGEST - 40, 2 * LONGEST), st.integers(0, 2 * LONGEST + 90))
def test_a_line_without_end_comes_in_pieces(output: bytes, more: int, at: int) -> None:
    """Guards memory: the same pieces, none of them long, wherever the stream is cut, and the mark is found in any."""
    stream = b"MARK\n" + b"x" * more + output + b"MARK 0\n"
    told = split_lines(stream)
    assert told == split_lines(stream[:at], stream[at:])
    assert max(map(len, told)) <= LONGEST + len("MARK")
    assert sum(map(len, told)) >= more


def test_what_has_come_is_not_searched_again() -> None:
    """Guards the supervisor's loop: 4 MB without a line feed in reads of 64 bytes would otherwise search 130 GB."""
    cutter = LineSplitter("MARK")
    list(cutter.feed(b"MARK\n"))
    told = [line for _ in range(65536) for line in cutter.feed(b"x" * 64)]
    assert [len(line) for line in told] == [LONGEST] * 63


@pytest.mark.full
def test_noise_before_the_mark_is_bounded() -> None:
    """Guards against a login shell that never stops to talk."""
    cutter = LineSplitter("MARK")
    for _ in range(40):
        assert not list(cutter.feed(b"noise\n" * 1000))
    assert len(cutter.before) == LONGEST
