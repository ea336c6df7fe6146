"""System errors in other languages: the English text is added, as all signs and mechanisms are about that one."""

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from sparkwright.logscan.multi_search import WordSearch

_FILE = Path(__file__).with_name("system_errors.json")
_NAME = re.compile(rb"[\w./+-]{1,200}: $")  # of a file, a library or a host: signs look for it with its error
_BEFORE = 202


@cache
def _texts() -> Sequence[tuple[bytes, bytes]]:
    """(text of the C library in another language, its English text), by scripts/words/system_errors.py."""
    found = json.loads(_FILE.read_text(encoding="utf-8"))
    return [(text.encode(), english.encode()) for text, english in found.items()]


@cache
def _search() -> WordSearch:
    return WordSearch([text for text, _ in _texts()])


def with_english(block: bytes) -> bytes:
    """The block with ` (English text)` after each of them, and with the name that stands before it; it keeps its
    lines."""
    longest: dict[int, tuple[int, int]] = {}  # where it begins -> its end, its number
    for number, start, end in _search().hits(block):
        longest[start] = max(longest.get(start, (0, 0)), (end, number))
    parts, at = list[bytes](), 0
    for start, (end, number) in sorted(longest.items()):
        if start >= at:
            name = _NAME.search(block[max(at, start - _BEFORE) : start])
            parts.append(b"%b (%b%b)" % (block[at:end], name[0] if name else b"", _texts()[number][1]))
            at = end
    return b"".join((*parts, block[at:]))
