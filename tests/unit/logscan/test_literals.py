"""The words that patterns cannot do without."""

import random
import re

import common_words
import pytest

from sparkwright.causes.diagnose import line_causes, log_book
from sparkwright.logscan.literals import all_required, lenient, required
from unit.for_each import for_each
from unit.logscan.matching import matching


@for_each(
    "pattern, words",
    [
        (r"Gloo (connect|full)Mesh failed .*127\.0", ("gloo connectmesh failed ", "gloo fullmesh failed ")),
        (r"(?=.*autotun).*(?:hangs?\b|accept(?:ed)? rate)", ("autotun",)),
        (r"is \bnot(?: yet)? supported", ("is not supported", "is not yet supported")),
        (r"multi[- ]?node", ("multi node", "multi-node", "multinode")),
        (r"wifi|wi-fi|wlan0", ("wi-fi", "wifi", "wlan0")),
        (r"(?:some )?thing(?:s|\b)", ("thing",)),
        (r"Xid .{0,9}(?:NVRM: )+", ("nvrm: ",)),
        (r"显存不足", ("显存不足",)),
    ],
)
def test_the_longest_sure_words_are_taken(pattern: str, words: tuple[str, ...]) -> None:
    """Guards speed: the rarer the word, the fewer lines are inspected."""
    assert required(pattern) == words


@pytest.mark.parametrize("pattern", [r"\d+ ", r"abc|.*", r"(?:word)?", r"[a-z]{9}", r"Élan"])
def test_a_pattern_without_a_sure_word_is_refused(pattern: str) -> None:
    """Guards that no pattern is silently never tried."""
    with pytest.raises(ValueError, match="no text of 4"):
        required(pattern)


@for_each(
    "pattern, line, matches",
    [
        (r"module 'torch' has no attribute '\w+'", "module torch has no attribute float4", True),
        (r"unsupported arch '(?:sm_12)'", "unsupported arch sm_12", True),
        (r"unsupported arch '(?:sm_12)'", "unsupported arch sm_120", False),
        (r"device \(([\d.]+)/[\d.]+ GiB\)", "device 8.8/121.6 GiB on startup", True),
        (r"(?P<name>[^']+)' must be \[a\]", "x must be a", True),
        (r"(?<=')quoted'{1}", "quoted", False),
    ],
)
def test_lost_quotes_and_brackets_do_not_hide_a_message(pattern: str, line: str, matches: bool) -> None:
    """Guards logs that were pasted without their quotes: a mark may be missing, the end of a word it was may not."""
    assert bool(re.search(lenient(pattern), line)) is matches


def test_what_else_a_line_must_have() -> None:
    """Guards the check before the search: what a line is looked for by comes first, and short texts count, too."""
    first, *others = all_required(r"\bXid\b.{0,9}gpu lost.*(?:reset|reboot)")
    assert first == ("gpu lost",)
    assert {("reboot", "reset"), ("xid",)} <= set(others)
    assert all_required(r"\d+ ") == ()


PATTERNS = sorted({text for cause in line_causes().values() for sign in cause.signatures for text in sign.patterns})


@pytest.mark.full
def test_whatever_matches_has_one_of_the_words() -> None:
    """Guards correctness for the patterns of all rules: a line without any word cannot match."""
    dice, not_made = random.Random(5), []
    for pattern in PATTERNS:
        line = matching(re.compile(pattern, re.IGNORECASE | re.ASCII), dice).lower()
        not_made += [] if line else [pattern]
        assert not line or all(any(word in line for word in words) for words in all_required(pattern)), (pattern, line)
    assert len(not_made) < 0.002 * len(PATTERNS), not_made


def test_the_common_words_are_those_of_the_logs_here() -> None:
    """Guards that the table can be made again: nobody edits it by hand."""
    assert common_words.main(["--check"]) == 0


def test_the_book_is_made_of_all_rules() -> None:
    """Guards that every pattern of the catalog is one that the book takes."""
    assert len(log_book().signs) == sum(len(cause.signatures) for cause in line_causes().values())
