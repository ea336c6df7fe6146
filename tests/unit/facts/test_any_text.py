"""Parsers on text that no tool ever printed."""

import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Unknown
from sparkwright.facts.fact import decimal, whole_number
from unit.facts.subjects import ALL_FACTS, SUBJECTS, samples
from unit.for_each import for_each

TEXTS = [sample.done.stdout for sample in samples()]
PIECES = sorted({piece for text in TEXTS for piece in re.findall(r"\S+\s?", text) if len(piece) < 60})[:2000]
ODD = st.text(max_size=40) | st.sampled_from(
    ["9" * 5000, "٣", "²", "nan", "[" * 3000, '{"a":', "\x00", "\x85", "\x1c", "-"]
)
# Real words in a false order find more than noise does: they get past the first check.
SHUFFLED = st.lists(st.sampled_from(PIECES) | st.just("\n") | ODD, max_size=30).map("".join)
CUT = st.builds(
    lambda text, at, odd, to: text[: at % (len(text) + 1)] + odd + text[to % (len(text) + 1) :],
    st.sampled_from(TEXTS),
    st.integers(0, 10_000),
    ODD,
    st.integers(0, 10_000),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(text=SHUFFLED | CUT | ODD, stderr=ODD, code=st.sampled_from([0, 1, 6, 9, 124, 127, 255]))
def test_no_text_makes_a_parser_raise(text: str, stderr: str, code: int) -> None:
    """Guards that odd output of a tool becomes Unknown or is left out, and never an exception."""
    done = Completed(code, text, stderr)
    for read in [*SUBJECTS.values(), *(fact.parse for fact in ALL_FACTS.values())]:
        assert read(done) is not None


@for_each("text", ["", "\n\n", "something else entirely\n", "{}", "[]", "null"])
def test_nothing_understood_is_unknown(text: str) -> None:
    """Guards that an answer without any known word is Unknown, not an empty fact (no process listed is an answer)."""
    read = {name: fact.read(Completed(0, text, "")) for name, fact in ALL_FACTS.items()}
    assert {name for name, found in read.items() if not isinstance(found, Unknown)} <= {"gpu_processes"}


def test_numbers_are_ascii_digits_only() -> None:
    """Guards that `nan`, exponents and other scripts' digits are not taken for figures."""
    assert [whole_number(t) for t in ("42", "-1", "", "4.2", "٣", "²", "9" * 5000)] == [
        42,
        -1,
        None,
        None,
        None,
        None,
        None,
    ]
    assert [decimal(t) for t in ("12.61", "3", "nan", "inf", "1e9", "1,5", "٣")] == [12.61, 3.0, *[None] * 5]
