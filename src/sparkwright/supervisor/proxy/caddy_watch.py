"""Ends a Caddy that hangs. systemd's watchdog does not reach it: it sends no signs of life."""

import asyncio
import json
import sys
from pathlib import Path

from sparkwright.adapters.hung_server import is_answering, kill_listener
from sparkwright.domain.live import WATCHDOG
from sparkwright.gateway.caddy import ADMIN
from sparkwright.ports import Clock

_EVERY, _WITHIN, _FEWEST = 2.0, 3.0, 3
_SILENT = (
    f"Caddy answers nothing, so no client gets through: after {WATCHDOG:.0f} s of silence it is ended and started again"
)


class CaddyWatch:
    """Asks Caddy as a client does and on its admin socket. Silent on both for WATCHDOG seconds, it is killed.

    Its service starts it again. folder: where its configuration and socket are, which is the working folder.
    """

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder, self._clock = folder, clock
        self._good, self._vain = clock.monotonic(), 0

    @property
    def trouble(self) -> str:
        """The sentence for `status` while Caddy is silent, '' while it answers."""
        return _SILENT if self._vain else ""

    async def watch(self) -> None:
        """Runs until it is cancelled."""
        while True:
            await self._clock.sleep(_EVERY)
            await self.look()

    async def look(self) -> None:
        """One look; a Caddy that has been silent for too long is killed."""
        asked = (
            is_answering(self._client_url(), _WITHIN),
            is_answering("http://localhost/config/admin", _WITHIN, ADMIN),
        )
        if any(await asyncio.gather(*asked)):
            self._good, self._vain = self._clock.monotonic(), 0
            return
        self._vain += 1
        silent = self._clock.monotonic() - self._good
        # While this process was stopped itself, nobody asked
        if silent >= WATCHDOG and self._vain >= _FEWEST and (pid := kill_listener(ADMIN)):
            sys.stderr.write(f"Caddy (process {pid}) answered nothing for {silent:.0f} s and was killed\n")
            self._good, self._vain = self._clock.monotonic(), 0

    def _client_url(self) -> str:
        """A path that Caddy answers by itself."""
        try:
            apps = json.loads((self._folder / "caddy.json").read_bytes())["apps"]
            (port,) = {at.rpartition(":")[2] for at in apps["http"]["servers"]["door"]["listen"]}
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return "http://127.0.0.1:1/"  # nobody listens: its configuration is not there
        return f"{'https' if 'tls' in apps else 'http'}://127.0.0.1:{port}/"
