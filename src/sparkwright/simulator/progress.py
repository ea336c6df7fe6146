"""Progress bars as tqdm writes them into vLLM's log.

The bytes matter to whoever reads them live: graph capture redraws one line with `\\r` and ends it only when done, so
another process's line may follow in the middle of it (capture v4-1m-s6); checkpoint shards end every bar with `\\n`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from sparkwright.simulator.log import Voice

EIGHTHS = " ▏▎▍▌▋▊▉"
WIDTH = 10


@dataclass(frozen=True, slots=True)
class Bar:
    """`total` steps in `seconds` of the simulated machine; the clock shown runs at that speed too."""

    title: str
    total: int
    seconds: float
    scale: float
    updates: int = 8

    async def draw(self, voice: Voice) -> None:
        """One line, redrawn."""
        voice.raw(f"{voice.prefix}\r{self.at(0)}")
        for done in self._stops():
            await asyncio.sleep(self.seconds * self.scale / len(self._stops()))
            voice.raw(f"\r{self.at(done)}")
        voice.raw("\n")

    async def shards(self, voice: Voice) -> None:
        """One line per shard (vLLM's `_BAR_FORMAT`)."""
        voice.raw(f"{voice.prefix}\r{self._shard(0)}\n")
        for done in range(1, self.total + 1):
            await asyncio.sleep(self.seconds * self.scale / self.total)
            voice.raw(f"{voice.prefix}\r{self._shard(done)}\n")
        voice.raw(f"{voice.prefix}\n")

    def _stops(self) -> list[int]:
        count = min(self.updates, self.total)
        return [round(self.total * i / count) for i in range(1, count + 1)]

    def at(self, done: int) -> str:
        filled = WIDTH * 8 * done // self.total
        bar = "█" * (filled // 8) + (EIGHTHS[filled % 8] if filled % 8 else "")
        return (
            f"{self.title}: {100 * done / self.total:3.0f}%|{bar:<{WIDTH}}| {done}/{self.total} [{self._clock(done)}]"
        )

    def _shard(self, done: int) -> str:
        return f"{self.title}: {100 * done / self.total:3.0f}% Completed | {done}/{self.total} [{self._clock(done)}]"

    def _clock(self, done: int) -> str:
        if done == 0:
            return "00:00<?, ?it/s"
        spent = self.seconds * done / self.total
        rate = done / spent if spent else 9999.0
        pace = f"{rate:5.2f}it/s" if rate >= 1 else f"{1 / rate:5.2f}s/it"
        return f"{_span(spent)}<{_span(self.seconds - spent)}, {pace}"


def _span(seconds: float) -> str:
    whole = int(max(seconds, 0))
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{left:02d}" if hours else f"{minutes:02d}:{left:02d}"
