"""Expressions with every digit for any: what they do not match, the expression does not match with other numbers."""

import random
import re

import pytest

from sparkwright.causes.diagnose import log_book
from sparkwright.logscan.book import linear
from sparkwright.logscan.literals import digit_blind
from sparkwright.logscan.relaxed import relaxed
from unit.logscan.matching import matching

DIGITS = str.maketrans("0123456789", "7777777777")


@pytest.mark.parametrize(
    ("pattern", "line", "start"),
    [
        (r"waiting 9", "10:00 waiting 1 s", 6),
        (r"(?<!\.)\b12\.[01] GB", "of 77.7 GB", 3),
        (r"sm_(?:10|12)[0a]?\b", "for sm_90 only", 4),
        (r"[^5x]9|nothing", "a 30", 1),
        (r"^(?!.*7).*8 GPUs", "with 3 GPUs", 0),
    ],
)
def test_a_line_with_other_numbers_is_matched(pattern: str, line: str, start: int) -> None:
    """Guards each kind of part that digits matter to, and the place where a match may begin."""
    found = relaxed(pattern)
    assert found
    match = found[0].search(line)
    assert match and match.start() <= start
    assert not found[0].search("nothing of the kind".replace("nothing", "none"))


@pytest.mark.parametrize("pattern", [r"(\d)x\1 7", r"7 (?-i:GB)", r"7++8"])
def test_what_cannot_be_widened_is_said(pattern: str) -> None:
    """Guards expressions with references, with parts that look at case, and those that never go back."""
    assert relaxed(pattern) is None


def test_lookbehinds_are_counted() -> None:
    """Guards the text before a match, on which it may depend."""
    assert [found[1] for text in (r"a9", r"(?<!abc)9", r"x(?:(?<=q)|(?<=ab)b)9") if (found := relaxed(text))] == [
        1,
        4,
        3,
    ]


@pytest.mark.full
def test_each_expression_is_within_the_wider_one() -> None:
    """Every pattern of the causes that looks at digits: what it matches, with its and other digits, the other does."""
    dice, tried = random.Random(7), 0
    for pattern in log_book().patterns:
        text = linear(pattern.text)
        wider = None if digit_blind(pattern.text) else relaxed(text)
        line = matching(re.compile(text, re.IGNORECASE), dice) if wider else ""
        found = re.search(text, line, re.IGNORECASE) if line else None
        if wider and found:
            tried += 1
            match, other = wider[0].search(line), wider[0].search(line.translate(DIGITS))
            assert match and other and match.start() == other.start() <= found.start(), text
    assert tried > 500
