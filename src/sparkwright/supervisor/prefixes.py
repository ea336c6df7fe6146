"""Prompts that clients used most, sent to the engine again after its start, so that their contexts are computed before

somebody waits for them. One at a time, for one token each, and never in the way of clients.
"""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import replace

from sparkwright.adapters.prompt_files import TROUBLES, PromptFiles
from sparkwright.domain.errors import NotReady
from sparkwright.domain.incident import IncidentEvent
from sparkwright.domain.live import LivePrefixes
from sparkwright.gateway.prompts import KeptPrompt, best_first
from sparkwright.gateway.usage import tokens
from sparkwright.supervisor.endpoint import gateway_use
from sparkwright.supervisor.event_bus import EventBus

SENT_FOR = "prefixes sent for"
TROUBLE = "prefixes"
_MOST, _SECONDS = 64, 300.0
_LOOK_EVERY, _STEP = 1.0, 0.25
# Of the places for requests, where the recipe names none.
_PLACES = 8
_HOUR, _JUST = 3600.0, 5.0


async def send_kept(bus: EventBus, ready_at: float) -> None:
    """Once after each start. ready_at: of the start; a supervisor that finds it done already does nothing."""
    context = bus.context
    recipe = context.desired.recipe
    files = PromptFiles(context.journal.path)
    if not recipe.serving.remember:
        await _forget(bus, files)
        return
    if context.journal.recall().get(SENT_FOR) == ready_at:
        return
    context.seen.prefixes = None
    while bus.speaks is None:
        await context.pause(_STEP)
    kept = await _kept(bus, files) if bus.speaks else []
    context.remember({SENT_FOR: ready_at})
    if kept:
        await _Sending(bus, files, kept).run(ready_at)


async def _forget(bus: EventBus, files: PromptFiles) -> None:
    try:
        await asyncio.to_thread(files.forget)
        bus.set_trouble(TROUBLE, "")
    except OSError as error:
        bus.set_trouble(TROUBLE, f"kept prompts could not be removed: {files.folder}: {error.strerror}")


async def _kept(bus: EventBus, files: PromptFiles) -> list[KeptPrompt]:
    """Prompts that are not too old, the best first."""
    lifetime = bus.context.desired.recipe.serving.remember_hours * _HOUR
    try:
        found = await asyncio.to_thread(files.load)
        bus.set_trouble(TROUBLE, "")
    except TROUBLES as error:
        why = getattr(error, "strerror", None) or error
        bus.set_trouble(TROUBLE, f"kept prompts cannot be read, so none is sent again: {files.folder}: {why}")
        return []
    return best_first(one for one in found if bus.context.now() - one.at <= lifetime)[:_MOST]


class _Sending:
    def __init__(self, bus: EventBus, files: PromptFiles, kept: list[KeptPrompt]) -> None:
        self._bus, self._files, self._kept = bus, files, kept
        self._clock = bus.context.services.clock
        self._began = self._clock.monotonic()
        self._so_far = LivePrefixes(len(kept))

    async def run(self, ready_at: float) -> None:
        """ready_at: of the start; an incident that it ended gets the result, too."""
        context = self._bus.context
        why = ""
        for one in self._kept:
            if why := await self._one(one):
                break
        self._show(replace(self._so_far, at=context.now(), why=why))
        said = self._so_far.text
        context.notice(f"{context.name}: {said}")
        ended = context.seen.ended
        number = ended.number if ended and ended.closed_at >= ready_at - _JUST else 0
        await context.store.note(context.name, IncidentEvent(context.now(), "prefixes", said), number)

    def _show(self, so_far: LivePrefixes) -> None:
        self._so_far = replace(so_far, seconds=self._clock.monotonic() - self._began)
        self._bus.context.seen.prefixes = self._so_far

    @property
    def _left(self) -> float:
        return self._began + _SECONDS - self._clock.monotonic()

    async def _one(self, one: KeptPrompt) -> str:
        """The reason to send no more, '' to go on. One that is cut for clients is sent again."""
        try:
            body = await asyncio.to_thread(self._files.body, one)
        except TROUBLES:  # used meanwhile: its text is part of a longer one now
            self._count(-1)
            return ""
        while self._left > 0:
            if await self._crowded():
                await self._clock.sleep(_LOOK_EVERY)
                continue
            sent = await self._unless_crowded(self._sent(one, body))
            if sent is not None:
                self._count(sent)
                return ""
        return f"not done within {_SECONDS:.0f} s, beside what clients asked for"

    def _count(self, sent: int) -> None:
        """sent: tokens, -1 for a prompt that could not be sent."""
        so_far, good = self._so_far, sent >= 0
        self._show(
            replace(
                so_far,
                sent=so_far.sent + good,
                refused=so_far.refused + (not good),
                tokens=so_far.tokens + max(sent, 0),
            )
        )

    async def _unless_crowded(self, sending: Awaitable[int]) -> int | None:
        """None if clients needed the engine meanwhile: it is left, and stops computing for us."""
        task = asyncio.ensure_future(sending)
        try:
            while not (await asyncio.wait({task}, timeout=_LOOK_EVERY))[0]:
                self._show(self._so_far)
                if self._left <= 0 or await self._crowded(ours=1):
                    return None
            return task.result()
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError, NotReady):
                await task

    async def _crowded(self, ours: int = 0) -> bool:
        """True while clients take half of the engine's places, or wait for one."""
        context = self._bus.context
        places = context.desired.recipe.serving.sequences or _PLACES
        engine, use = context.seen.engine, await gateway_use(context)
        waiting = (use.waiting if use else 0) + max(0, int((engine and engine.waiting) or 0) - ours)
        return waiting > 0 or (use is not None and use.under_way >= max(1, places // 2))

    async def _sent(self, one: KeptPrompt, body: str) -> int:
        """Tokens of the prompt, -1 if the engine refused it."""
        context = self._bus.context
        with context.own_request():
            try:
                url = f"{context.url}{one.prompt.path}"
                reply = await context.services.endpoint.post(url, body, context.key, max(self._left, 1.0))
            except NotReady:
                return -1
        self._bus.detectors.canaries.own += 1  # its token is nobody's traffic
        if reply.status != 200:
            return -1
        found = tokens(reply.body.encode())
        return found.prompt if found else one.tokens
