"""A tokenizer of the twin's own: deterministic, about four characters a token, the same text back.

It needs no tokenizer.json; counts therefore differ from the real model's by some 10-20 %.
"""

from __future__ import annotations

import re
import zlib

PIECE = re.compile(r"<\|?[a-z_/]+\|?>| ?[^\W\d_]{1,6}|\d{1,3}|[^\S\n]+(?=\S)|\s+|[^\w\s]{1,3}|.", re.DOTALL)


class Tokenizer:
    """Ids are hashes of the pieces; what has been seen can be turned back, other ids become `<N>`."""

    def __init__(self, vocab: int) -> None:
        self.vocab = max(vocab, 256)
        self._pieces: dict[int, str] = {}
        self._ids: dict[str, int] = {}

    def encode(self, text: str) -> list[int]:
        return [self._ids.get(piece) or self._learn(piece) for piece in PIECE.findall(text)]

    def pieces(self, text: str) -> list[str]:
        found: list[str] = PIECE.findall(text)
        return found

    def decode(self, ids: list[int]) -> str:
        return "".join(self._pieces.get(i, f"<{i}>") for i in ids)

    def _learn(self, piece: str) -> int:
        at = zlib.crc32(piece.encode()) % (self.vocab - 1) + 1
        while self._pieces.get(at, piece) != piece and len(self._pieces) < self.vocab - 1:
            at = at % (self.vocab - 1) + 1
        self._ids[piece] = at
        self._pieces[at] = piece
        return at
