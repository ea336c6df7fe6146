"""Reports to systemd that a service has started and that its event loop still runs.

The protocol is a datagram: https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
"""

import asyncio
import os
import socket
from collections.abc import Coroutine, MutableMapping
from contextlib import suppress
from typing import Any, TypeVar

from sparkwright.domain.values import dataclass

T = TypeVar("T")
_SOCKET, _PERIOD, _PROCESS = "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"
_PART = 4  # signs of life in one period


@dataclass(frozen=True, slots=True)
class Watchdog:
    """address: of systemd's socket, '' without one. every: seconds between two signs of life, 0: none are wanted."""

    address: str = ""
    every: float = 0.0

    @classmethod
    def take(cls, environ: MutableMapping[str, str]) -> "Watchdog":
        """Takes systemd's settings out of the environment, which children inherit."""
        address, process = environ.pop(_SOCKET, ""), environ.pop(_PROCESS, "")
        period = environ.pop(_PERIOD, "")
        mine = process in ("", str(os.getpid()))
        every = int(period) / 1e6 / _PART if mine and period.isascii() and period.isdigit() else 0.0
        return cls(address, every)

    def notify(self, text: str) -> None:
        """Never fails: a service is not worse for a systemd that does not listen."""
        if not self.address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as link:
            link.setblocking(False)
            link.sendto(text.encode(), f"\0{self.address[1:]}" if self.address.startswith("@") else self.address)

    async def beat(self) -> None:
        """Sends signs of life until it is cancelled, as long as this event loop runs."""
        self.notify("READY=1")
        while self.every:
            self.notify("WATCHDOG=1")
            await asyncio.sleep(self.every)


async def watched_by_systemd(work: Coroutine[Any, Any, T]) -> T:
    """Result of `work`, with signs of life meanwhile: systemd ends a service that sends none, and starts it again."""
    beating = asyncio.create_task(Watchdog.take(os.environ).beat())
    try:
        return await work
    finally:
        beating.cancel()
