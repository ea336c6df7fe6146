"""Words in bytes: the automaton and the plain search that replaces it where nothing compiled can be."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.causes.diagnose import log_book
from sparkwright.logscan.book import lowered
from sparkwright.logscan.multi_search import Finder, WordSearch

DATA = Path(__file__).parents[2] / "data"
TEXT = st.text("abc\n", max_size=60).map(str.encode)
WORDS = st.lists(st.text("abc", min_size=1, max_size=6).map(str.encode), min_size=1, max_size=12, unique=True)


@given(WORDS, TEXT)
def test_all_find_the_same(words: list[bytes], text: bytes) -> None:
    """All three ways give the same hits in the same order, whatever the words are, inside and across one another."""
    found = list(WordSearch(words).hits(text))
    assert found == list(Finder(words, -1).hits(text)) == list(Finder(words, -1, -1).hits(text))


@pytest.mark.full
def test_both_find_the_same_in_logs_of_engines() -> None:
    """All words of all rules over every log that the tests have: a supervisor judges as a laptop does."""
    words = [word.encode() for word in log_book().needles]
    logs = sorted(path for path in DATA.rglob("*.log"))
    block = lowered(b"\n".join(path.read_bytes() for path in logs)[:400_000])
    found = list(Finder(words, -1).hits(block))
    assert list(WordSearch(words).hits(block)) == found and len(found) > 1000
