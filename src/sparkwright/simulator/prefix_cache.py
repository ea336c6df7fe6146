"""The KV pool in blocks: who holds which, and which full blocks may be used again by the next prompt (prefix cache)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Table:
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

    def match(self, table: Table, hashes: Sequence[int], prompt: int) -> int:
        """Takes the longest known prefix for `table`; returns its tokens. At least one token is left to compute."""
        if not self.caching:
            return 0
        for value in hashes[: (prompt - 1) // self.size]:
            if value not in self._held and value not in self._idle:
                break
            self._hold(value)
            table.named.append(value)
        return len(table.named) * self.size

    def grow(self, table: Table, tokens: int) -> bool:
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

    def name(self, table: Table, hashes: Sequence[int]) -> None:
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

    def release(self, table: Table) -> None:
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
