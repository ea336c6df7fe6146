"""The one work that is under way: begun, answered with its turn, cut off when another begins."""

import asyncio
import traceback
from dataclasses import replace

from sparkwright.supervision.effects import Capture, Launch, Reboot, Stop, Swap, Watch
from sparkwright.supervision.events import Answer, Captured, LaunchFailed, RebootFailed, Returned, Stopped
from sparkwright.supervision.state import State
from sparkwright.supervisor.effects.capture import capture
from sparkwright.supervisor.effects.reboot import reboot
from sparkwright.supervisor.effects.start import launch, watch
from sparkwright.supervisor.effects.stop import stop
from sparkwright.supervisor.effects.swap import swap
from sparkwright.supervisor.event_bus import EventBus

Work = Capture | Stop | Launch | Watch | Reboot | Swap


class EffectRunner:
    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._task: asyncio.Task[None] | None = None
        self._launched = False

    async def begin(self, work: Work, state: State) -> None:
        await self.cut()
        self._task = asyncio.create_task(self._answered(work, state), name=type(work).__name__)

    async def cut(self) -> None:
        """What is under way ends here; a change on a node goes to its end first."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._task = None

    async def _answered(self, work: Work, state: State) -> None:
        try:
            answer = await self._done(work, state)
        except Exception as error:
            self._bus.context.say("".join(traceback.format_exception(error)), warning=True)
            answer = self._failed(work, f"our own defect: {error!r}")
        self._bus.tell(replace(answer, turn=work.turn))

    async def _done(self, work: Work, state: State) -> Answer:
        context = self._bus.context
        if isinstance(work, Capture):
            return await capture(self._bus, state, work)
        if isinstance(work, Stop):
            return await stop(self._bus, state.fault)
        if isinstance(work, Launch):
            self._launched = True
            return await launch(context)
        if isinstance(work, Watch):
            return await watch(context, self._launched)
        if isinstance(work, Swap):
            return await swap(self._bus, state)
        return await reboot(context, work.before)

    def _failed(self, work: Work, why: str) -> Answer:
        """A work always answers: else the machine would wait for ever."""
        at = self._bus.context.now()
        if isinstance(work, Capture):
            return Captured(at, work.incident)
        if isinstance(work, Stop):
            return Stopped(at, left=(why,))
        if isinstance(work, Swap):
            return Returned(at, why)
        return RebootFailed(at, why) if isinstance(work, Reboot) else LaunchFailed(at, why)
