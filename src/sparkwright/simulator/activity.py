"""What a rank's device does, for a simulated nvidia-smi: a name that ends with the process, however it ends.

The name is that of an abstract unix socket, `@sparkwright-twin/STATE/PID-RANK` in /proc/net/unix: containers with the
host's network show it to their node.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket

WORK, SPIN = "work", "spin"
SPIN_S = 1.0
"""A collective that has not ended after so long is waited for by a busy loop on the device."""
REST_S = 0.3


class Activity:
    """`idle` until it is set."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.state = ""
        self._mark = -1
        self._next: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """A step begins; all ranks are waited for in it."""
        self._after(SPIN_S, SPIN)
        self.show(WORK)

    def end(self, seconds: float) -> None:
        """All ranks are there, and compute for so long."""
        self._after(seconds + REST_S, "")

    def hang(self, state: str) -> None:
        """For ever."""
        self._forget()
        self.show(state)

    def show(self, state: str) -> None:
        if state == self.state:
            return
        self.state = state
        if self._mark >= 0:
            os.close(self._mark)
        self._mark = _marked(f"\0sparkwright-twin/{state}/{os.getpid()}-{self.rank}") if state else -1

    def _after(self, seconds: float, state: str) -> None:
        self._forget()
        self._next = asyncio.get_running_loop().call_later(seconds, self.show, state)

    def _forget(self) -> None:
        if self._next is not None:
            self._next.cancel()


def _marked(name: str) -> int:
    """A descriptor, not an object: nothing needs to close it when the rank ends."""
    mark = socket.socket(socket.AF_UNIX)
    with contextlib.suppress(OSError):  # systems without abstract names have no nvidia-smi to play either
        mark.bind(name)
    return mark.detach()
