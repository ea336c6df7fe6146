"""System errors in other languages: the English text is added, as all signs and mechanisms are about that one."""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_FILE = Path(__file__).with_name("system_errors.json")


@cache
def _english() -> Mapping[bytes, bytes]:
    """Text of the C library in another language -> its English text (scripts/system_errors.py)."""
    found = json.loads(_FILE.read_text(encoding="utf-8"))
    return {text.encode(): english.encode() for text, english in found.items()}


@cache
def _any() -> re.Pattern[bytes]:
    return re.compile(b"|".join(re.escape(text) for text in sorted(_english(), key=len, reverse=True)))


def with_english(block: bytes) -> bytes:
    """The block with ` (English text)` after each of them; it keeps its lines."""
    return _any().sub(lambda found: b"%b (%b)" % (found[0], _english()[found[0]]), block)
