"""One request inside the engine: what it asks, how far it is, and what the server has not fetched yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

from sparkwright.simulator.prefix_cache import Table
from sparkwright.simulator.text import Piece


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
    table: Table = field(default_factory=Table)
    hashes: list[int] = field(default_factory=list)
    outbox: list[Piece] = field(default_factory=list)
    finish: str = ""
    stop_reason: str | None = None
    failed: Exception | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)
    _tail: str = ""

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
        if not self.stops or piece.kind != "content":
            return piece
        seen = self._tail + piece.text
        found = [(seen.find(s), s) for s in self.stops if s in seen]
        self._tail = seen[-max(map(len, self.stops)) :]
        if not found:
            return piece
        at, stop = min(found)
        self.stop_reason = stop
        self.end("stop")
        return Piece(piece.kind, piece.text[: max(0, at - (len(seen) - len(piece.text)))])
