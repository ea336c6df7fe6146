"""The one work that is under way: begun, answered with its turn, cut off when another begins."""

import asyncio
import traceback
from dataclasses import replace

from sparkwright.app.supervise.senses import Senses
from sparkwright.app.supervise.works.capture import capture
from sparkwright.app.supervise.works.reboot import reboot
from sparkwright.app.supervise.works.start import launch, watch
from sparkwright.app.supervise.works.stop import stop
from sparkwright.app.supervise.works.swap import swap
from sparkwright.supervision.effects import Capture, Launch, Reboot, Stop, Swap, Watch
from sparkwright.supervision.events import Answer, Captured, LaunchFailed, RebootFailed, Returned, Stopped
from sparkwright.supervision.state import State

Work = Capture | Stop | Launch | Watch | Reboot | Swap


class Works:
    def __init__(self, senses: Senses) -> None:
        self._senses = senses
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
            self._senses.site.say("".join(traceback.format_exception(error)), warning=True)
            answer = self._failed(work, f"our own defect: {error!r}")
        self._senses.tell(replace(answer, turn=work.turn))

    async def _done(self, work: Work, state: State) -> Answer:
        site = self._senses.site
        if isinstance(work, Capture):
            return await capture(self._senses, state, work)
        if isinstance(work, Stop):
            return await stop(self._senses, state.fault)
        if isinstance(work, Launch):
            self._launched = True
            return await launch(site)
        if isinstance(work, Watch):
            return await watch(site, self._launched)
        if isinstance(work, Swap):
            return await swap(self._senses, state)
        return await reboot(site, work.before)

    def _failed(self, work: Work, why: str) -> Answer:
        """A work always answers: else the machine would wait for ever."""
        at = self._senses.site.now()
        if isinstance(work, Capture):
            return Captured(at, work.incident)
        if isinstance(work, Stop):
            return Stopped(at, left=(why,))
        if isinstance(work, Swap):
            return Returned(at, why)
        return RebootFailed(at, why) if isinstance(work, Reboot) else LaunchFailed(at, why)
