"""The simulator's answers: English-like text, the same for the same prompt, which begins with `(simulated)`."""

from __future__ import annotations

import json
import random
import re
import zlib
from collections.abc import Iterator
from typing import Any

from sparkwright.domain.values import dataclass

OPENING = ["(", "simula", "ted", ")"]
"""Cut as tokenizer.py cuts it, so that an answer sent back as history meets its own cached blocks."""
THOUGHT = 24
"""Tokens of reasoning before an answer, when a reasoning parser is set."""
WORDS = (
    "the of and to in is it that for on with as are this be at by from or an which one can has will each when two all "
    "node rank token memory cache weight model step batch prompt answer engine block layer host link plan "
    "reads waits holds sends grows starts ends keeps fits moves fast slow small large first last next same other"
)
VOCABULARY = WORDS.split()
PIECE = re.compile(r"<\|?[a-z_/]+\|?>| ?[^\W\d_]{1,6}|\d{1,3}|[^\S\n]+(?=\S)|\s+|[^\w\s]{1,3}|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Piece:
    """One token: its text, and to which field of the answer it belongs; hidden ones count but are not shown."""

    kind: str
    """reasoning, content, call (the name of a tool), arguments, hidden"""
    text: str


@dataclass(frozen=True, slots=True)
class Style:
    """The inputs of an answer besides its prompt."""

    reasoning: bool = False
    garbage: bool = False
    tool: dict[str, Any] | None = None
    """The function to call: its name and parameters, as in the request."""
    schema: dict[str, Any] | None = None
    """Structured output: the answer is JSON that this schema allows."""
    endless: bool = False
    """`ignore_eos`: never ends before the limit."""
    text: str = ""
    """The answer, where a directive or a grammar sets it."""
    calls: tuple[tuple[str, str], ...] = ()
    """(function, arguments as JSON), where a directive asks for them."""
    wrong: frozenset[str] = frozenset()


def answer(seed: int, style: Style) -> Iterator[Piece]:
    """Pieces until the answer ends (or never, when endless)."""
    dice = random.Random(seed)
    if style.garbage:
        yield from (Piece("reasoning" if style.reasoning else "content", "!") for _ in _length(dice, style))
        return
    if style.reasoning:
        leaks = "think_leaks" in style.wrong
        yield from _prose(dice, "content" if leaks else "reasoning", THOUGHT + dice.randrange(8))
        yield Piece("content" if leaks else "hidden", "</think>")
    if style.text:
        yield from _cut("reasoning" if style.reasoning and "think_eats" in style.wrong else "content", style.text)
        return
    for name, arguments in style.calls:
        yield Piece("call", name)
        yield from _cut("arguments", arguments)
    if style.calls:
        return
    if style.tool is not None:
        yield Piece("call", str(style.tool.get("name", "tool")))
        yield from _cut("arguments", json.dumps(_example(dice, style.tool.get("parameters") or {})))
        return
    if style.schema is not None:
        yield from _cut("content", json.dumps(_example(dice, style.schema)))
        return
    yield from _prose(dice, "content", None if style.endless else 24 + dice.randrange(40))


def _length(dice: random.Random, style: Style) -> Iterator[int]:
    count = 0
    limit = 64 + dice.randrange(64)
    while style.endless or count < limit:
        yield count
        count += 1


def _prose(dice: random.Random, kind: str, length: int | None) -> Iterator[Piece]:
    yield from (Piece(kind, text) for text in OPENING)
    count = len(OPENING)
    left = 0
    while length is None or count < length:
        if left == 0:
            left = 6 + dice.randrange(8)
            word = dice.choice(VOCABULARY)
            text = " " + (word.capitalize())
        else:
            left -= 1
            text = "." if left == 0 else " " + dice.choice(VOCABULARY)
        yield Piece(kind, text)
        count += 1
    yield Piece(kind, ".")


def _cut(kind: str, text: str) -> Iterator[Piece]:
    return (Piece(kind, text[at : at + 4]) for at in range(0, len(text), 4))


def _example(dice: random.Random, schema: dict[str, Any]) -> Any:
    """A value that the schema allows."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if kind == "object":
        wanted = schema.get("required") or list(schema.get("properties", {}))
        return {name: _example(dice, schema.get("properties", {}).get(name, {})) for name in wanted}
    if kind == "array":
        return [_example(dice, schema.get("items", {})) for _ in range(max(schema.get("minItems", 1), 1))]
    plain = {"integer": 1, "number": 1.5, "boolean": True, "null": None}
    return plain.get(kind, f"(simulated) {dice.choice(VOCABULARY)}")


def logprobs(pieces: list[Piece], alternatives: int, wrong: frozenset[str]) -> list[dict[str, Any]]:
    """Made up from the text of each token, the same whenever it comes; [] for -1 alternatives."""
    found, lead = [], 0.2 if "unsteady" in wrong else 2.5
    for piece in pieces if alternatives >= 0 else ():
        best = -(zlib.crc32(piece.text.encode()) % 100) / 200
        top = [{"token": piece.text, "logprob": best - lead * n, "bytes": None} for n in range(alternatives)]
        own = best - 2.5 * ("logprobs" in wrong)
        found.append({"token": piece.text, "logprob": own, "bytes": list(piece.text.encode()), "top_logprobs": top})
    return found


def damaged(delta: dict[str, Any], wrong: frozenset[str]) -> dict[str, Any]:
    """The delta of a stream that loses non-ASCII text, or the commas of arguments."""
    if "stream_text" in wrong and "content" in delta:
        return {**delta, "content": delta["content"].encode("ascii", "ignore").decode()}
    for call in delta.get("tool_calls") or () if "stream_arguments" in wrong else ():
        function = call["function"]
        function |= {"arguments": function["arguments"].replace(",", "")} if "arguments" in function else {}
    return delta


class SimulatedTokenizer:
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
