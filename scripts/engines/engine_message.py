"""One message as it is found in a source, and the forms of texts that all readers of sources share."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

SLOT = "{}"
PERCENT = re.compile(r"%(?:\(\w+\))?[-#0 +']*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t)?[sdrfxXgGeEiucpoa]")
LEAST_LETTERS, LEAST_WORDS, LONGEST = 12, 2, 300


@dataclass(frozen=True, order=True)
class FoundMessage:
    text: str
    level: str
    file: str
    function: str


def message_lines(text: str) -> Iterator[str]:
    """The messages with enough text to be found by."""
    for line in text.split("\n"):
        plain = re.sub(r"(?:\{\}\s*)+$|^(?:\s*\{\})+", SLOT, " ".join(line.split())[:LONGEST])
        if (
            len(re.findall(r"[a-zA-Z]", plain)) >= LEAST_LETTERS
            and len(re.findall(r"[A-Za-z]{3,}", plain)) >= LEAST_WORDS
        ):
            yield plain
