"""The engine's or library's message that a line is: all that their wheels can raise or log (`make engine-data`)."""

import gzip
import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from sparkwright.domain.values import dataclass

PROGRAMS = (
    *("vllm", "sglang", "transformers", "flashinfer", "ray", "llama-cpp", "lmdeploy"),
    *("mistral-common", "huggingface-hub", "compressed-tensors", "xgrammar", "torch"),
)
SLOT = "{}"
_LONGEST_VALUE = 400  # characters
_PART, _LONG = 3, 120  # a third of a line that is not longer must be the message's own text
_BAD = re.compile(r"error|fail|cannot|could not|unable|invalid|missing|not (?:found|support)|exce|crash|die", re.I)
_WORD = re.compile(r"[a-z_][a-z0-9_]{3,}")


@dataclass(frozen=True, slots=True)
class Message:
    """template: with {} for what is filled in. level: the exception's name, or E, W, I as it is logged.

    file, function: of its source, '' of a compiled library; since, until: the first and last of the versions read that
    have it, '' for the first and the last of all.
    """

    program: str
    template: str
    level: str
    file: str
    function: str
    since: str = ""
    until: str = ""

    @property
    def is_routine(self) -> bool:
        """True if it is also logged when nothing is wrong."""
        return self.level == "I" and not _BAD.search(self.template)

    @property
    def own(self) -> int:
        """Characters that are the same in all such lines."""
        return len(self.template.replace(SLOT, ""))

    @property
    def place(self) -> str:
        return f"{self.file}, {self.function}" if self.function else self.file

    def values(self, text: str) -> tuple[str, ...] | None:
        """The values that a line fills in; None for another message. Linear in the line."""
        found, at = list[str](), 0
        for number, piece in enumerate(self.template.split(SLOT)):
            place = text.find(piece, at)
            before = text[at:place] if place >= 0 else ""
            if place < 0 or (len(before) > _LONGEST_VALUE if number else before[-1:].isalnum()):
                return None
            found, at = [*found, before], place + len(piece)
        return (*found[1:-1], text[at:]) if self.template.endswith(SLOT) else tuple(found[1:])


def message_of(text: str) -> Message | None:
    """The one with the most of its own text in the line; None where that is little of the line."""
    plain = " ".join(text.split())
    words = set(_WORD.findall(plain.lower()))
    rows = ((program, row) for program in PROGRAMS for word in words for row in _rows(program, word))
    known = (Message(program, *row.split("\t")[1:]) for program, row in rows)
    return max(
        (one for one in known if _PART * one.own >= min(len(plain), _LONG) and one.values(plain) is not None),
        key=lambda one: (one.own, one.level not in "IW", one.place),
        default=None,
    )


def _rows(program: str, word: str) -> Iterator[str]:
    rows = listed(program)
    at = bisect_left(rows, f"{word}\t")
    while at < len(rows) and rows[at].startswith(f"{word}\t"):
        yield rows[at]
        at += 1


@cache
def listed(program: str) -> list[str]:
    """Sorted rows, each with the rarest word of its template first; before them, the wheels they are from."""
    raw = (files("sparkwright.engines.data") / "messages" / f"{program}.txt.gz").read_bytes()
    return gzip.decompress(raw).decode().splitlines()
