"""One request inside the engine: what it asks, how far it is, and what the server has not fetched yet."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field

from sparkwright.simulator.text import Piece


@dataclass(slots=True)
class BlockTable:
    """One request's blocks: `named` are full and known by the hash of all tokens up to their end."""

    named: list[int] = field(default_factory=list)
    """Hashes that this table holds a reference on."""
    private: int = 0
    """Blocks that nobody else can use: the partial last one, and duplicates of named ones."""

    @property
    def blocks(self) -> int:
        return len(self.named) + self.private


class BlockPool:
    """Blocks are counted, not stored. Freed full blocks stay as cache until their room is needed, oldest first."""

    def __init__(self, blocks: int, block_size: int, caching: bool) -> None:
        self.total = blocks
        self.size = block_size
        self.caching = caching
        self._held: dict[int, int] = {}
        self._private = 0
        self._idle: OrderedDict[int, None] = OrderedDict()

    @property
    def used(self) -> int:
        return len(self._held) + self._private

    @property
    def usage(self) -> float:
        return self.used / self.total if self.total else 0.0

    def hashes(self, tokens: Sequence[int], start: int = 0, before: int = 0) -> list[int]:
        """Chained hashes of the full blocks of `tokens` from block `start` on, after the block hashed `before`."""
        out: list[int] = []
        for at in range(start * self.size, len(tokens) - self.size + 1, self.size):
            before = hash((before, tuple(tokens[at : at + self.size])))
            out.append(before)
        return out

    def match(self, table: BlockTable, hashes: Sequence[int], prompt: int) -> int:
        """Takes the longest known prefix for `table`; returns its tokens. At least one token is left to compute."""
        if not self.caching:
            return 0
        for value in hashes[: (prompt - 1) // self.size]:
            if value not in self._held and value not in self._idle:
                break
            self._hold(value)
            table.named.append(value)
        return len(table.named) * self.size

    def grow(self, table: BlockTable, tokens: int) -> bool:
        """Room for `tokens` in all. False, with nothing changed, when the pool has none."""
        needed = -(-tokens // self.size) - table.blocks
        if needed <= 0:
            return True
        if self.used + needed > self.total:
            return False
        while self._idle and self.used + len(self._idle) + needed > self.total:
            self._idle.popitem(last=False)
        table.private += needed
        self._private += needed
        return True

    def name(self, table: BlockTable, hashes: Sequence[int]) -> None:
        """Publishes computed full blocks, in order, so that others find them."""
        if not self.caching:
            return
        for value in hashes:
            if value in self._held or table.private == 0:
                continue
            self._idle.pop(value, None)
            table.private -= 1
            self._private -= 1
            self._held[value] = 1
            table.named.append(value)

    def release(self, table: BlockTable) -> None:
        for value in reversed(table.named):
            self._held[value] -= 1
            if self._held[value] == 0:
                del self._held[value]
                self._idle[value] = None
        self._private -= table.private
        table.named.clear()
        table.private = 0

    def _hold(self, value: int) -> None:
        self._idle.pop(value, None)
        self._held[value] = self._held.get(value, 0) + 1


class EngineDead(Exception):
    """vLLM's EngineDeadError: the client gets HTTP 500, or an error object inside its stream."""

    def __init__(self) -> None:
        super().__init__("EngineCore encountered an issue. See stack trace (above) for the root cause.")


@dataclass(slots=True, eq=False)
class Job:
    """Tokens are counted from the prompt's first; times are seconds of the event loop's clock."""

    name: str
    prompt: list[int]
    pieces: Iterator[Piece]
    max_tokens: int
    stops: tuple[str, ...] = ()
    arrived: float = 0.0
    started: float = 0.0
    first_token: float = 0.0
    last_token: float = 0.0
    computed: int = 0
    cached: int = 0
    made: list[int] = field(default_factory=list)
    table: BlockTable = field(default_factory=BlockTable)
    hashes: list[int] = field(default_factory=list)
    outbox: list[Piece] = field(default_factory=list)
    finish: str = ""
    stop_reason: str | None = None
    failed: Exception | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)
    _held: str = ""

    @property
    def length(self) -> int:
        return len(self.prompt) + len(self.made)

    @property
    def over(self) -> bool:
        return bool(self.finish) or self.failed is not None

    def take(self, token: int, piece: Piece) -> None:
        """One more token; ends the job at its limit or at a stop string, which is cut off."""
        self.made.append(token)
        piece = self._cut(piece)
        self.outbox.append(piece)
        if not self.finish and len(self.made) >= self.max_tokens:
            self.end("length")
        self.news.set()

    def end(self, reason: str) -> None:
        self.finish = reason
        if self._held:
            self.outbox.append(Piece("content", self._held))
            self._held = ""
        self.news.set()

    def fail(self, error: Exception) -> None:
        self.failed = error
        self.news.set()

    async def batches(self) -> AsyncIterator[list[Piece]]:
        """Pieces as they come; several together when the reader is slower than the engine, as in vLLM.

        Raises the engine's error, if one ends the job.
        """
        while True:
            await self.news.wait()
            self.news.clear()
            if self.failed is not None:
                raise self.failed
            ready, self.outbox = self.outbox, []
            yield ready
            if self.finish and not self.outbox:
                return

    def _cut(self, piece: Piece) -> Piece:
        """Text that may begin a stop string is not shown before it is known to be none."""
        if not self.stops or piece.kind != "content":
            return piece
        seen, self._held = self._held + piece.text, ""
        if found := [(seen.find(stop), stop) for stop in self.stops if stop in seen]:
            at, self.stop_reason = min(found)
            self.end("stop")
            return Piece(piece.kind, seen[:at])
        shown = max(len(seen) - max(map(len, self.stops)) + 1, 0)
        self._held = seen[shown:]
        return Piece(piece.kind, seen[:shown])
