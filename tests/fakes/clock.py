"""Time that jumps."""

import asyncio

from sparkwright.domain.incident import Uptime

# Turns of the event loop that everybody else gets before time moves.
_TURNS = 3
START = 1_795_233_600.0  # 2026-11-21T04:00:00Z


class FakeClock:
    """Implements ports.Clock. `sleep` lets other tasks run, then jumps; sleepers wake in the order of their times.

    boot: of the machine that it belongs to; booted_at: `elapsed` at that boot.
    """

    def __init__(self, start: float = START) -> None:
        self._start = start
        self.boot, self.booted_at = "boot-1", -3600.0
        self.elapsed = 0.0
        self.slept: list[float] = []
        self._wakes: list[float] = []

    def now(self) -> float:
        return self._start + self.elapsed

    def monotonic(self) -> float:
        return self.elapsed

    def uptime(self) -> Uptime:
        return Uptime(self.boot, self.elapsed - self.booted_at)

    def set_calendar(self, seconds: float) -> None:
        """Move `now` alone, as `date -s` does."""
        self._start += seconds

    def advance(self, seconds: float) -> None:
        self.elapsed += seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        wake = self.elapsed + max(0.0, seconds)
        self._wakes.append(wake)
        try:
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            while min(self._wakes) < wake:
                await asyncio.sleep(0)
        finally:
            self._wakes.remove(wake)
        self.elapsed = max(self.elapsed, wake)
