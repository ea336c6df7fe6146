"""Bodies of requests that wait: in memory while small, then in files without a name, and never more than a bound."""

import asyncio
import mmap
import tempfile
from collections.abc import Callable
from types import TracebackType
from typing import IO, TypeVar

from sparkwright.domain.units import GIB, MIB
from sparkwright.gateway.decide import GatewayAnswer, retry_later
from sparkwright.gateway.usage import Body

IN_MEMORY = MIB
_CROWDED, _SMALL = 64 * MIB, 64 * 1024
MOST = GIB
T = TypeVar("T")


class SpoolFull(Exception):
    """No room for more of a body. `answer` is what its client gets."""

    def __init__(self, why: str) -> None:
        self.answer: GatewayAnswer = retry_later(
            "gateway_full", f"The gateway cannot take in more request bodies now: {why}.", 5
        )


class Spool:
    """All bodies that one process holds. most: bytes of all together, in memory and in files."""

    def __init__(self, most: int = MOST) -> None:
        self.most, self.held = most, 0

    def body(self) -> "HeldBody":
        """Create a holder for one body; it stays in memory up to 1 MiB, or 64 KiB while many bodies are held."""
        return HeldBody(self, IN_MEMORY if self.held < _CROWDED else _SMALL)


class HeldBody:
    """The received part of one body that waits. A context manager: its room is free again afterwards."""

    def __init__(self, spool: Spool, in_memory: int) -> None:
        self._spool, self._in_memory = spool, in_memory
        self._memory, self._read = bytearray(), 0
        self._file: IO[bytes] | None = None
        self.size = 0

    def __enter__(self) -> "HeldBody":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._spool.held -= self.size
        if self._file:
            self._file.close()

    async def write(self, piece: bytes) -> None:
        """Add at the end. Raises SpoolFull."""
        if self._spool.held + len(piece) > self._spool.most:
            raise SpoolFull(f"it holds {self._spool.held / MIB:,.0f} MiB of at most {self._spool.most / MIB:,.0f}")
        self._spool.held += len(piece)
        self.size += len(piece)
        if self.size <= self._in_memory:
            self._memory += piece
            return
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=".")  # noqa: SIM115 - closed by __exit__
                piece, self._memory = bytes(self._memory) + piece, bytearray()
            await asyncio.to_thread(self._file.write, piece)  # a disk may be slow; others go on meanwhile
        except OSError as error:
            raise SpoolFull(f"its disk took no more ({error.strerror})") from error

    def rewind(self) -> None:
        self._read = 0
        if self._file:
            self._file.seek(0)

    async def read(self, most: int) -> bytes:
        """The next bytes after `rewind`, b'' at the end. Nothing is added any more."""
        if self._file:
            return await asyncio.to_thread(self._file.read, most)
        piece = bytes(self._memory[self._read : self._read + most])
        self._read += len(piece)
        return piece

    def examine(self, look: Callable[[Body], T]) -> T:
        """Apply `look` to all that is here, mapped if it is a file."""
        if self._file is None:
            return look(bytes(self._memory))
        self._file.flush()
        with mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            return look(mapped)
