"""The feed of the page's live part: rendered once at a change, sent to all watchers."""

import asyncio
import json
import sys
import traceback
from collections.abc import AsyncIterator, Callable

from sparkwright.console.board import ReportBoard
from sparkwright.console.overview import overview
from sparkwright.console.sessions import Visitor
from sparkwright.gateway.keys import Keys

_LOOK_EVERY = 0.25
_STILL = 15.0
STILL_HERE = "event: still\ndata: {}\n\n"
"""Nothing is new; a page that hears not even that for a while says so, and asks again (assets/console.js)."""


class Feed:
    """keys: as they are now; each change wakes all who watch, so that a revoked key loses its page at once."""

    def __init__(self, board: ReportBoard, keys: Callable[[], Keys]) -> None:
        self._board, self._keys = board, keys
        self._changed = asyncio.Event()
        self._rendered: dict[tuple[str, bool], str] = {}
        self._known, self._shown, self._failed = keys(), board.version, ""
        self.viewers = 0

    async def run(self) -> None:
        """Read the files for ever."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            self.look()

    def look(self) -> None:
        """Read the files once. A look that fails is noted once, and the next one is as good as any."""
        try:
            found = self._keys()
            self._board.refresh()
            version = self._board.version
            changed = version != self._shown or found is not self._known
            self._known, self._shown, self._failed = found, version, ""
        except Exception as error:
            if self._failed != (failed := repr(error)):
                sys.stderr.write(f"the console could not read what changed:\n{traceback.format_exc()}")
            self._failed = failed
            return
        if changed:
            self._rendered.clear()
            self._changed.set()
            self._changed = asyncio.Event()

    def event(self, visitor: Visitor) -> str:
        seen = visitor.key.deployment, visitor.operates
        if seen not in self._rendered:
            self._rendered[seen] = f"data: {json.dumps(overview(self._board, *seen))}\n\n"
        return self._rendered[seen]

    async def events(self, visitor: Callable[[], Visitor | None]) -> AsyncIterator[str]:
        """Ends when the visitor's key is gone."""
        self.viewers += 1
        sent = ""
        try:
            while who := visitor():
                changed, text = self._changed, self.event(who)
                yield text if text != sent else STILL_HERE
                sent = text
                try:
                    async with asyncio.timeout(_STILL):
                        await changed.wait()
                except TimeoutError:
                    continue
            yield "event: gone\ndata: {}\n\n"
        finally:
            self.viewers -= 1
