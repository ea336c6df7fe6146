"""The machine's clocks."""

import asyncio
import time


class SystemClock:
    """Implements ports.Clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
