"""One pass over a log: signs, marks and rows, however the bytes are cut."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkwright.causes.cause import book_of
from sparkwright.logscan.matcher import Scan
from sparkwright.logscan.sign import ANYWHERE, CERTAIN, LIKELY, Sign, TableRows


def line_sign(pattern: str, *, times: int = 1, unless: str = "") -> Sign:
    return Sign((pattern,), CERTAIN, times=times, unless=unless)


def near_sign(*patterns: str, within: int = 4, unless: str = "") -> Sign:
    return Sign(patterns, LIKELY, within, unless=unless)


def anywhere(*patterns: str) -> Sign:
    return near_sign(*patterns, within=ANYWHERE)


def make_rule(*signs: Sign, key: str = "key") -> Any:
    return SimpleNamespace(code="LTST001", signatures=signs)


STORY: Any = SimpleNamespace(
    MARKS={"opens": "rendezvous opens", "table": "# columns"}, ROWS={"row": TableRows("table", rb"^ *\d+ +\d+$")}
)


def scan_text(text: str | bytes, *signs: Sign) -> Scan:
    found = Scan(book_of((make_rule(*signs),), (STORY,)), "a.log", 2026)
    found.feed(text if isinstance(text, bytes) else text.encode())
    found.close()
    return found


def numbers(found: Scan) -> list[list[int]]:
    return [[proof.number for proof in hit.proof] for hit in found.hits.values()]


def test_a_line_is_found_with_its_number_in_any_case() -> None:
    """Guards the proof that the user is shown."""
    found = scan_text("one\ntwo\nERROR: Something BROKE here\n", line_sign("something broke"))
    (hit,) = found.hits.values()
    assert [(p.source, p.number, p.text) for p in hit.proof] == [("a.log", 3, "ERROR: Something BROKE here")]


def test_the_last_line_needs_no_end() -> None:
    """Guards logs that were cut off, or that are still written."""
    assert numbers(scan_text("one\nsomething broke", line_sign("something broke"))) == [[2]]


def test_patterns_near_one_another_count_together() -> None:
    """Guards the window: near is near, in any order, and anywhere is anywhere."""
    text = "alpha one\n\n\nbeta two\n"
    assert numbers(scan_text(text, near_sign("alpha", "beta", within=3))) == [[1, 4]]
    assert numbers(scan_text(text, near_sign("beta", "alpha", within=3))) == [[1, 4]]
    assert numbers(scan_text(text, near_sign("alpha", "beta", within=2))) == []
    assert numbers(scan_text("alpha\n" + "\n" * 9000 + "beta\n", anywhere("alpha", "beta"))) == [[1, 9002]]


def test_lines_that_differ_in_a_number_alone_are_distinguished() -> None:
    """Guards what is saved for lines of one shape: a hundred good starts do not hide the bad one."""
    good, bad = "alpha 10\n\nbeta 10\n\n\n", "alpha 10\n\nbeta 99\n\n\n"
    assert numbers(scan_text(good * 100 + bad + good, near_sign("alpha", r"beta 9\d", within=2))) == [[501, 503]]
    assert numbers(scan_text(good * 100 + bad + good, near_sign(r"\balpha", r"\b9\d", within=2))) == [[501, 503]]
    assert numbers(scan_text("waiting 1 s\n" * 100 + "waiting 9 s\n", line_sign(r"waiting 9"))) == [[101]]
    timed = (
        "".join(f"10:00:{n:02} waiting 19 s\n" for n in range(60)) + "10:01:00 waiting 91 s\n10:01:01 waiting 19 s\n"
    )
    assert numbers(scan_text(timed, line_sign(r"waiting 9"), line_sign(r"waiting 5\d, in vain"))) == [[61]]
    assert numbers(scan_text(timed, line_sign(r"1:0\d waiting"))) == [[61]]


def test_what_was_counted_often_hides_nothing_else() -> None:
    """Guards the words that are left out once their sign was counted often enough: others may have them, too."""
    often, rare = line_sign("waiting for peer"), line_sign("waiting for peer .{0,9}in vain")
    found = scan_text("waiting for peer\n" * 150 + "waiting for peer 3 in vain\n", often, rare)
    assert sorted(numbers(found)) == [[1], [151]]
    assert all(hit.count > 100 for signed, hit in found.hits.items() if signed.sign is often)


def test_times_and_unless() -> None:
    """Guards that a line that is harmless once counts only when it comes again and again."""
    assert numbers(scan_text("waiting\n" * 9, line_sign("waiting", times=10))) == []
    (hit,) = scan_text("waiting\n" * 12, line_sign("waiting", times=10)).hits.values()
    assert hit.count == 12
    assert numbers(scan_text("failed, retrying\n", line_sign("failed", unless="retrying"))) == []


def test_progress_bars_do_not_hide_what_comes_after_them() -> None:
    """Guards carriage returns: a bar of thousands of updates is one line of the file."""
    bar = "".join(f"Loading: {n}%|###|\r" for n in range(3000))
    found = scan_text(f"begin\n{bar}something broke\rLoading: 99%\nend\n", line_sign("something broke"))
    (hit,) = found.hits.values()
    assert [(p.number, p.text) for p in hit.proof] == [(2, "something broke")]


def test_colours_and_very_long_lines() -> None:
    """Guards words that escapes would cut apart, and that one line of megabytes costs only what is around the word."""
    assert numbers(scan_text("\x1b[1;31mERROR\x1b[0m some\x1b[0mthing broke\n", line_sign("something broke"))) == [[1]]
    (hit,) = scan_text("x" * 300_000 + " something broke " + "y" * 300_000, line_sign("something broke")).hits.values()
    assert "something broke" in hit.proof[0].text
    assert len(hit.proof[0].text) < 10_000


@pytest.mark.full
def test_a_line_of_a_hundred_thousand_words_is_read_once() -> None:
    """Guards the time for a line without an end: each word with digits, and each sign, costs the same at its end."""
    text = "beta 9 " * 100_000
    found = scan_text(text, line_sign("beta 9"), near_sign("beta 9", "gamma"))
    assert [hit.count > 100 for hit in found.hits.values()] == [True]


def test_marks_and_rows_show_the_story() -> None:
    """Guards what hangs are judged by: how often, first and last, and rows only below their header."""
    story = scan_text("1 2\nrendezvous opens\n# columns\n 3 4\n 5 6\nbye\n").story()
    assert (story.lines, story.count("opens"), story.count("row")) == (6, 1, 2)
    assert (story.marks["row"].first.number, story.marks["row"].last.number) == (4, 5)
    assert [proof.text for proof in story.tail][-1] == "bye"


def test_marks_of_equal_lines_are_all_counted() -> None:
    """Guards the lines that are only counted: their number, the first and the last, over several chunks."""
    found = Scan(book_of((), (STORY,)), "a", 2026)
    for number in range(40):
        found.feed(b"step\nRendezvous opens %d\n" % (number % 7) * 3)
    mark = found.story().marks["opens"]
    assert (mark.count, mark.first.number, mark.last.number) == (120, 2, 240)
    assert (mark.first.text, mark.last.text) == ("Rendezvous opens 0", "Rendezvous opens 4")


def test_a_line_that_had_no_company_a_hundred_times_is_found_with_it() -> None:
    """Guards what is kept about lines and those around them: the one place with company is not passed over."""
    alone = "filler\n" * 70 + "alpha, rendezvous opens\n" + "filler\n" * 70
    text = alone * 100 + alone.replace("opens\n", "opens\nbeta\n") + alone
    assert numbers(scan_text(text, near_sign("alpha", "beta", within=2))) == [[14_171, 14_172]]
    assert scan_text(text).story().count("opens") == 102


def test_rows_of_a_header_that_came_in_an_earlier_chunk() -> None:
    """Guards logs that are watched: they come line by line."""
    found = Scan(book_of((), (STORY,)), "a", 2026)
    for chunk in (b"# columns\n", b" 3 4\n", b" 5", b" 6\n"):
        found.feed(chunk)
    assert found.story().count("row") == 2


LOG = "\n".join(
    [
        "begin",
        "\x1b[1malpha\x1b[0m",
        "bar 1%\rbar 2%\rsomething broke",
        "",
        "beta " + "z" * 500,
        "waiting",
        "waiting",
        "end",
    ]
).encode()
SIGNS = (
    line_sign("something broke"),
    near_sign("alpha", "beta", within=4),
    line_sign("waiting", times=2),
    line_sign("begin"),
)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(cuts=st.lists(st.integers(0, len(LOG)), max_size=12))
def test_the_cuts_between_chunks_change_nothing(cuts: list[int]) -> None:
    """Guards pipes and files that grow: the same bytes give the same hits, wherever they are cut."""
    whole, parts = scan_text(LOG, *SIGNS), Scan(book_of((make_rule(*SIGNS),), (STORY,)), "a.log", 2026)
    bounds = [0, *sorted(cuts), len(LOG)]
    for start, end in pairwise(bounds):
        parts.feed(LOG[start:end])
    parts.close()
    assert sorted(numbers(parts)) == sorted(numbers(whole))
    assert parts.lines == whole.lines


@settings(max_examples=150, deadline=None, derandomize=True)
@given(junk=st.binary(max_size=400), more=st.lists(st.sampled_from([b"\x1b[", b"\r", b"\n", b"waiting", b"\xff"])))
def test_junk_raises_nothing(junk: bytes, more: list[bytes]) -> None:
    """Guards binary files, cut escapes and broken encodings."""
    found = scan_text(junk + b"".join(more) + junk, *SIGNS)
    assert found.story().lines == found.lines
