"""Prompts that engines have answered, kept for their next start where the recipe allows it (`serving.remember`).

A request costs the copy of its body. The rest is done by one thread: parsing, counting, and now and then the files.
"""

import asyncio
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from sparkwright.adapters.prompt_files import TROUBLES, PromptFiles
from sparkwright.domain.units import MIB
from sparkwright.gateway.keys import RouteSetting
from sparkwright.gateway.prompts import MOST_BODY, PATHS, PromptShelf, prompt_to_keep
from sparkwright.gateway.usage import Body
from sparkwright.ports import Clock
from sparkwright.supervisor.proxy.behind import Behind, Deployed

_MOST_WAITING = 64 * MIB
_LOOK_EVERY, _SAVE_EVERY, _EXPIRES_EVERY = 1.0, 30.0, 600.0
_HOUR = 3600.0


class _Kept:
    """The prompts of one deployment. saved: when they were written last (monotonic)."""

    def __init__(self, files: PromptFiles, most: int, lifetime: float) -> None:
        self.files, self.shelf = files, PromptShelf(most, lifetime)
        self.loaded = self.changed = False
        self.saved = 0.0

    def load(self) -> None:
        """Take over what an earlier process kept. What cannot be read is forgotten, so that new texts can be kept."""
        if self.loaded:
            return
        self.loaded = True
        try:
            self.shelf.load(self.files.load())
        except ValueError:
            self.files.forget()
            raise

    def save(self, now: float) -> None:
        self.shelf.settle(self.files.save(self.shelf.sort(now)))
        self.changed = False


class Remembering:
    """All deployments of one gateway. trouble: why texts cannot be kept now, '' if they can."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, _Kept] = {}
        self._off: set[str] = set()
        self._waiting = 0
        self._thread = ThreadPoolExecutor(1, "prompts")
        self._troubles: dict[str, str] = {}
        self._tasks: set[asyncio.Future[None]] = set()

    @property
    def trouble(self) -> str:
        return next(filter(None, self._troubles.values()), "")

    def keeper(self, setting: RouteSetting, path: str) -> "RequestKeeper | None":
        """The keeper of a request to such a deployment; None where its prompts are not kept."""
        return RequestKeeper(self, path) if setting.remember and path in PATHS else None

    def has_room(self, size: int) -> bool:
        """True for a body that is not too long, unless too much waits for the thread already."""
        return size <= MOST_BODY and self._waiting + size <= _MOST_WAITING

    def add(self, one: Deployed, path: str, body: bytes, tokens: int) -> None:
        """Count a request that its engine has answered."""
        self._waiting += len(body)
        task = self._done(one.behind, partial(self._add, one, path, body, tokens), len(body))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _add(self, one: Deployed, path: str, body: bytes, tokens: int) -> None:
        kept = self._of(one)
        kept.load()
        if prompt := prompt_to_keep(path, body):
            kept.shelf.add(prompt, tokens, self._clock.now())
            kept.changed = True

    def _of(self, one: Deployed) -> _Kept:
        most, lifetime = one.setting.remember, one.setting.remember_hours * _HOUR
        kept = self._kept.get(one.name)
        if kept is None:
            kept = self._kept[one.name] = _Kept(PromptFiles(one.behind.home), most, lifetime)
        kept.shelf.most, kept.shelf.lifetime = most, lifetime
        return kept

    def _done(self, behind: Behind, work: Callable[[], None], size: int = 0) -> "asyncio.Future[None]":
        """Run in the thread. An error is told without its text: that might quote a prompt."""

        def run() -> str:
            try:
                work()
            except TROUBLES as error:
                why = getattr(error, "strerror", None) or str(error)
                return f"the prompts of {behind.name} cannot be kept for its next start: {why}"
            except Exception as error:
                return f"the prompts of {behind.name} cannot be kept for its next start: {type(error).__name__}"
            return ""

        async def told() -> None:
            try:
                said = await asyncio.get_running_loop().run_in_executor(self._thread, run)
            finally:
                self._waiting -= size
            if said and said != self._troubles.get(behind.name):
                sys.stderr.write(f"{said}\n")
            self._troubles[behind.name] = said

        return asyncio.ensure_future(told())

    async def watch(self, deployed: Callable[[], Mapping[str, Deployed]]) -> None:
        """Write what has changed, at once while a deployment is away; forget where nothing is to be kept."""
        while True:
            await self._clock.sleep(_LOOK_EVERY)
            there = deployed()
            for name in self._kept.keys() - there.keys():  # `down` has removed its folder
                del self._kept[name]
            for name, one in there.items():
                await self._look(name, one)

    async def _look(self, name: str, one: Deployed) -> None:
        if not one.setting.remember:
            if name not in self._off:
                self._off.add(name)
                self._kept.pop(name, None)
                await self._done(one.behind, PromptFiles(one.behind.home).forget)
            return
        self._off.discard(name)
        kept, at = self._of(one), self._clock.monotonic()
        if not kept.loaded:
            await self._done(one.behind, kept.load)
        changed = kept.changed and (at - kept.saved >= _SAVE_EVERY or one.behind.refusing)
        if changed or (kept.shelf and at - kept.saved >= _EXPIRES_EVERY):
            kept.saved = at
            await self._done(one.behind, partial(kept.save, self._clock.now()))

    async def end(self) -> None:
        """Write what is not written yet."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for kept in self._kept.values():
            if kept.changed:
                await asyncio.get_running_loop().run_in_executor(self._thread, partial(_saved, kept, self._clock.now()))


@dataclass
class RequestKeeper:
    """The prompt of one request, until its answer has come."""

    remembering: Remembering
    path: str
    body: bytes = b""

    def take(self, body: Body) -> None:
        size = len(body)
        self.body = body[:size] if self.remembering.has_room(size) else b""

    def answered(self, by: Deployed, tokens: int) -> None:
        """Keep the prompt for the next start of the replica that answered it."""
        if self.body:
            self.remembering.add(by, self.path, self.body, tokens)


def _saved(kept: _Kept, now: float) -> None:
    try:
        kept.save(now)
    except TROUBLES as error:
        sys.stderr.write(f"{kept.files.folder}: not written: {getattr(error, 'strerror', None) or error}\n")
